//! Which candidate of a tier is taken now, and why not: its order, the cool-downs that are kept over runs,
//! and the troubles for which another candidate takes over. Starts nothing.

mod choice;
mod cooldowns;
mod setback;

pub use self::choice::{CandidateStanding, Hindrance, standings};
pub use self::cooldowns::{Cooldown, Cooldowns, LoginId};
pub use self::setback::Setback;
