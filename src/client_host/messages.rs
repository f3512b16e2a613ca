//! What the host's task waits for: messages of its handles, and answers of the agent.

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::DuplexStream;
use tokio::sync::{oneshot, watch};

use super::guests::Forwarded;
use super::{Cancelled, Content, HostError, PromptOutcome, Said, SessionLoad, Urgency};
use crate::model::SessionId;

pub(super) type Reply<T> = oneshot::Sender<Result<T, HostError>>;

/// What handles ask of the host's task.
#[derive(Debug)]
pub(super) enum HostMsg {
    /// A request of our own to the agent, outside of any session's queue.
    Call {
        method: &'static str,
        params: Value,
        reply: Reply<Box<RawValue>>,
    },
    /// A session is open, and takes prompts from now on.
    Opened {
        session: SessionId,
    },
    Prompt {
        session: Option<SessionId>,
        content: Content,
        urgency: Urgency,
        said: watch::Sender<Said>,
        reply: Reply<PromptOutcome>,
    },
    Cancel {
        session: Option<SessionId>,
        /// Also the prompts that were not sent yet.
        queued: bool,
        reply: Reply<Cancelled>,
    },
    Loads {
        reply: Reply<Vec<SessionLoad>>,
    },
    /// An editor wants to talk to the agent.
    Attach {
        reply: Reply<DuplexStream>,
    },
}

/// What an answer of the agent is waited for by.
#[derive(Debug)]
pub(super) enum PendingAnswer {
    Call {
        method: &'static str,
        reply: Reply<Box<RawValue>>,
    },
    Turn(SessionId),
    /// An editor's request.
    Forwarded(Forwarded),
}
