//! Errors of requests to an agent.

use std::sync::Arc;
use std::time::Duration;

use crate::model::SessionId;

#[derive(Clone, Debug, thiserror::Error)]
pub enum HostError {
    #[error("the agent did not answer `{method}` within {} s", .after.as_secs_f64())]
    Timeout { method: &'static str, after: Duration },
    #[error("the agent answered `{method}` with error {code}: {message}")]
    Refused { method: String, code: i64, message: String },
    #[error("the agent's answer to `{method}` can't be read: {why}")]
    Malformed { method: String, why: String },
    #[error("the agent speaks protocol version {0}, and this client only version 1")]
    Version(u64),
    #[error(
        "the agent sends back what it is sent, and answers nothing: its command is none that speaks ACP"
    )]
    Echo,
    #[error("the agent offers no {what} `{wanted}`; it offers {offered}")]
    NotOffered { what: &'static str, wanted: String, offered: String },
    #[error("the agent ended: {0}")]
    Gone(String),
    #[error("no session is open")]
    NoSession,
    #[error("there is no session `{0}`")]
    UnknownSession(SessionId),
    #[error("the session `{0}` belongs to an editor that is attached to the agent")]
    Attached(SessionId),
    #[error("{0} editors are attached to the agent, and no more may be")]
    Editors(usize),
    #[error("the session `{session}` has {queued} prompts queued already")]
    QueueFull { session: SessionId, queued: usize },
    #[error("the session `{0}` is not idle: it has a running turn or prompts that wait")]
    Busy(SessionId),
    #[error("the agent can't go on with an earlier session")]
    NoResume,
    #[error("the agent has too many sessions that were set back: restart it")]
    Branches,
    #[error("the prompt was cancelled before it was sent")]
    Withdrawn,
    #[error(
        "no prompt `{0}` waits: its turn has begun, or it was withdrawn; `list_prompts` has those that wait"
    )]
    NotWaiting(String),
    #[error("{0}")]
    Budget(Arc<str>),
}

impl HostError {
    pub(super) fn malformed(method: &str, why: &impl ToString) -> Self {
        Self::Malformed { method: method.to_owned(), why: why.to_string() }
    }
}
