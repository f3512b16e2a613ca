//! The messages of the host's task: from its handles, and answers of the agent.

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::DuplexStream;
use tokio::sync::{oneshot, watch};

use super::draft::WaitingPrompt;
use super::guests::Forwarded;
use super::offers::{Learning, SessionChoices};
use super::{Cancelled, Content, HostError, PromptOutcome, Said, SessionLoad, Urgency};
use crate::model::{SessionId, ToolsForm};
use crate::proxy::Opening;

pub(super) type Reply<T> = oneshot::Sender<Result<T, HostError>>;

/// A message from a handle to the host's task.
#[derive(Debug)]
pub(super) enum HostMsg {
    /// A request to the agent outside any session's queue.
    Call {
        method: &'static str,
        params: Value,
        /// The purpose of the session that it opens, if it is no ordinary one.
        opening: Option<Opening>,
        reply: Reply<Box<RawValue>>,
    },
    /// A session is open and accepts prompts.
    Opened {
        session: SessionId,
        /// For questions, beside the agent's work.
        is_beside: bool,
        /// The form in which a new one has the tools of the team; None: it has none, or knows them from
        /// before.
        new: Option<ToolsForm>,
    },
    /// Sends no prompt of a session that is idle, until it is released.
    Hold {
        session: SessionId,
        reply: Reply<()>,
    },
    Release {
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
        /// Also cancel the queued prompts.
        queued: bool,
        reply: Reply<Cancelled>,
    },
    Loads {
        reply: Reply<Vec<SessionLoad>>,
    },
    /// The options of a session.
    Options {
        session: Option<SessionId>,
        reply: Reply<SessionChoices>,
    },
    /// The prompts that wait, of one session or of all.
    Waiting {
        session: Option<SessionId>,
        reply: Reply<Vec<WaitingPrompt>>,
    },
    /// Gives a prompt that waits another text.
    Edit {
        id: String,
        text: String,
        reply: Reply<WaitingPrompt>,
    },
    /// Takes back a prompt that waits.
    Withdraw {
        id: String,
        reply: Reply<WaitingPrompt>,
    },
    /// Attach an editor.
    Attach {
        reply: Reply<DuplexStream>,
    },
}

/// The recipient of an answer of the agent.
#[derive(Debug)]
pub(super) enum PendingAnswer {
    Call {
        method: &'static str,
        /// The meaning of the answer for options.
        learning: Option<Learning>,
        reply: Reply<Box<RawValue>>,
    },
    Turn(SessionId),
    /// An editor's request.
    Forwarded(Forwarded),
}
