use super::{AgentId, TimestampMs};

/// The lifecycle of a supervised agent, as the wire shows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AgentState {
    /// Waits for what it depends on.
    Initializing,
    /// Spawned, until its session is open.
    Connecting,
    Ready,
    Error,
    Stopped,
    /// Died, and waits for its next start.
    Restarting,
}

impl AgentState {
    pub const ALL: [Self; 6] = [
        Self::Initializing,
        Self::Connecting,
        Self::Ready,
        Self::Error,
        Self::Stopped,
        Self::Restarting,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initializing => "initializing",
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::Error => "error",
            Self::Stopped => "stopped",
            Self::Restarting => "restarting",
        }
    }

    /// Whether it does not run, and will not by itself.
    pub fn is_at_rest(self) -> bool {
        matches!(self, Self::Error | Self::Stopped)
    }
}

/// How the reason of an agent begins that is ready, and does not get on.
pub const STALLED: &str = "stalled:";

#[derive(Clone, PartialEq, Debug)]
pub struct AgentStatus {
    pub agent: AgentId,
    pub state: AgentState,
    pub pid: Option<u32>,
    /// Why it is in this state, where that needs saying.
    pub reason: Option<String>,
    /// Restarts since the team came up.
    pub restarts: u32,
    pub timestamp_ms: TimestampMs,
}

impl AgentStatus {
    /// Whether it runs, and does not get on.
    pub fn is_stalled(&self) -> bool {
        self.state == AgentState::Ready
            && self.reason.as_ref().is_some_and(|reason| reason.starts_with(STALLED))
    }
}

/// What a running team is asked to do with an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    Start,
    Stop,
    Restart,
}
