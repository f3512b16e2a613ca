//! `eisen.toml`: raw TOML → every error at once → a compiled [`Config`]; profiles; the lint behind `check`.
//!
//! ```text
//! source ─▶ syntax (what parses) ─▶ read (typed, with places) ─▶ team · profiles · zones · agents ─▶ references ─▶ Config
//!                        └──────────────── faults ─────────────────────────────────────────────────▶ ConfigErrors
//! ```

mod agents;
pub mod batch;
mod budget;
mod candidate;
pub mod check;
mod child;
mod command;
mod compile;
mod compiled;
mod confined;
mod conflicts;
mod defaults;
mod diff;
mod errors;
mod expand;
mod fault;
mod file;
mod gateway;
mod git_hooks;
mod helpers;
mod hub;
pub mod installed;
mod journal;
mod launch;
mod may_add;
mod mcp;
mod near;
mod notify;
mod orchestrator;
mod overlay;
mod patterns;
mod places;
mod plugin;
mod plugins;
mod prices;
mod profiles;
mod read;
mod references;
mod remote;
mod routing;
mod runs;
mod secrets;
mod shared;
mod source;
mod starter;
mod streams;
mod surroundings;
mod syntax;
mod team;
mod telemetry;
mod templates;
#[cfg(test)]
mod tests;
mod tiers;
mod trusted;
mod value;
mod web;
mod why;
mod zone_keys;
mod zones;

pub use self::agents::{Permissions, Restart, RestartPolicy};
pub use self::budget::Budget;
pub use self::compiled::{Agent, Config, Team};
pub use self::confined::Confined;
pub use self::conflicts::Conflicts;
pub use self::diff::{ChangeKind, ConfigChange, Plan, Takes};
pub use self::errors::{ConfigError, ConfigErrors};
pub use self::file::Source;
pub use self::gateway::Gateway;
pub use self::hub::HubMember;
pub use self::journal::{Journal, JournalContent, MAX_MB, OnFull, journal_path};
pub use self::may_add::MayAdd;
pub use self::notify::{Notify, NotifyBy, NotifyOn};
pub use self::orchestrator::{OnBlock, Orchestrator};
pub use self::overlay::{AgentTable, LayerError, Layered, Overlay, OverlayError};
pub use self::patterns::zone_pattern;
pub use self::plugin::{Isolation, Plugin};
pub use self::plugins::{plugin_folder, plugin_name, plugin_named};
pub use self::prices::prices_date;
pub use self::profiles::{ClientFs, Profile, UsageCount, base_patterns};
pub use self::remote::{RemoteAgent, RemoteProtocol};
pub use self::runs::{OnFailover, RunBounds};
pub use self::secrets::{OUTSIDE as SECRETS_OUTSIDE, Secrets};
pub use self::shared::SharedConfig;
pub use self::starter::{PartError, Proposed, Starter};
pub use self::streams::{MOST_STREAMS, stream_of};
pub use self::surroundings::{Surroundings, TryOut};
pub use self::team::{LISTEN, Port, Tracker};
pub use self::telemetry::Telemetry;
pub use self::templates::Template;
pub use self::tiers::{AgentTier, Pick, TierCandidate};
pub use self::trusted::{TRUSTED_PLACES, Trust, TrustError, TrustedPlaces};
pub use self::value::{is_name, to_name};
pub use self::web::{TlsFiles, WEB_LISTEN, Web};
pub use self::why::{Mend, Why};
pub use self::zone_keys::with_zone;
pub use self::zones::{AgentZone, Enforce, Zones};
use crate::model::KeptFiles;
pub use crate::zone::{Confine, compile_glob};

/// The files that are kept below `$EISEN_DIR`.
pub const KEPT: [KeptFiles; 2] = [overlay::KEPT, trusted::KEPT];
