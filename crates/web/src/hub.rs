//! Several hosts: a team publishes its port over NATS and performs what is asked of it there, and a hub
//! shows all teams as one. Knows lines and methods of the port as JSON only.
//!
//! ```text
//! team: port ─▶ live lines ─▶ NATS ─▶ mirror of each host ─▶ bus ─▶ port: hub
//!       port ◀─ requests   ◀─ NATS ◀─ forward             ◀─ methods ◀─┘
//! ```

mod answers;
mod forward;
mod hosts;
mod key;
mod lines;
mod listener;
mod member;
mod merged_answers;
mod message;
mod mirror;
mod names;
mod nats;
mod neighbours;
mod presence;
mod upstream;

pub use self::key::{HubKey, KeyError};
pub use self::listener::{Hub, HubSettings};
pub use self::member::{MemberSettings, serve};
pub use self::neighbours::Neighbours;
use crate::model::{KeptFiles, KeptForm};

/// The key of a hub, and its configuration, which is the user's.
pub const KEPT: [KeptFiles; 1] =
    [KeptFiles::new("hub", KeptForm::Fixed, &["hub.key*", "config.toml"])];
