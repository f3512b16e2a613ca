use std::fmt;
use std::sync::Arc;

use super::{AgentId, BlockedId, SessionKey, SessionMode, TimestampMs};

/// What an access wants to do with a path; a zone judges the two apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    Read,
    Write,
}

impl Action {
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a blocked access was met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Via {
    /// `fs/read_text_file` or `fs/write_text_file`.
    Fs,
    /// `terminal/create`.
    Terminal,
    /// `session/request_permission`.
    Permission,
    /// A call that the kernel stopped.
    Kernel,
    /// A tool call, seen after the fact.
    Tool,
}

impl Via {
    pub const ALL: [Self; 5] =
        [Self::Fs, Self::Terminal, Self::Permission, Self::Kernel, Self::Tool];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fs => "fs",
            Self::Terminal => "terminal",
            Self::Permission => "permission",
            Self::Kernel => "kernel",
            Self::Tool => "tool",
        }
    }
}

/// How far the life of a blocked access has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockedStatus {
    /// The agent got the error.
    Denied,
    /// The request waits for a decision.
    Pending,
    Allowed,
    /// The orchestrator gave the content itself.
    Answered,
    /// Its turn, session or agent ended before a decision.
    Expired,
    /// Seen after the fact: there was nothing left to stop.
    Observed,
}

impl BlockedStatus {
    pub const ALL: [Self; 6] =
        [Self::Denied, Self::Pending, Self::Allowed, Self::Answered, Self::Expired, Self::Observed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Pending => "pending",
            Self::Allowed => "allowed",
            Self::Answered => "answered",
            Self::Expired => "expired",
            Self::Observed => "observed",
        }
    }
}

/// An access outside the agent's zone, as it stands now.
#[derive(Clone, Debug)]
pub struct BlockedAccess {
    pub id: BlockedId,
    pub key: SessionKey,
    /// Mode of the session that tried.
    pub mode: SessionMode,
    /// Relative to the workspace; absolute if outside.
    pub path: Arc<str>,
    pub action: Action,
    pub via: Via,
    pub status: BlockedStatus,
    /// Agents whose own zone contains the path.
    pub owners: Vec<AgentId>,
    /// The session it was routed to, if an orchestrator is there.
    pub orchestrator: Option<SessionKey>,
    /// How many accesses it stands for, if nobody asked for them by name: `path` is what they have
    /// in common.
    pub sweep: Option<u64>,
    /// The pattern of `denied` that matches it: no agent's decision opens it.
    pub denied_by: Option<Arc<str>>,
    /// It was denied, and the tool call that wanted it reports that it completed all the same.
    pub completed: bool,
    pub timestamp_ms: TimestampMs,
}

impl BlockedAccess {
    /// Whether content can stand for what was asked for: only `fs/read_text_file` returns any.
    pub fn is_answerable(&self) -> bool {
        self.via == Via::Fs && self.action == Action::Read
    }
}

/// What follows an access outside the zone that a tool call told of after the fact, beside the
/// report.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum OnViolation {
    #[default]
    Report,
    /// The end of the turn, as its client would cancel it.
    Cancel,
    /// The end of the agent.
    Stop,
}
