use schemars::JsonSchema;
use serde::Serialize;

use super::wire;
use crate::model::{AgentStatus, SessionId, SessionMode, Usage};

/// An agent with all that `list_agents` tells of it.
#[derive(Clone, PartialEq, Debug)]
pub struct AgentDetails {
    pub status: AgentStatus,
    /// As it announced itself; None while it has not.
    pub name: Option<String>,
    pub version: Option<String>,
    pub zone: Tier,
    /// What the kernel lacks to hold the zone wholly, if it is meant to.
    pub zone_missing: Vec<String>,
    pub sessions: Vec<SessionDetails>,
    /// Of all its processes; None where that can't be known.
    pub memory_bytes: Option<u64>,
    pub cpu_ms: Option<u64>,
    /// The most of its run, or of its last one.
    pub peak_memory_bytes: Option<u64>,
    pub peak_processes: Option<u64>,
}

/// What really holds an agent inside its zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// It has no zone.
    None,
    /// What it asks its client for is judged, and nothing else.
    Protocol,
    /// The kernel holds every process of it, terminals too; `zone_missing` names what it lacks.
    Kernel,
}

/// A session that an agent has, or had before it was started again.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionDetails {
    pub session: SessionId,
    pub mode: SessionMode,
    /// The running process has it, so that it can be prompted.
    pub is_open: bool,
    pub is_default: bool,
    pub is_running: bool,
    /// Prompts behind the running turn.
    pub queued: usize,
    pub usage: Option<Usage>,
}

/// [`AgentDetails`] on the wire.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentDetails")]
pub(super) struct Agent<'a> {
    #[serde(flatten)]
    status: wire::Agent<'a>,
    /// As it announced itself; null while it has not.
    name: Option<&'a str>,
    version: Option<&'a str>,
    zone: Tier,
    /// What the running kernel lacks to hold the zone, by name: at the tier `kernel` it holds it but
    /// for that, at `protocol` this is why it does not. Empty where less was asked for.
    zone_missing: &'a [String],
    /// In the order in which they appeared.
    sessions: Vec<Session<'a>>,
    /// Of its process, its terminals, and all that came of them; null where that can't be known.
    memory_bytes: Option<u64>,
    cpu_ms: Option<u64>,
    /// The most that was seen in this run, or in the last one; null where there was none.
    peak_memory_bytes: Option<u64>,
    peak_processes: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SessionDetails")]
#[expect(clippy::struct_field_names, reason = "the wire's names")]
struct Session<'a> {
    session_id: &'a str,
    #[schemars(extend("enum" = SessionMode::ALL.map(SessionMode::as_str)))]
    session_mode: &'a str,
    /// The running agent has it: it can be prompted.
    open: bool,
    /// Takes the prompts that name none.
    default: bool,
    /// A turn runs.
    running: bool,
    /// Prompts that wait.
    queued: usize,
    used: Option<u64>,
    size: Option<u64>,
    cost: Option<wire::Cost<'a>>,
}

impl<'a> From<&'a AgentDetails> for Agent<'a> {
    fn from(details: &'a AgentDetails) -> Self {
        Self {
            status: (&details.status).into(),
            name: details.name.as_deref(),
            version: details.version.as_deref(),
            zone: details.zone,
            zone_missing: &details.zone_missing,
            sessions: details.sessions.iter().map(Session::from).collect(),
            memory_bytes: details.memory_bytes,
            cpu_ms: details.cpu_ms,
            peak_memory_bytes: details.peak_memory_bytes,
            peak_processes: details.peak_processes,
        }
    }
}

impl<'a> From<&'a SessionDetails> for Session<'a> {
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
        }
    }
}
