//! Events on the bus, and the topics that clients subscribe to.

use std::sync::Arc;

use super::named::named;
use super::{
    AgentId, AgentReport, AgentStatus, BlockedAccess, BudgetReport, Conflict, FileNode, GraphDelta,
    GraphSnapshot, LoopReport, Overlap, Record, SessionKey, SessionMode, Spent, StreamReport,
    TaskReport, TimestampMs, Usage,
};

/// An event on the bus.
#[derive(Clone, Debug)]
pub enum Event {
    /// Announces a session, or a session that shows another map now.
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
    /// A budget stands differently.
    Budget(BudgetReport),
    /// A session goes in a loop.
    Loop(LoopReport),
    /// Announces the code graph when it is built.
    Graph(GraphSnapshot),
    GraphDelta(GraphDelta),
    /// A conflict with its new state.
    Conflict(Conflict),
    /// A task with its new state.
    Task(TaskReport),
    Report(AgentReport),
    /// A stream stands differently.
    Stream(StreamReport),
    /// A line of a team elsewhere, on the bus of a hub.
    Relayed(Relayed),
    /// An event of a session for the journal; it has no line on the wire.
    Record {
        key: SessionKey,
        record: Record,
        /// The session's current turn; None: the tracker did not say it.
        turn: Option<u64>,
        timestamp_ms: TimestampMs,
    },
}

impl Event {
    /// The topic to subscribe to; None for events that every client gets.
    pub fn topic(&self) -> Option<Topic> {
        match self {
            Self::SessionUpdate { .. } => Some(Topic::SessionUpdate),
            Self::Overlap(_) => Some(Topic::Overlap),
            Self::Graph(_) | Self::GraphDelta(_) => Some(Topic::Graph),
            Self::Task(_) => Some(Topic::Task),
            Self::Report(_) => Some(Topic::Report),
            Self::Record { .. } => Some(Topic::Record),
            Self::Relayed(relayed) => relayed.topic,
            _ => None,
        }
    }
}

named! {
    /// Events that are off until a client subscribes.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Topic {
        SessionUpdate = "session_update",
        Overlap = "overlap",
        Graph = "graph",
        Task = "task",
        Report = "report",
        Record = "record",
    }
}

impl Topic {
    /// The topics of the wire.
    pub const ON_WIRE: [Self; 5] =
        [Self::SessionUpdate, Self::Overlap, Self::Graph, Self::Task, Self::Report];
}

/// A session's whole map; contains every delta up to `seq`.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    pub key: SessionKey,
    pub mode: SessionMode,
    pub seq: u64,
    pub nodes: Vec<FileNode>,
    /// Accesses dropped because the map was full.
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
    /// None: its agent has not reported it.
    pub usage: Option<Usage>,
    /// Since the team began.
    pub spent: Spent,
}

/// The end of a prompt turn, for any reason.
#[derive(Clone, PartialEq, Debug)]
pub struct TurnEnd {
    pub key: SessionKey,
    pub mode: SessionMode,
    pub turn: u64,
    pub stop_reason: Arc<str>,
    pub reason: Option<Arc<str>>,
}

/// A line of a team elsewhere, as clients of a hub get it, with what decides who does. Its ids are those of the
/// hub.
#[derive(Clone, PartialEq, Debug)]
pub struct Relayed {
    /// The topic to subscribe to; None: every client gets it.
    pub topic: Option<Topic>,
    /// The session that it is about, if it is about one.
    pub session: Option<(SessionKey, SessionMode)>,
    /// The agent that it is about; None: a whole team.
    pub agent: Option<AgentId>,
    /// What it says the state of: a later line with the same subject replaces it. None: it says what
    /// happened.
    pub subject: Option<Arc<str>>,
    /// Ended by a line feed.
    pub line: Arc<str>,
    /// The line without what an agent said, for clients that may not read that; None: it has nothing of
    /// it.
    pub reduced: Option<Arc<str>>,
}
