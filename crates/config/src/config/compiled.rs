//! The configuration of a team as it is compiled.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::{
    AgentZone, Budget, Confined, Conflicts, Gateway, Journal, Notify, OnBlock, Orchestrator,
    Permissions, Plugin, Port, Profile, RemoteAgent, Restart, SharedConfig, Telemetry,
    TierCandidate, Tracker, Web, Zones,
};
use crate::model::{AgentId, OnLoop, OnViolation, RuleSpec, StreamSpec};

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
}
