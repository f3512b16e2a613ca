use std::sync::Arc;

use super::{
    AgentStatus, BlockedAccess, FileNode, GraphDelta, GraphSnapshot, Overlap, SessionKey,
    SessionMode, Usage,
};

/// What the bus carries to whoever watches the team.
#[derive(Clone, Debug)]
pub enum Event {
    /// Announces a new session, or one that took another's place.
    Snapshot(Snapshot),
    Delta(Delta),
    Usage(UsageReport),
    Turn(TurnEnd),
    /// The `update` object of a `session/update`, verbatim JSON.
    SessionUpdate {
        key: SessionKey,
        mode: SessionMode,
        update: Arc<str>,
    },
    Overlap(Overlap),
    Blocked(BlockedAccess),
    Agent(AgentStatus),
    /// Announces the code graph, once it is there.
    Graph(GraphSnapshot),
    GraphDelta(GraphDelta),
}

impl Event {
    /// What one has to subscribe to for it; None for what everybody gets.
    pub fn topic(&self) -> Option<Topic> {
        match self {
            Self::SessionUpdate { .. } => Some(Topic::SessionUpdate),
            Self::Overlap(_) => Some(Topic::Overlap),
            Self::Graph(_) | Self::GraphDelta(_) => Some(Topic::Graph),
            _ => None,
        }
    }
}

/// What is off until one subscribes to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Topic {
    SessionUpdate,
    Overlap,
    Graph,
}

impl Topic {
    pub const ALL: [Self; 3] = [Self::SessionUpdate, Self::Overlap, Self::Graph];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionUpdate => "session_update",
            Self::Overlap => "overlap",
            Self::Graph => "graph",
        }
    }
}

/// A session's whole map; contains every delta up to `seq`.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    pub key: SessionKey,
    pub mode: SessionMode,
    pub seq: u64,
    pub nodes: Vec<FileNode>,
    /// Accesses to further paths that found no room.
    pub omitted: u64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Delta {
    pub key: SessionKey,
    pub mode: SessionMode,
    pub seq: u64,
    pub updates: Vec<FileNode>,
    pub removed: Vec<Arc<str>>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct UsageReport {
    pub key: SessionKey,
    pub mode: SessionMode,
    pub usage: Usage,
}

/// A prompt turn that ended, however it ended.
#[derive(Clone, PartialEq, Debug)]
pub struct TurnEnd {
    pub key: SessionKey,
    pub mode: SessionMode,
    pub turn: u64,
    pub stop_reason: Arc<str>,
    pub reason: Option<Arc<str>>,
}
