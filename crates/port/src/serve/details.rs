//! Owns an agent's details, and turns them into their form on the wire.

use std::borrow::Cow;
use std::sync::Arc;

use crate::client_host::Chosen;
use crate::mcp::ToolUse;
use crate::model::{AgentStatus, OpenCalls, SessionId, SessionMode, Spent, Usage};
use crate::wire::{self, CallsInFlight, Tier, ToolsUsed};

/// The state of an agent, as `list_agents` returns it.
#[derive(Clone, PartialEq, Debug)]
pub struct AgentDetails {
    pub status: AgentStatus,
    /// The name that it announced; None before that.
    pub name: Option<String>,
    pub version: Option<String>,
    /// The person who answers for the agent.
    pub owner: Option<String>,
    pub zone: Tier,
    /// Features that the kernel lacks to enforce the zone, if it should.
    pub zone_missing: Vec<String>,
    /// The agent is observed and not stopped.
    pub is_observed: bool,
    /// The prompt by which it compresses its context; None if unknown.
    pub compress: Option<String>,
    /// Whether its program shows its model the tools that it lists; None if unknown.
    pub shows_tools: Option<bool>,
    /// The provider of the team's that its model calls go to.
    pub provider: Option<Arc<str>>,
    /// Its calls there that run.
    pub open_calls: OpenCalls,
    pub sessions: Vec<SessionDetails>,
    /// The memory of all its processes; None if unknown.
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
            is_observed: false,
            compress: None,
            shows_tools: None,
            provider: None,
            open_calls: OpenCalls::default(),
            sessions: Vec::new(),
            memory_bytes: None,
            cpu_ms: None,
            peak_memory_bytes: None,
            peak_processes: None,
        }
    }
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
    /// The value of each option that the agent offers there.
    pub chosen: Chosen,
    pub usage: Option<Usage>,
    /// Since the team began.
    pub spent: Spent,
}

fn in_flight(OpenCalls { calls, most, unbounded }: OpenCalls) -> Option<CallsInFlight> {
    (calls > 0).then_some(CallsInFlight { calls, most_tokens: most, unbounded })
}

/// Returns an agent's details in their form on the wire.
pub(super) fn on_wire<'a>(
    details: &'a AgentDetails,
    used: ToolUse,
    allowed: Option<&'a Vec<String>>,
) -> wire::AgentDetails<'a> {
    let ToolUse { connections, listed, calls } = used;
    wire::AgentDetails {
        status: (&details.status).into(),
        name: details.name.as_deref().map(Cow::from),
        version: details.version.as_deref().map(Cow::from),
        owner: details.owner.as_deref().map(Cow::from),
        zone: details.zone.into(),
        zone_missing: (&*details.zone_missing).into(),
        zone_observed: details.is_observed,
        allowed: allowed.map_or(&[][..], Vec::as_slice).into(),
        compress: details.compress.as_deref().map(Cow::from),
        provider: details.provider.as_deref().map(Cow::from),
        calls_in_flight: in_flight(details.open_calls),
        sessions: details.sessions.iter().map(session).collect(),
        memory_bytes: details.memory_bytes,
        cpu_ms: details.cpu_ms,
        peak_memory_bytes: details.peak_memory_bytes,
        peak_processes: details.peak_processes,
        tools: ToolsUsed {
            connected: connections > 0,
            listed,
            seen: if calls > 0 { Some(true) } else { details.shows_tools.map(|it| it && listed) },
            calls,
        },
    }
}

fn session(details: &SessionDetails) -> wire::SessionDetails<'_> {
    let usage = details.usage.as_ref();
    wire::SessionDetails {
        session_id: details.session.as_str().into(),
        session_mode: details.mode.into(),
        open: details.is_open,
        default: details.is_default,
        running: details.is_running,
        queued: details.queued,
        chosen: Cow::Borrowed(&details.chosen),
        used: usage.map(|usage| usage.used),
        size: usage.map(|usage| usage.size),
        cost: usage.and_then(|usage| usage.cost.as_ref()).map(wire::Cost::from),
        spent: wire::Spent::of(&details.spent),
    }
}
