//! The lines that the port sends, borrowed from the model and written as `docs/wire.md` shows them.
//! Knows no connection.

mod map;
mod node;

use std::collections::BTreeMap;

use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::graph::{self, Graph};
use crate::model::{
    self, Action, AgentId, AgentState, AgentStatus, BlockedAccess, BlockedStatus, Event, FileNode,
    GraphSnapshot, Overlap, OverlapKind, SessionId, SessionKey, SessionMode, UsageReport, Via,
};

pub(super) use map::snapshot;
use node::Node;

/// Encodes what the bus carries; empty if it is no JSON, which an agent's own words may not be.
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
        Event::SessionUpdate { key, update, .. } => session_update(key, update),
        Event::Graph(shown) => graph(shown),
        Event::GraphDelta(delta) => line(&Message::GraphDelta(delta.into())),
    }
}

pub(super) fn graph(graph: &GraphSnapshot) -> Bytes {
    line(&Message::Graph(graph.into()))
}

pub(super) fn usage(report: &UsageReport) -> Bytes {
    line(&Message::Usage {
        session: Session::new(&report.key, report.mode),
        used: report.usage.used,
        size: report.usage.size,
        cost: report.usage.cost.as_ref().map(Cost::from),
    })
}

pub(super) fn blocked(access: &BlockedAccess) -> Bytes {
    line(&Message::Blocked(access.into()))
}

