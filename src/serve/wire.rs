//! Owns the lines that the port sends, borrowed from the model and encoded as in `docs/wire.md`.

mod blocked;
mod budget;
mod conflict;
mod loops;
mod map;
mod node;
mod replayed;
mod spent;
mod stream;
mod task;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::graph::{self, Graph};
use crate::model::{
    AgentState, AgentStatus, BlockedAccess, Conflict, Event, FileNode, GraphSnapshot, Overlap,
    OverlapKind, SessionId, SessionKey, SessionMode, TaskReport,
};

pub(super) use blocked::Blocked;
pub(super) use budget::{Budget, budget};
pub(super) use conflict::ConflictLine;
pub(super) use map::snapshot;
use node::Node;
pub(super) use replayed::{add_mark, replayed};
pub use spent::spent;
pub(super) use spent::{Cost, Spent, usage};
pub(super) use stream::StreamStatus;
use task::TaskLine;

/// Encodes an event; empty if an agent's update is not JSON.
pub fn encode(event: &Event) -> Bytes {
    match event {
        Event::Snapshot(shown) => snapshot(shown),
        Event::Delta(delta) => map::delta(delta),
        Event::Usage(report) => usage(report),
        Event::Turn(end) => line(&Message::Turn {
            agent_id: end.key.agent.as_str(),
            session_id: end.key.session.as_str(),
            turn: end.turn,
            stop_reason: &end.stop_reason,
            reason: end.reason.as_deref(),
        }),
        Event::Overlap(found) => overlap(found),
        Event::Blocked(access) => blocked(access),
        Event::Agent(status) => agent(status),
        Event::Budget(report) => budget(report),
        Event::Loop(report) => loops::looped(report),
        Event::SessionUpdate { key, update, .. } => session_update(key, update),
        Event::Graph(shown) => graph(shown),
        Event::GraphDelta(delta) => line(&Message::GraphDelta(delta.into())),
        Event::Conflict(found) => conflict(found),
        Event::Task(report) => task(report),
        Event::Report(report) => line(&Message::Report {
            agent_id: report.agent.as_str(),
            text: &report.text,
            timestamp_ms: report.timestamp_ms,
        }),
        Event::Stream(report) => stream::stream(report),
        Event::Relayed(relayed) => Bytes::copy_from_slice(relayed.line.as_bytes()),
        // Records are for the journal, and have no line.
        Event::Record { .. } => Bytes::new(),
    }
}

pub(super) fn graph(graph: &GraphSnapshot) -> Bytes {
    line(&Message::Graph(graph.into()))
}

pub(super) fn blocked(access: &BlockedAccess) -> Bytes {
    line(&Message::Blocked(access.into()))
}

pub(super) fn agent(status: &AgentStatus) -> Bytes {
    line(&Message::Agent(status.into()))
}

pub(super) fn conflict(found: &Conflict) -> Bytes {
    line(&Message::Conflict(found.into()))
}

pub(super) fn task(report: &TaskReport) -> Bytes {
    line(&Message::Task(report.into()))
}

fn overlap(found: &Overlap) -> Bytes {
    line(&Message::Overlap {
        kind: found.kind.as_str(),
        agents: found.between.each_ref().map(Target::from),
        symbol: &found.symbol,
        path: &found.path,
        callers: found.callers.iter().map(|(symbol, key)| Caller::new(symbol, key)).collect(),
        timestamp_ms: found.timestamp_ms,
    })
}

fn session_update(key: &SessionKey, update: &str) -> Bytes {
    serde_json::from_str(update).map_or_else(
        |_| Bytes::new(),
        |update| {
            line(&Message::SessionUpdate {
                agent_id: key.agent.as_str(),
                session_id: key.session.as_str(),
                update,
            })
        },
    )
}

/// Encodes that the client missed `missed` events.
pub(super) fn lagged(missed: u64) -> Bytes {
    line(&Message::Lagged { missed })
}

/// Encodes the progress of a turn that a request waits for.
pub(super) fn progress(id: &RawValue, session: &SessionId, text: &str) -> Bytes {
    line(&Message::RpcProgress { id, session_id: session.as_str(), text })
}

