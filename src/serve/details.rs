//! Owns an agent's details, and their form on the wire.

use schemars::JsonSchema;
use serde::Serialize;

use super::wire;
use crate::mcp::ToolUse;
use crate::model::{AgentStatus, SessionId, SessionMode, Spent, Usage};

/// The state of an agent, as `list_agents` returns it.
#[derive(Clone, PartialEq, Debug)]
pub struct AgentDetails {
    pub status: AgentStatus,
    /// The name that it announced; None before that.
    pub name: Option<String>,
    pub version: Option<String>,
    /// Who answers for it.
    pub owner: Option<String>,
    pub zone: Tier,
    /// Features that the kernel lacks to enforce the zone, if it should.
    pub zone_missing: Vec<String>,
    /// The prompt by which it compresses its context; None if unknown.
    pub compress: Option<String>,
    /// Whether its program shows its model the tools that it lists; None if unknown.
    pub shows_tools: Option<bool>,
    pub sessions: Vec<SessionDetails>,
    /// Of all its processes; None if unknown.
    pub memory_bytes: Option<u64>,
    pub cpu_ms: Option<u64>,
    /// The highest of its run, or of its last one.
    pub peak_memory_bytes: Option<u64>,
    pub peak_processes: Option<u64>,
}

impl AgentDetails {
    /// The details of an agent when only its state is known.
    pub fn of_status(status: AgentStatus) -> Self {
        Self {
            status,
            name: None,
            version: None,
            owner: None,
            zone: Tier::None,
            zone_missing: Vec::new(),
            compress: None,
            shows_tools: None,
            sessions: Vec::new(),
            memory_bytes: None,
            cpu_ms: None,
            peak_memory_bytes: None,
            peak_processes: None,
        }
    }
}

/// What enforces an agent's zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// It has no zone.
    None,
    /// Its requests to its client are judged, and nothing else.
    Protocol,
    /// The kernel confines all its processes, terminals too; `zone_missing` names what it lacks.
    Kernel,
}

/// A session of an agent, or of an earlier run of it.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionDetails {
    pub session: SessionId,
    pub mode: SessionMode,
    /// The running process has it, so it can be prompted.
    pub is_open: bool,
    pub is_default: bool,
    pub is_running: bool,
    /// Prompts behind the running turn.
    pub queued: usize,
    pub usage: Option<Usage>,
    /// Since the team began.
    pub spent: Spent,
}

/// [`AgentDetails`] on the wire.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentDetails")]
pub(super) struct Agent<'a> {
    #[serde(flatten)]
    status: wire::Agent<'a>,
    /// The name that it announced; null before that.
    name: Option<&'a str>,
    version: Option<&'a str>,
    /// Who answers for it, by the configuration; null: nobody is named.
    owner: Option<&'a str>,
    zone: Tier,
    /// Features that the running kernel lacks to enforce the zone. At the tier `kernel` it enforces
    /// all but these; at `protocol` they are the reason. Empty where the kernel tier was not asked
    /// for.
    zone_missing: &'a [String],
    /// The patterns of its own zone; empty without one.
    allowed: &'a [String],
    /// The prompt by which it compresses its context: as it announced it, else as its profile has it.
    /// Left out where none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    compress: Option<&'a str>,
    /// In the order in which they appeared.
    sessions: Vec<SessionFields<'a>>,
    /// Of its process, its terminals and their children; null where it is unknown.
    memory_bytes: Option<u64>,
    cpu_ms: Option<u64>,
    /// The highest in this run, or in the last one; null where there was none.
    peak_memory_bytes: Option<u64>,
    peak_processes: Option<u64>,
    tools: ToolsUsed,
}

/// What the agent's own client did with the tools of the team.
#[derive(Serialize, JsonSchema)]
struct ToolsUsed {
    /// It is connected.
    connected: bool,
    /// It has asked which tools there are.
    listed: bool,
    /// Whether its model has seen them: it called one, or its program shows it all that are listed. False where
    /// the program shows them only to a model that searches for them. Left out where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<bool>,
    /// Calls of tools.
    calls: u64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SessionDetails")]
struct SessionFields<'a> {
    session_id: &'a str,
    #[schemars(extend("enum" = SessionMode::ALL.map(SessionMode::as_str)))]
    session_mode: &'a str,
    /// The running agent has it, so it can be prompted.
    open: bool,
    /// It gets prompts that name no session.
    default: bool,
    /// A turn runs.
    running: bool,
    /// Number of waiting prompts.
    queued: usize,
    used: Option<u64>,
    size: Option<u64>,
    cost: Option<wire::Cost<'a>>,
    /// As in the session's `usage` line.
    #[serde(skip_serializing_if = "Option::is_none")]
    spent: Option<wire::Spent<'a>>,
}

impl<'a> Agent<'a> {
    pub(super) fn new(
        details: &'a AgentDetails,
        used: ToolUse,
        allowed: Option<&'a Vec<String>>,
    ) -> Self {
        let ToolUse { connections, listed, calls } = used;
        Self {
            status: (&details.status).into(),
            name: details.name.as_deref(),
            version: details.version.as_deref(),
            owner: details.owner.as_deref(),
            zone: details.zone,
            zone_missing: &details.zone_missing,
            allowed: allowed.map_or(&[], Vec::as_slice),
            compress: details.compress.as_deref(),
            sessions: details.sessions.iter().map(SessionFields::from).collect(),
            memory_bytes: details.memory_bytes,
            cpu_ms: details.cpu_ms,
            peak_memory_bytes: details.peak_memory_bytes,
            peak_processes: details.peak_processes,
            tools: ToolsUsed {
                connected: connections > 0,
                listed,
                seen: if calls > 0 {
                    Some(true)
                } else {
                    details.shows_tools.map(|it| it && listed)
                },
                calls,
            },
        }
    }
}

impl<'a> From<&'a SessionDetails> for SessionFields<'a> {
    fn from(details: &'a SessionDetails) -> Self {
        let usage = details.usage.as_ref();
        Self {
            session_id: details.session.as_str(),
            session_mode: details.mode.as_str(),
            open: details.is_open,
            default: details.is_default,
            running: details.is_running,
            queued: details.queued,
            used: usage.map(|usage| usage.used),
            size: usage.map(|usage| usage.size),
            cost: usage.and_then(|usage| usage.cost.as_ref()).map(wire::Cost::from),
            spent: wire::Spent::of(&details.spent),
        }
    }
}
