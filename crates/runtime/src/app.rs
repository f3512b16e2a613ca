//! Wiring: creates the actors of `up`, `observe`, `replay` and `hub`, connects them, and shuts them down. Contains
//! no policy.

mod budget;
mod changes;
mod figures;
mod first_prompt;
mod graph;
mod hub;
pub(crate) mod journal;
mod killed_run;
pub(crate) mod limits;
mod listeners;
pub(crate) mod members;
mod notices;
mod observe;
mod places;
mod replay;
mod rooms;
mod scoped_tokens;
mod streams;
pub(crate) mod team;
mod telemetry;
mod undo;
pub(crate) mod up;
mod web_page;

pub use hub::{HubOptions, hub};
pub use journal::{journal_hint, journal_line};
pub use limits::limit_enforcement;
pub use notices::try_notices;
pub use observe::{ObserveOptions, ObservePlugin, observe};
pub use replay::{ReplayOptions, replay};
pub use scoped_tokens::TokensAtRest;
pub use up::{UpOptions, up};
pub use web_page::WebWish;
