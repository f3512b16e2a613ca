//! `eisen.toml`: raw TOML → every error at once → a compiled [`Config`]; profiles; the lint behind `check`.
//!
//! ```text
//! source ─▶ syntax (what parses) ─▶ read (typed, with places) ─▶ team · profiles · zones · agents ─▶ references ─▶ Config
//!                        └──────────────── faults ─────────────────────────────────────────────────▶ ConfigErrors
//! ```

mod agent_provider;
mod agents;
pub mod batch;
mod budget;
mod candidate;
pub mod check;
mod child;
mod command;
mod compile;
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
mod kept_keys;
mod key_owner;
mod launch;
mod login_file;
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
mod provider_choice;
mod provider_launch;
mod providers;
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
mod worktree;
mod zone_keys;
mod zones;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use self::agent_provider::{AgentProvider, NoProvider};
pub use self::agents::{Permissions, Restart, RestartPolicy};
pub use self::budget::Budget;
pub use self::confined::Confined;
pub use self::conflicts::Conflicts;
pub use self::diff::{ChangeKind, ConfigChange, Plan, Takes};
pub use self::errors::{ConfigError, ConfigErrors};
pub use self::file::Source;
pub use self::gateway::Gateway;
pub use self::hub::HubMember;
pub use self::journal::{Journal, JournalContent, MAX_MB, OnFull, journal_path};
pub use self::kept_keys::{keep_keys, kept_keys};
pub use self::may_add::MayAdd;
pub use self::notify::{Notify, NotifyBy, NotifyOn};
pub use self::orchestrator::{OnBlock, Orchestrator};
pub use self::overlay::{AgentTable, LayerError, Layered, Overlay, OverlayError};
pub use self::patterns::zone_pattern;
pub use self::plugin::{Isolation, Plugin};
pub use self::plugins::{plugin_folder, plugin_name, plugin_named};
pub use self::prices::prices_date;
pub use self::profiles::{ClientFs, Profile, ProviderForm, UsageCount, base_patterns};
pub use self::provider_launch::{ProviderFile, ProviderLaunch};
pub use self::providers::{Provider, ProviderKey};
pub use self::remote::{RemoteAgent, RemoteProtocol};
pub use self::runs::{OnFailover, RunBounds};
pub use self::secrets::{OUTSIDE as SECRETS_OUTSIDE, Secrets};
pub use self::shared::SharedConfig;
pub use self::starter::{PartError, Proposed, Starter, build_folders};
pub use self::streams::{MOST_STREAMS, stream_of};
pub use self::surroundings::{Surroundings, TryOut};
pub use self::team::{LISTEN, Port, Tracker};
pub use self::telemetry::Telemetry;
pub use self::templates::Template;
pub use self::tiers::{AgentTier, Pick, TierCandidate};
pub use self::trusted::{TRUSTED_PLACES, Trust, TrustError, TrustedPlaces};
pub use self::value::{is_name, to_name};
pub use self::web::{TlsFiles, WEB_LISTEN, Web, normal_origin};
pub use self::why::{Mend, Why};
pub use self::worktree::{AgentWorktree, WorktreeSettings};
pub use self::zone_keys::with_zone;
pub use self::zones::{AgentZone, Enforce, Zones};
use crate::model::{AgentId, KeptFiles, OnLoop, OnViolation, RuleSpec, StreamSpec};
pub use crate::zone::{Confine, compile_glob};

/// The files that are kept below `$EISEN_DIR`.
pub const KEPT: [KeptFiles; 2] = [overlay::KEPT, trusted::KEPT];

