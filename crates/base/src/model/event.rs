//! Events on the bus, and the topics that clients subscribe to.

use std::collections::BTreeMap;
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
    /// A session's map changed.
    Delta(Delta),
    /// A session's tokens or cost changed.
    Usage(UsageReport),
    /// A prompt turn ended.
    Turn(TurnEnd),
    /// The `update` object of a `session/update`, verbatim JSON.
    SessionUpdate {
        /// The session of the update.
        key: SessionKey,
        /// The mode of the session, for the filters of clients.
        mode: SessionMode,
        /// The JSON object, unchanged and not validated.
        update: Arc<str>,
    },
    /// Two agents work on the same symbol.
    Overlap(Overlap),
    /// A blocked access with its new state.
    Blocked(BlockedAccess),
    /// An agent with its new state.
    Agent(AgentStatus),
    /// A budget stands differently.
    Budget(BudgetReport),
    /// Another value is chosen in a session.
    Chosen(ChosenOptions),
    /// A session goes in a loop.
    Loop(LoopReport),
    /// Announces the code graph when it is built.
    Graph(GraphSnapshot),
    /// The code graph changed.
    GraphDelta(GraphDelta),
    /// A conflict with its new state.
    Conflict(Conflict),
    /// A task with its new state.
    Task(TaskReport),
    /// An agent tells its team something.
    Report(AgentReport),
    /// A stream stands differently.
    Stream(StreamReport),
    /// A line of a team elsewhere, on the bus of a hub.
    Relayed(Relayed),
    /// An event of a session for the journal; it has no line on the wire.
    Record {
        /// The session of the record; its session id is empty if it is not known.
        key: SessionKey,
        /// The event for the journal.
        record: Record,
        /// The session's current turn; None: the tracker did not say it.
        turn: Option<u64>,
        /// The time of the event.
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

/// The values that are chosen in a session, of the options that its agent offers there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChosenOptions {
    /// The session of the options.
    pub key: SessionKey,
    /// The value of each option.
    pub chosen: BTreeMap<String, String>,
    /// The time of the change.
    pub timestamp_ms: TimestampMs,
}

/// A session's whole map; contains every delta up to `seq`.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// The session that has the map.
    pub key: SessionKey,
    /// `Orchestrator`: the map merges those of all sessions of the team.
    pub mode: SessionMode,
    /// The number of the last delta that the map contains; 0 for a new session.
    pub seq: u64,
    /// All files on the map.
    pub nodes: Vec<FileNode>,
    /// Accesses dropped because the map was full.
    pub omitted: u64,
}

/// The changes of a session's map.
#[derive(Clone, PartialEq, Debug)]
pub struct Delta {
    /// The session that has the map.
    pub key: SessionKey,
    /// `Orchestrator`: the map merges those of all sessions of the team.
    pub mode: SessionMode,
    /// The number of the delta, one more than that of the delta before.
    pub seq: u64,
    /// Whole nodes that are new, or replace those of the same path.
    pub updates: Vec<FileNode>,
    /// Paths that are no longer on the map.
    pub removed: Vec<Arc<str>>,
}

/// A session's context and spending.
#[derive(Clone, PartialEq, Debug)]
pub struct UsageReport {
    /// The session. The orchestrator's has the sums of the team.
    pub key: SessionKey,
    /// The mode of the session, for the filters of clients.
    pub mode: SessionMode,
    /// None: its agent has not reported it.
    pub usage: Option<Usage>,
    /// Since the team began.
    pub spent: Spent,
}

/// The end of a prompt turn, for any reason.
#[derive(Clone, PartialEq, Debug)]
pub struct TurnEnd {
    /// The session of the turn.
    pub key: SessionKey,
    /// The mode of the session, for the filters of clients.
    pub mode: SessionMode,
    /// The number of the turn, from 0 for each session.
    pub turn: u64,
    /// The stop reason of the protocol, or `error`.
    pub stop_reason: Arc<str>,
    /// The cause for people; None: nothing is to be added.
    pub reason: Option<Arc<str>>,
    /// The sum of what was reported while the turn ran.
    pub spent: Spent,
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
    /// The thing whose state the line says: a later line with the same subject replaces it. None: the line
    /// says what happened.
    pub subject: Option<Arc<str>>,
    /// Ended by a line feed.
    pub line: Arc<str>,
    /// The line without what an agent said, for clients that may not read that; None: it has nothing of
    /// it.
    pub reduced: Option<Arc<str>>,
}
