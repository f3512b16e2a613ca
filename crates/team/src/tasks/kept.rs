//! A task as it is kept on disk.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Ended, NewTask};
use crate::model::{AgentId, SessionId, TaskId, TaskReport, TaskState, TimestampMs, now_ms};
use crate::runs::RefusedAccess;

/// Maximum bytes of a result that are kept; the session's journal has the rest.
pub const MOST_TEXT: usize = 1024 * 1024;

/// Bytes of a reason, which is mostly the words of an agent.
const MOST_REASON: usize = 1024;

/// A task with its result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Kept {
    #[serde(serialize_with = "text_of", deserialize_with = "id")]
    pub id: TaskId,
    #[serde(serialize_with = "agent_of", deserialize_with = "agent")]
    pub by: AgentId,
    /// The person who answers for it.
    pub owner: Option<String>,
    #[serde(serialize_with = "agent_of", deserialize_with = "agent")]
    pub agent: AgentId,
    pub text: String,
    pub files: Vec<String>,
    pub key: Option<String>,
    /// The session of its turn.
    #[serde(serialize_with = "session_of", deserialize_with = "session")]
    pub session: Option<SessionId>,
    #[serde(serialize_with = "state_of", deserialize_with = "state")]
    pub state: TaskState,
    pub reason: Option<String>,
    /// The agent's text, up to [`MOST_TEXT`].
    pub result: String,
    /// Bytes of the agent's whole text.
    pub said: usize,
    /// Accesses that were blocked, and not allowed by its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedAccess>,
    pub begun_ms: TimestampMs,
    pub ended_ms: Option<TimestampMs>,
}

impl Kept {
    pub(super) fn new(new: NewTask, id: TaskId, begun_ms: TimestampMs) -> Self {
        let NewTask { by, owner, agent, text, files, key } = new;
        Self {
            id,
            by,
            owner,
            agent,
            text,
            files,
            key,
            session: None,
            state: TaskState::Running,
            reason: None,
            result: String::new(),
            said: 0,
            refused: Vec::new(),
            begun_ms,
            ended_ms: None,
        }
    }

    pub(super) fn end(&mut self, ended: Ended) {
        let Ended { state, mut reason, mut text, refused } = ended;
        if let Some(reason) = &mut reason {
            reason.truncate(reason.floor_char_boundary(MOST_REASON));
        }
        self.said = text.len();
        text.truncate(text.floor_char_boundary(MOST_TEXT));
        (self.state, self.reason, self.result) = (state, reason, text);
        self.refused = refused;
        self.ended_ms = Some(now_ms());
    }

    pub fn report(&self, state: TaskState) -> TaskReport {
        TaskReport {
            id: self.id.clone(),
            by: self.by.clone(),
            owner: self.owner.clone(),
            agent: self.agent.clone(),
            session: self.session.clone(),
            state,
            reason: self.reason.clone(),
            timestamp_ms: now_ms(),
        }
    }
}

fn text_of<S: Serializer>(id: &TaskId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(id.as_str())
}

fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TaskId, D::Error> {
    String::deserialize(deserializer).map(TaskId::new)
}

fn agent_of<S: Serializer>(agent: &AgentId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(agent.as_str())
}

fn agent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AgentId, D::Error> {
    String::deserialize(deserializer).map(AgentId::new)
}

#[expect(clippy::ref_option, reason = "as serde calls it")]
fn session_of<S: Serializer>(
    session: &Option<SessionId>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    session.as_ref().map(SessionId::as_str).serialize(serializer)
}

fn session<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SessionId>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(SessionId::new))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn state_of<S: Serializer>(state: &TaskState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.as_str())
}

/// A state of another version counts as lost.
fn state<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TaskState, D::Error> {
    let name = String::deserialize(deserializer)?;
    let known = TaskState::ALL.into_iter().find(|state| state.as_str() == name);
    Ok(known.unwrap_or(TaskState::Lost))
}
