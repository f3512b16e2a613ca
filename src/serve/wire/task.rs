//! A task on the wire.

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{SessionId, TaskReport, TaskState};

/// A task that an agent was given; each change of its state is another line.
#[derive(Serialize, JsonSchema)]
pub(super) struct TaskLine<'a> {
    id: &'a str,
    /// Who gave it: an agent, or `orchestrator` for a program or a person.
    by: &'a str,
    /// Who answers for it; left out if nobody is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a str>,
    /// Whose it is.
    agent_id: &'a str,
    /// The session of its turn, once that has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[schemars(extend("enum" = TaskState::ALL.map(TaskState::as_str)))]
    state: &'static str,
    /// Why it ended so.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    timestamp_ms: u64,
}

impl<'a> From<&'a TaskReport> for TaskLine<'a> {
    fn from(task: &'a TaskReport) -> Self {
        Self {
            id: task.id.as_str(),
            by: task.by.as_str(),
            owner: task.owner.as_deref(),
            agent_id: task.agent.as_str(),
            session_id: task.session.as_ref().map(SessionId::as_str),
            state: task.state.as_str(),
            reason: task.reason.as_deref(),
            timestamp_ms: task.timestamp_ms,
        }
    }
}
