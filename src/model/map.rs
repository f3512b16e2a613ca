use std::sync::Arc;

use super::{TimestampMs, Touch};

/// A file on the heat map of a session.
#[derive(Clone, PartialEq, Debug)]
pub struct FileNode {
    /// Relative to the workspace with forward slashes; absolute if outside.
    pub path: Arc<str>,
    /// 0 … 1.
    pub heat: f64,
    pub in_context: bool,
    pub last_action: Touch,
    /// Number of the turn of the last access, from 0 for each session.
    pub turn_accessed: u64,
    pub timestamp_ms: TimestampMs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionMode {
    SingleAgent,
    Orchestrator,
}

impl SessionMode {
    pub const ALL: [Self; 2] = [Self::SingleAgent, Self::Orchestrator];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::SingleAgent => "single_agent",
            Self::Orchestrator => "orchestrator",
        }
    }
}

/// Tokens and money, as a session's agent last reported them.
#[derive(Clone, PartialEq, Debug)]
pub struct Usage {
    /// Tokens in context.
    pub used: u64,
    /// Tokens that the context holds at most.
    pub size: u64,
    pub cost: Option<Cost>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Cost {
    pub amount: f64,
    /// ISO 4217 code.
    pub currency: Arc<str>,
}