/// The content of one `eisen.toml`, with all defaults filled in and all paths absolute.
#[derive(Clone, Debug)]
pub struct Config {
    pub team: Team,
    pub orchestrator: Orchestrator,
    pub tracker: Tracker,
    pub port: Port,
    pub zones: Zones,
    /// In the order of the file.
    pub agents: Vec<Agent>,
    pub plugins: Vec<Plugin>,
    pub graph: bool,
    pub journal: Journal,
    /// None: conflicts are not looked for.
    pub conflicts: Option<Conflicts>,
    pub notify: Vec<Notify>,
    /// None: no page is served.
    pub web: Option<Web>,
    /// In the order of the file.
    pub routing: Vec<RuleSpec>,
    /// The team's.
    pub budget: Budget,
    /// With what `$EISEN_DIR/config.toml` says.
    pub shared: SharedConfig,
    /// None: no spans are made.
    pub telemetry: Option<Telemetry>,
    pub streams: Vec<StreamSpec>,
    pub gateway: Gateway,
}

#[derive(Clone, Debug)]
pub struct Team {
    pub name: String,
    /// Canonical.
    pub workspace: PathBuf,
    /// Work on a temporary copy of the workspace, removed when the team stops.
    pub scratch: bool,
    pub listen: SocketAddr,
    /// Another port may be taken where that of `listen` is not free: the file says nothing.
    pub any_port: bool,
    pub stop_grace: Duration,
    /// 0: no limit.
    pub max_running: usize,
    /// 0: no limit.
    pub max_memory_mb: u64,
    pub on_loop: OnLoop,
    /// Agents get the tools of the team.
    pub tools: bool,
    /// Levels of helpers below an agent that has no parent.
    pub max_depth: u32,
    /// Agents at once, those of the file too, past which no agent starts or adds one; 0: no limit.
    pub max_agents: usize,
    /// Agents that agents may start and add while the team lives.
    pub max_spawns: usize,
}

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct Agent {
    pub id: AgentId,
    /// The agent that it is a helper of: its zone is within the parent's, and its use counts for both.
    pub parent: Option<AgentId>,
    /// 0 for an agent without a parent, one more for each level of helpers.
    pub depth: u32,
    /// An agent asked for it: it has nothing that its parent does not have.
    pub is_asked_for: bool,
    /// Places and variables that it would have by itself, but its parent does not have: it does not get them.
    pub without: Vec<String>,
    /// The person who answers for it.
    pub owner: Option<String>,
    /// Program and arguments; never empty. [`Agent::launch`] returns the command that is started.
    pub command: Vec<String>,
    /// Where it runs; None: here.
    pub remote: Option<RemoteAgent>,
    /// The profile that the agent names, or else the profile of its program.
    pub profile: Profile,
    /// Translates its protocol; None for an agent that speaks ACP.
    pub plugin: Option<Plugin>,
    /// Absolute, inside the workspace.
    pub cwd: PathBuf,
    pub env: BTreeMap<String, String>,
    pub autostart: bool,
    /// Open an ACP session when the agent is ready.
    pub session: bool,
    pub prompt: Option<String>,
    /// The file of the prompt.
    pub prompt_file: Option<PathBuf>,
    /// The tier that its profile, model and thinking are taken from.
    pub tier: Option<String>,
    /// The candidate that it takes of its tier.
    pub candidate: Option<TierCandidate>,
    /// Where its model calls go.
    pub provider: AgentProvider,
    pub model: Option<String>,
    pub thinking: Option<String>,
    pub mode: Option<String>,
    pub auth_method: Option<String>,
    /// ACP's `McpServer` objects as JSON.
    pub mcp_servers: Vec<serde_json::Value>,
    /// Whether it gets the tools of the team; None: the team's setting.
    pub tools: Option<bool>,
    pub permissions: Permissions,
    /// The agent is configured not to ask for permission.
    pub unattended: bool,
    pub on_violation: OnViolation,
    /// None: the team's setting.
    pub on_loop: Option<OnLoop>,
    /// None: the team's setting.
    pub on_block: Option<OnBlock>,
    pub depends_on: Vec<AgentId>,
    pub initialize_timeout: Duration,
    /// Zero: never.
    pub stall_after: Duration,
    pub zone: AgentZone,
    pub confined: Confined,
    pub restart: Restart,
    pub memory_mb: Option<u64>,
    pub processes: Option<u64>,
    pub budget: Budget,
    /// None: it works in the team's workspace.
    pub worktree: Option<Box<AgentWorktree>>,
}
