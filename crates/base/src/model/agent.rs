//! The lifecycle state of a supervised agent.

use super::named::named;
use super::{AgentId, TimestampMs};

named! {
    /// The lifecycle of a supervised agent, as the wire shows it.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum AgentState {
        /// Waits for its dependencies.
        Initializing = "initializing",
        /// Spawned; its session is not open yet.
        Connecting = "connecting",
        Ready = "ready",
        Error = "error",
        Stopped = "stopped",
        /// Exited, and waits for its next start.
        Restarting = "restarting",
    }
}

impl AgentState {
    /// Whether it does not run and is not restarted automatically.
    pub fn is_at_rest(self) -> bool {
        matches!(self, Self::Error | Self::Stopped)
    }
}

/// The prefix of the reason of a stalled agent.
pub const STALLED: &str = "stalled:";

/// The state of an agent; each change of it is published.
#[derive(Clone, PartialEq, Debug)]
pub struct AgentStatus {
    /// The agent's id, as in `eisen.toml`.
    pub agent: AgentId,
    /// The place in its lifecycle.
    pub state: AgentState,
    /// The process that runs it; None: there is no process.
    pub pid: Option<u32>,
    /// The reason of the state, if there is one.
    pub reason: Option<String>,
    /// Restarts since the team came up.
    pub restarts: u32,
    /// The candidate that it runs, if it has a tier.
    pub candidate: Option<TakenCandidate>,
    /// The time of this status.
    pub timestamp_ms: TimestampMs,
}

/// The candidate of a tier that an agent runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TakenCandidate {
    /// The name of the tier, as in `[[tiers]]`.
    pub tier: String,
    /// The name of the launch profile.
    pub profile: String,
    /// The model that the candidate names; None: the agent's own choice.
    pub model: Option<String>,
}

impl AgentStatus {
    /// Whether it runs but makes no progress.
    pub fn is_stalled(&self) -> bool {
        self.state == AgentState::Ready
            && self.reason.as_ref().is_some_and(|reason| reason.starts_with(STALLED))
    }
}

/// An order to a running team about an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Start the agent.
    Start,
    /// Stop the agent; it is not started again by itself.
    Stop,
    /// Stop the agent if it runs, and start it.
    Restart,
}