/// Encodes an answer; `id` is None if the request's id was not readable.
pub(super) fn answer(id: Option<&RawValue>, outcome: Result<&RawValue, &RpcError>) -> Bytes {
    line(&match outcome {
        Ok(result) => Message::RpcResult { id, result },
        Err(error) => Message::RpcError { id, error },
    })
}

/// Returns the schema of all lines above.
pub(super) fn schema(answers: &mut SchemaGenerator) -> Schema {
    answers.subschema_for::<Message<'_>>()
}

/// The error for requests of the graph while it is off.
pub(super) const GRAPH_IS_OFF: &str = "the code graph is switched off: `graph.enabled` is false";

/// An error as the client gets it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub(super) struct RpcError {
    /// 400, 401, 403, 404, 409 or 500.
    pub(super) code: u16,
    pub(super) message: String,
}

impl RpcError {
    pub(super) fn new(code: u16, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(rename = "ServerLine")]
enum Message<'a> {
    /// A session's whole map: replaces the map that the client has.
    Snapshot {
        #[serde(flatten)]
        session: SessionHeader<'a>,
        /// Number of the last delta that it contains; 0 for a new session.
        seq: u64,
        /// By path.
        #[serde(serialize_with = "node::by_path")]
        #[schemars(with = "BTreeMap<String, Node>")]
        nodes: &'a [FileNode],
        /// Accesses to further paths that did not fit on the map; only if there were any.
        #[serde(skip_serializing_if = "map::is_zero")]
        omitted: u64,
        /// Only if true: `delta` lines with the same `seq` follow, which are part of it.
        #[serde(skip_serializing_if = "map::is_false")]
        more: bool,
    },
    /// What changed in a session.
    // Most lines are of this kind, and a flattened header takes longer to encode.
    Delta {
        agent_id: &'a str,
        session_id: &'a str,
        #[schemars(extend("enum" = SessionMode::ALL.map(SessionMode::as_str)))]
        session_mode: &'a str,
        /// One more than the session's delta before; the same where this line continues it.
        seq: u64,
        #[serde(serialize_with = "node::each")]
        #[schemars(with = "Vec<Node<'a>>")]
        updates: &'a [FileNode],
        /// Paths that are no longer on the map.
        removed: &'a [Arc<str>],
        /// Only if true: the session's next line continues this delta.
        #[serde(skip_serializing_if = "map::is_false")]
        more: bool,
    },
    /// Tokens and cost, as last reported; for the orchestrator's session the team's sums.
    Usage {
        #[serde(flatten)]
        session: SessionHeader<'a>,
        /// Tokens in context; null if the agent does not report it.
        used: Option<u64>,
        /// Size of the context in tokens.
        size: u64,
        cost: Option<Cost<'a>>,
        /// Only once something was reported.
        #[serde(skip_serializing_if = "Option::is_none")]
        spent: Option<Spent<'a>>,
    },
    /// An access outside an agent's zone; each change of its status is another line.
    Blocked(Blocked<'a>),
    /// The state of an agent's process.
    Agent(Agent<'a>),
    Budget(Budget<'a>),
    Loop(loops::Looped<'a>),
    /// A prompt turn that ended, however it ended.
    Turn {
        agent_id: &'a str,
        session_id: &'a str,
        /// From 0 for each session.
        turn: u64,
        /// A stop reason of ACP, or `error`.
        stop_reason: &'a str,
        /// Why it ended in an error.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a str>,
    },
    /// Two agents at the same symbol.
    Overlap {
        #[schemars(extend("enum" = OverlapKind::ALL.map(OverlapKind::as_str)))]
        kind: &'a str,
        /// Both agents: one that edits first, otherwise ordered by name.
        agents: [Target<'a>; 2],
        /// Id of the symbol; the file's path where its symbols are not known.
        symbol: &'a str,
        /// Path of the file.
        path: &'a str,
        /// Symbols in the context of an agent that call it.
        callers: Vec<Caller<'a>>,
        timestamp_ms: u64,
    },
    /// An agent's `session/update` of ACP, unchanged.
    SessionUpdate {
        agent_id: &'a str,
        session_id: &'a str,
        #[schemars(with = "Value")]
        update: &'a RawValue,
    },
    /// The whole code graph: replaces the graph that the client has.
    Graph(Graph<'a>),
    GraphDelta(graph::Delta<'a>),
    Conflict(ConflictLine<'a>),
    Task(TaskLine<'a>),
    /// What an agent reports to its team.
    Report {
        agent_id: &'a str,
        text: &'a str,
        timestamp_ms: u64,
    },
    Stream(StreamStatus<'a>),
    /// The client read too slowly: the state follows anew, as after a join.
    Lagged {
        /// Number of events that it missed.
        missed: u64,
    },
    /// Progress of the turn of a prompt with `stream`; only to the client that made the request.
    RpcProgress {
        /// Id of the request.
        #[schemars(with = "Id")]
        id: &'a RawValue,
        session_id: &'a str,
        /// New text of the agent; empty as the turn begins.
        text: &'a str,
    },
    RpcResult {
        /// Id of the request, as the JSON it was sent as; null in answers to lines without one.
        #[schemars(with = "Option<Id>")]
        id: Option<&'a RawValue>,
        #[schemars(with = "Value")]
        result: &'a RawValue,
    },
    RpcError {
        /// Id of the request, as the JSON it was sent as; null where it could not be read.
        #[schemars(with = "Option<Id>")]
        id: Option<&'a RawValue>,
        error: &'a RpcError,
    },
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
struct SessionHeader<'a> {
    agent_id: &'a str,
    session_id: &'a str,
    #[schemars(extend("enum" = SessionMode::ALL.map(SessionMode::as_str)))]
    session_mode: &'a str,
}

impl<'a> SessionHeader<'a> {
    fn new(key: &'a SessionKey, mode: SessionMode) -> Self {
        Self {
            agent_id: key.agent.as_str(),
            session_id: key.session.as_str(),
            session_mode: mode.as_str(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Target<'a> {
    agent_id: &'a str,
    session_id: &'a str,
}

impl<'a> From<&'a SessionKey> for Target<'a> {
    fn from(key: &'a SessionKey) -> Self {
        Self { agent_id: key.agent.as_str(), session_id: key.session.as_str() }
    }
}

/// A symbol in the context of an agent's session.
#[derive(Serialize, JsonSchema)]
struct Caller<'a> {
    symbol: &'a str,
    #[serde(flatten)]
    session: Target<'a>,
}

impl<'a> Caller<'a> {
    fn new(symbol: &'a str, key: &'a SessionKey) -> Self {
        Self { symbol, session: key.into() }
    }
}

/// An agent, in its line and in answers.
#[derive(Serialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "the wire's names")]
pub(super) struct Agent<'a> {
    agent_id: &'a str,
    #[schemars(extend("enum" = AgentState::ALL.map(AgentState::as_str)))]
    state: &'a str,
    /// Null without a process.
    pid: Option<u32>,
    /// Why it is in this state, where that needs saying.
    reason: Option<&'a str>,
    /// Since the team came up.
    restarts: u32,
    timestamp_ms: u64,
    /// What it runs; left out for an agent without a tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate: Option<Candidate<'a>>,
}

/// The candidate of a tier that an agent runs.
#[derive(Serialize, JsonSchema)]
struct Candidate<'a> {
    tier: &'a str,
    profile: &'a str,
    /// Null: the agent's own.
    model: Option<&'a str>,
}

impl<'a> From<&'a AgentStatus> for Agent<'a> {
    fn from(status: &'a AgentStatus) -> Self {
        Self {
            agent_id: status.agent.as_str(),
            state: status.state.as_str(),
            pid: status.pid,
            reason: status.reason.as_deref(),
            restarts: status.restarts,
            timestamp_ms: status.timestamp_ms,
            candidate: status.candidate.as_ref().map(|taken| Candidate {
                tier: &taken.tier,
                profile: &taken.profile,
                model: taken.model.as_deref(),
            }),
        }
    }
}

/// What a request is known by.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "stands in the schema for raw JSON")]
pub(super) enum Id {
    Text(String),
    Number(f64),
}

/// Bytes that most lines fit into.
const USUAL_LINE: usize = 512;

#[expect(clippy::expect_used, reason = "string keys and no serializer of our own that could fail")]
fn line(message: &Message<'_>) -> Bytes {
    let mut line = Vec::with_capacity(USUAL_LINE);
    serde_json::to_writer(&mut line, message).expect("wire messages always serialize");
    line.push(b'\n');
    line.into()
}
