//! Which candidate of a tier is taken now, and why not: its order, the cool-downs that are kept over runs,
//! and the troubles for which another candidate takes over. Starts nothing.

mod choice;
mod cooldowns;
mod now;
mod setback;

pub use self::choice::{CandidateStanding, Hindrance, standings};
pub use self::cooldowns::{Cooldown, Cooldowns, LoginId};
pub use self::now::{TierNow, tiers_now};
pub use self::setback::Setback;
use crate::model::{KeptFiles, KeptForm};

/// Cool-downs, with the errors that they are for.
pub const KEPT: [KeptFiles; 2] = [
    KeptFiles::new("cool-downs", KeptForm::Json, &["cooldowns/state.json"]).locked_by("lock"),
    KeptFiles::new("cool-downs", KeptForm::Fixed, &["cooldowns/*"]),
];
