//! A line of a team's port, as a hub takes it: maps are read, and all else is passed on with the names
//! that a hub has. Pure.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::names;
use crate::line::lenient;
use crate::model::{
    AgentId, FileNode, Relayed, SessionId, SessionKey, SessionMode, Topic, Touch, Variants,
};
use crate::wire::{ListAgents, Method as _};

/// The content of a line.
#[derive(Debug)]
pub(super) enum HubLine {
    /// The map of a session; with `more` it goes on.
    Map {
        key: SessionKey,
        mode: SessionMode,
        seq: u64,
        nodes: Vec<FileNode>,
        omitted: u64,
        more: bool,
    },
    Changes {
        key: SessionKey,
        seq: u64,
        updates: Vec<FileNode>,
        removed: Vec<Arc<str>>,
        more: bool,
    },
    /// `stands`: it is part of the present state; None: it does not say a state.
    Relayed { relayed: Relayed, stands: Option<bool> },
    /// The whole state was sent, with the answer to `list_agents`.
    Joined(Value),
    /// Nothing for clients of a hub.
    Nothing,
}

/// The id of the request whose answer ends the whole state.
pub(super) const JOINED: &str = "joined";

#[derive(Deserialize)]
struct MapFields {
    #[serde(default)]
    seq: u64,
    #[serde(default)]
    nodes: Map<String, Value>,
    #[serde(default)]
    updates: Vec<NodeFields>,
    #[serde(default)]
    removed: Vec<Arc<str>>,
    #[serde(default)]
    omitted: u64,
    #[serde(default)]
    more: bool,
}

#[derive(Deserialize)]
struct NodeFields {
    path: Arc<str>,
    heat: f64,
    in_context: bool,
    last_action: String,
    turn_accessed: u64,
    timestamp_ms: u64,
    symbols: Option<Arc<[Arc<str>]>>,
    origin: Option<String>,
}

impl From<NodeFields> for FileNode {
    fn from(fields: NodeFields) -> Self {
        let NodeFields { path, heat, in_context, turn_accessed, timestamp_ms, symbols, .. } =
            fields;
        Self {
            path,
            heat,
            in_context,
            // What a later version calls otherwise is an access.
            last_action: named(&fields.last_action).unwrap_or(Touch::Read),
            turn_accessed,
            timestamp_ms,
            symbols,
            origin: fields.origin.and_then(|name| named(&name)),
        }
    }
}

fn named<T: Variants>(name: &str) -> Option<T> {
    T::all().iter().copied().find(|variant| variant.name() == name)
}

/// The fields of lines that decide who gets them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct LineHead {
    #[serde(rename = "type", deserialize_with = "lenient")]
    kind: String,
    #[serde(deserialize_with = "lenient")]
    agent_id: String,
    #[serde(deserialize_with = "lenient")]
    session_id: String,
    #[serde(deserialize_with = "lenient")]
    session_mode: String,
    #[serde(deserialize_with = "lenient")]
    id: String,
    #[serde(deserialize_with = "lenient")]
    status: String,
}

impl LineHead {
    fn of(line: &Value) -> Self {
        Self::deserialize(line).unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct JoinedAnswer {
    #[serde(default)]
    result: Value,
}

/// Reads a line of a host; `mode_of` knows the modes of its sessions. An error is no JSON, or not of this
/// form.
pub(super) fn read(
    line: &[u8],
    host: &str,
    mode_of: impl Fn(&SessionKey) -> Option<SessionMode>,
) -> serde_json::Result<HubLine> {
    let mut value: Value = serde_json::from_slice(line)?;
    let LineHead { kind, id, .. } = LineHead::of(&value);
    if kind == "rpc_result" && id == JOINED {
        let JoinedAnswer { result: mut agents } = JoinedAnswer::deserialize(value)?;
        names::result_to_hub(&mut agents, &ListAgents::FACTS, host);
        return Ok(HubLine::Joined(agents));
    }
    names::line_to_hub(&mut value, &kind, host);
    let LineHead { agent_id, session_id, session_mode, id, status, .. } = LineHead::of(&value);
    let key = SessionKey::new(AgentId::new(agent_id), SessionId::new(session_id));
    let mode = named(&session_mode).or_else(|| mode_of(&key));
    let mode = mode.unwrap_or(SessionMode::SingleAgent);
    if ["snapshot", "delta"].contains(&kind.as_str()) {
        if key.agent.as_str().is_empty() {
            // The placeholder of a team without a session.
            return Ok(HubLine::Nothing);
        }
        let MapFields { seq, nodes, updates, removed, omitted, more } =
            MapFields::deserialize(value)?;
        let updates = updates.into_iter().map(FileNode::from).collect();
        if kind == "delta" {
            return Ok(HubLine::Changes { key, seq, updates, removed, more });
        }
        let nodes = nodes.into_iter().map(|(_, node)| NodeFields::deserialize(node));
        let nodes = nodes.map(|node| node.map(FileNode::from)).collect::<Result<_, _>>()?;
        return Ok(HubLine::Map { key, mode, seq, nodes, omitted, more });
    }
    let is_pending = status == "pending";
    let agent = Some(key.agent.clone()).filter(|agent| !agent.as_str().is_empty());
    let session = || Some((key.clone(), mode));
    let (topic, session, agent, subject, stands) = match kind.as_str() {
        "agent" => (None, None, agent, Some(key.agent.to_string()), Some(true)),
        "budget" => {
            let whose = agent.as_ref().map_or_else(|| host.to_owned(), ToString::to_string);
            (None, None, agent, Some(whose), Some(true))
        }
        "usage" => {
            let subject = format!("{} {}", key.agent, key.session);
            (None, session(), agent, Some(subject), Some(true))
        }
        "blocked" => (None, session(), agent, Some(id), Some(is_pending)),
        "conflict" => (None, None, None, Some(id), Some(is_pending)),
        "options" => (None, None, agent, None, None),
        "turn" | "loop" => (None, session(), agent, None, None),
        "session_update" => (Some(Topic::SessionUpdate), session(), agent, None, None),
        "overlap" => (Some(Topic::Overlap), None, None, None, None),
        "task" => (Some(Topic::Task), None, agent, None, None),
        "report" => (Some(Topic::Report), None, agent, None, None),
        "stream" => (None, None, None, None, None),
        _ => return Ok(HubLine::Nothing),
    };
    if let Value::Object(line) = &mut value {
        line.insert("host".to_owned(), host.into());
    }
    let line = ended(&value);
    let has_words = ["blocked", "task"].contains(&kind.as_str());
    let words: &[&str] = if has_words { &["reason", "message"] } else { &[] };
    let removed =
        value.as_object_mut().map(|line| words.iter().filter_map(|it| line.remove(*it)).count());
    let reduced = removed.filter(|count| *count > 0).map(|_| ended(&value));
    let subject = subject.map(|subject| format!("{kind} {subject}").into());
    Ok(HubLine::Relayed {
        relayed: Relayed { topic, session, agent, subject, line, reduced },
        stands,
    })
}

/// A line with its line feed.
pub(super) fn ended(value: &Value) -> Arc<str> {
    format!("{value}\n").into()
}