pub(super) fn agent(status: &AgentStatus) -> Bytes {
    line(&Message::Agent(status.into()))
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

/// Tells that `missed` events passed the client by.
pub(super) fn lagged(missed: u64) -> Bytes {
    line(&Message::Lagged { missed })
}

/// Shows the turn that a request waits for as it goes.
pub(super) fn progress(id: &RawValue, session: &SessionId, text: &str) -> Bytes {
    line(&Message::RpcProgress { id, session_id: session.as_str(), text })
}

/// Answers a request; `id` None where the request had none that could be read.
pub(super) fn answer(id: Option<&RawValue>, outcome: Result<&RawValue, &RpcError>) -> Bytes {
    line(&match outcome {
        Ok(result) => Message::RpcResult { id, result },
        Err(error) => Message::RpcError { id, error },
    })
}

/// Returns the schema of every line above.
pub(super) fn schema(answers: &mut SchemaGenerator) -> Schema {
    answers.subschema_for::<Message<'_>>()
}

/// Why nobody can have the graph.
pub(super) const GRAPH_IS_OFF: &str = "the code graph is switched off: `graph.enabled` is false";

/// An error as a client gets it.
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
    /// A session's whole map: takes the place of all that was known of that session.
    Snapshot {
        #[serde(flatten)]
        session: Session<'a>,
        /// Number of the last delta that it contains; 0 for a new session.
        seq: u64,
        /// By path.
        #[serde(serialize_with = "node::by_path")]
        #[schemars(with = "BTreeMap<String, Node>")]
        nodes: &'a [FileNode],
        /// Accesses to further paths that found no room on the map; only if there were any.
        #[serde(skip_serializing_if = "map::is_zero")]
        omitted: u64,
        /// Only if true: `delta` lines with the same `seq` follow, which belong to it.
        #[serde(skip_serializing_if = "map::is_false")]
        more: bool,
    },
    /// What changed in a session.
    Delta {
        #[serde(flatten)]
        session: Session<'a>,
        /// One more than the session's delta before; the same where this line goes on with it.
        seq: u64,
        updates: Vec<Node<'a>>,
        /// Paths that are not on the map any more.
        removed: Vec<&'a str>,
        /// Only if true: the next line of the session goes on with this delta.
        #[serde(skip_serializing_if = "map::is_false")]
        more: bool,
    },
    /// Tokens and money, as last reported; of the orchestrator's session the team's sums.
    Usage {
        #[serde(flatten)]
        session: Session<'a>,
        /// Tokens in context.
        used: u64,
        /// Tokens that the context holds at most.
        size: u64,
        cost: Option<Cost<'a>>,
    },
    /// An access outside an agent's zone; each change of its status is another line.
    Blocked(Blocked<'a>),
    /// Where an agent's life stands.
    Agent(Agent<'a>),
    /// A prompt turn that ended, however it ended.
    Turn {
        agent_id: &'a str,
        session_id: &'a str,
        /// From 0 for each session.
        turn: u64,
        /// ACP's, or `error`.
        stop_reason: &'a str,
        /// Why it ended in an error.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a str>,
    },
    /// Two agents at one symbol.
    Overlap {
        #[schemars(extend("enum" = OverlapKind::ALL.map(OverlapKind::as_str)))]
        kind: &'a str,
        /// The two: where one of them edits, that one first, else by their names.
        agents: [Target<'a>; 2],
        /// Its id; the file's path where its symbols are not known.
        symbol: &'a str,
        /// Of the file.
        path: &'a str,
        /// Symbols in the context of an agent that call it.
        callers: Vec<Caller<'a>>,
        timestamp_ms: u64,
    },
    /// What an agent said of its session: ACP's update, as it came.
    SessionUpdate {
        agent_id: &'a str,
        session_id: &'a str,
        #[schemars(with = "Value")]
        update: &'a RawValue,
    },
    /// The whole code graph: takes the place of all that was known of it.
    Graph(Graph<'a>),
    GraphDelta(graph::Delta<'a>),
    /// The client took lines too slowly: what comes at a join follows anew.
    Lagged {
        /// Events that passed it by.
        missed: u64,
    },
    /// The turn of a prompt with `stream`, as it goes; only to who made the request.
    RpcProgress {
        /// The request's.
        #[schemars(with = "Id")]
        id: &'a RawValue,
        session_id: &'a str,
        /// What the agent went on to say; empty as the turn begins.
        text: &'a str,
    },
    RpcResult {
        /// The request's, as the JSON it was sent as; null in answers to what has none.
        #[schemars(with = "Option<Id>")]
        id: Option<&'a RawValue>,
        #[schemars(with = "Value")]
        result: &'a RawValue,
    },
    RpcError {
        /// The request's, as the JSON it was sent as; null where it had none that could be read.
        #[schemars(with = "Option<Id>")]
        id: Option<&'a RawValue>,
        error: &'a RpcError,
    },
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "the wire's names")]
struct Session<'a> {
    agent_id: &'a str,
    session_id: &'a str,
    #[schemars(extend("enum" = SessionMode::ALL.map(SessionMode::as_str)))]
    session_mode: &'a str,
}

impl<'a> Session<'a> {
    fn new(key: &'a SessionKey, mode: SessionMode) -> Self {
        Self {
            agent_id: key.agent.as_str(),
            session_id: key.session.as_str(),
            session_mode: mode.as_str(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Cost<'a> {
    amount: f64,
    /// ISO 4217 code.
    currency: &'a str,
}

impl<'a> From<&'a model::Cost> for Cost<'a> {
    fn from(cost: &'a model::Cost) -> Self {
        Self { amount: cost.amount, currency: &cost.currency }
    }
}

/// A blocked access, in its line and in answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Blocked<'a> {
    #[serde(flatten)]
    session: Session<'a>,
    /// Relative to the workspace, with forward slashes; absolute if outside.
    path: &'a str,
    #[schemars(extend("enum" = Action::ALL.map(Action::as_str)))]
    action: &'a str,
    timestamp_ms: u64,
    id: &'a str,
    #[schemars(extend("enum" = BlockedStatus::ALL.map(BlockedStatus::as_str)))]
    status: &'a str,
    /// Agents whose own zone contains the path.
    owners: Vec<&'a str>,
    /// The session it was routed to.
    orchestrator: Option<Target<'a>>,
    /// What kind of request it came by.
    #[schemars(extend("enum" = Via::ALL.map(Via::as_str)))]
    via: &'a str,
    /// How many accesses it stands for, which were denied: nobody asked for them by name, or their
    /// agent has more than are listed. `path` is what they have in common. Comes again with the
    /// same id as it grows.
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<u64>,
    /// Only if so: the pattern of a zone's `denied` that matches the path. Only who has the control
    /// token may open it or answer it, and has to say so by `even_denied`.
    #[serde(skip_serializing_if = "Option::is_none")]
    denied_by: Option<&'a str>,
    /// Only after `denied`, and only if so: the tool call that wanted it reports that it completed
    /// all the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    completed: bool,
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

impl<'a> From<&'a BlockedAccess> for Blocked<'a> {
    fn from(access: &'a BlockedAccess) -> Self {
        Self {
            session: Session::new(&access.key, access.mode),
            path: &access.path,
            action: access.action.as_str(),
            timestamp_ms: access.timestamp_ms,
            id: access.id.as_str(),
            status: access.status.as_str(),
            owners: access.owners.iter().map(AgentId::as_str).collect(),
            orchestrator: access.orchestrator.as_ref().map(Target::from),
            via: access.via.as_str(),
            sweep: access.sweep,
            denied_by: access.denied_by.as_deref(),
            completed: access.completed,
        }
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

#[expect(clippy::expect_used, reason = "string keys and no serializer of our own that could fail")]
fn line(message: &Message<'_>) -> Bytes {
    let mut line = serde_json::to_vec(message).expect("wire messages always serialize");
    line.push(b'\n');
    line.into()
}
