//! The lines that the port sends, borrowed from the model and written as `docs/wire.md` shows them.
//! Knows no connection.

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::{
    AgentId, AgentStatus, BlockedAccess, Event, FileNode, SessionKey, SessionMode, Snapshot,
    UsageReport,
};

/// Encodes what the bus carries; empty for what no client can ask for.
pub(super) fn event(event: &Event) -> Bytes {
    match event {
        Event::Snapshot(shown) => snapshot(shown),
        Event::Delta(delta) => line(&Message::Delta {
            session: Session::new(&delta.key, delta.mode),
            seq: delta.seq,
            updates: delta.updates.iter().map(Node::from).collect(),
            removed: delta.removed.iter().map(AsRef::as_ref).collect(),
        }),
        Event::Usage(report) => usage(report),
        Event::Turn(end) => line(&Message::Turn {
            agent_id: end.key.agent.as_str(),
            session_id: end.key.session.as_str(),
            turn: end.turn,
            stop_reason: &end.stop_reason,
            reason: end.reason.as_deref(),
        }),
        Event::Blocked(access) => blocked(access),
        Event::Agent(status) => agent(status),
        Event::SessionUpdate { .. } => Bytes::new(),
    }
}

pub(super) fn snapshot(snapshot: &Snapshot) -> Bytes {
    line(&Message::Snapshot {
        session: Session::new(&snapshot.key, snapshot.mode),
        seq: snapshot.seq,
        nodes: &snapshot.nodes,
    })
}

pub(super) fn usage(report: &UsageReport) -> Bytes {
    line(&Message::Usage {
        session: Session::new(&report.key, report.mode),
        used: report.usage.used,
        size: report.usage.size,
        cost: report
            .usage
            .cost
            .as_ref()
            .map(|cost| Cost { amount: cost.amount, currency: &cost.currency }),
    })
}

pub(super) fn blocked(access: &BlockedAccess) -> Bytes {
    line(&Message::Blocked(access.into()))
}

pub(super) fn agent(status: &AgentStatus) -> Bytes {
    line(&Message::Agent(status.into()))
}

/// Tells that `missed` events passed the client by.
pub(super) fn lagged(missed: u64) -> Bytes {
    line(&Message::Lagged { missed })
}

/// Answers a request; `id` None where the request had none that could be read.
pub(super) fn answer(id: Option<&RawValue>, outcome: Result<&Value, &RpcError>) -> Bytes {
    line(&match outcome {
        Ok(result) => Message::RpcResult { id, result },
        Err(error) => Message::RpcError { id, error },
    })
}

/// An error as a client gets it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct RpcError {
    pub(super) code: u16,
    pub(super) message: String,
}

impl RpcError {
    pub(super) fn new(code: u16, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Message<'a> {
    Snapshot {
        #[serde(flatten)]
        session: Session<'a>,
        seq: u64,
        #[serde(serialize_with = "by_path")]
        nodes: &'a [FileNode],
    },
    Delta {
        #[serde(flatten)]
        session: Session<'a>,
        seq: u64,
        updates: Vec<Node<'a>>,
        removed: Vec<&'a str>,
    },
    Usage {
        #[serde(flatten)]
        session: Session<'a>,
        used: u64,
        size: u64,
        cost: Option<Cost<'a>>,
    },
    Blocked(Blocked<'a>),
    Agent(Agent<'a>),
    Turn {
        agent_id: &'a str,
        session_id: &'a str,
        turn: u64,
        stop_reason: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a str>,
    },
    Lagged {
        missed: u64,
    },
    RpcResult {
        id: Option<&'a RawValue>,
        result: &'a Value,
    },
    RpcError {
        id: Option<&'a RawValue>,
        error: &'a RpcError,
    },
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the wire's names")]
struct Session<'a> {
    agent_id: &'a str,
    session_id: &'a str,
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

#[derive(Serialize)]
struct Node<'a> {
    path: &'a str,
    heat: f64,
    in_context: bool,
    last_action: &'a str,
    turn_accessed: u64,
    timestamp_ms: u64,
}

impl<'a> From<&'a FileNode> for Node<'a> {
    fn from(node: &'a FileNode) -> Self {
        Self {
            path: &node.path,
            heat: node.heat,
            in_context: node.in_context,
            last_action: node.last_action.as_str(),
            turn_accessed: node.turn_accessed,
            timestamp_ms: node.timestamp_ms,
        }
    }
}

#[derive(Serialize)]
struct Cost<'a> {
    amount: f64,
    currency: &'a str,
}

/// A blocked access, in its line and in answers.
#[derive(Serialize)]
pub(super) struct Blocked<'a> {
    #[serde(flatten)]
    session: Session<'a>,
    path: &'a str,
    action: &'a str,
    timestamp_ms: u64,
    id: &'a str,
    status: &'a str,
    owners: Vec<&'a str>,
    orchestrator: Option<Target<'a>>,
    via: &'a str,
}

#[derive(Serialize)]
struct Target<'a> {
    agent_id: &'a str,
    session_id: &'a str,
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
            orchestrator: access.orchestrator.as_ref().map(|key| Target {
                agent_id: key.agent.as_str(),
                session_id: key.session.as_str(),
            }),
            via: access.via.as_str(),
        }
    }
}

/// An agent, in its line and in answers.
#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the wire's names")]
pub(super) struct Agent<'a> {
    agent_id: &'a str,
    state: &'a str,
    pid: Option<u32>,
    reason: Option<&'a str>,
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

fn by_path<S: serde::Serializer>(nodes: &[FileNode], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(nodes.iter().map(|node| (&*node.path, Node::from(node))))
}

#[expect(clippy::expect_used, reason = "string keys and no serializer of our own that could fail")]
fn line(message: &Message<'_>) -> Bytes {
    let mut line = serde_json::to_vec(message).expect("wire messages always serialize");
    line.push(b'\n');
    line.into()
}
