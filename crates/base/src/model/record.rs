//! Records of a session for the journal, beside the events for viewers.

use std::sync::Arc;
use std::time::Duration;

use super::named::named;
use super::{
    Action, BlockedAccess, FileChange, GrantSpan, KeptCall, Model, SeenBy, Spending, Usage, Via,
};

/// An event of a session. Texts are raw JSON, as they came over the protocol.
#[derive(Clone, PartialEq, Debug)]
pub enum Record {
    /// One that is not new goes on, also one of an earlier run of the team.
    Opened {
        /// Whether the session begins; false: it goes on.
        is_new: bool,
    },
    /// The session begins as a fork; comes before its `Opened`.
    Forked(Fork),
    /// The session was closed by its client or agent.
    Closed,
    /// The model that the session runs on from now on.
    Model(Model),
    /// A prompt was sent.
    TurnBegan,
    /// The content blocks of a prompt.
    Prompt(Arc<str>),
    /// The session repeats its history (true): until that ends (false) updates are earlier ones.
    Replays(bool),
    /// The `update` object of a `session/update`.
    Update(Arc<str>),
    /// The agent's usage of its context.
    Usage(Usage),
    /// Model calls were made.
    Spent(Spending),
    /// A model was called, by a provider that records.
    ModelCall(Arc<KeptCall>),
    /// The agent compacted its context.
    Compacted,
    /// The agent's request `id`, with the `params`.
    PermissionAsked {
        /// The id of the request, as raw JSON.
        id: Arc<str>,
        /// The params of the request, as raw JSON.
        params: Arc<str>,
    },
    /// The `result` of the response; None for an error.
    PermissionAnswered {
        /// The id of the request, as raw JSON.
        id: Arc<str>,
        /// The result of the response, as raw JSON; None: the response is an error.
        result: Option<Arc<str>>,
    },
    /// A blocked access of the session was decided.
    Decided(Box<Decided>),
    /// The session read a file for certain.
    FileRead {
        /// Relative to the workspace; absolute if outside.
        path: Arc<str>,
        /// The source that saw the read.
        by: SeenBy,
    },
    /// A session of an agent that is observed used a path of the workspace.
    PathUsed(Arc<PathUse>),
    /// A file changed; the key's session is empty if it is not known.
    FileChanged(Arc<FileChange>),
    /// Inputs of the agent that were dropped, since they came too fast.
    Dropped(u64),
}

impl Record {
    /// Bytes of its text.
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::Prompt(text) | Self::Update(text) => text.len(),
            Self::FileChanged(change) => change.path.text.len() * 2 + 256,
            Self::FileRead { path, .. } => path.len(),
            Self::ModelCall(call) => call.request.len() + call.answer.len(),
            Self::PathUsed(used) => used.path.len(),
            Self::PermissionAsked { params, .. } => params.len(),
            Self::PermissionAnswered { result, .. } => result.as_ref().map_or(0, |text| text.len()),
            _ => 0,
        }
    }
}

/// An access of an agent that is observed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathUse {
    /// In the wire's form.
    pub path: Arc<str>,
    /// The action of the access.
    pub action: Action,
    /// The channel that the access came through.
    pub via: Via,
    /// The id of the tool call that it belongs to; None: that is not certain.
    pub tool_call: Option<Arc<str>>,
    /// The program that made it, if that is known.
    pub program: Option<Arc<str>>,
    /// A tool call or the arguments of the program name the path.
    pub named: bool,
    /// The zone as it is written does not have it.
    pub outside: bool,
}

/// The origin of a session that continues another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fork {
    /// The session of the journal.
    pub session: Arc<str>,
    /// The branch point, an event of the journal.
    pub event: Arc<str>,
    /// The way in which the agent got the conversation.
    pub how: How,
}

named! {
    /// How an agent came to know the conversation that a session continues.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum How {
        /// The agent forked its own session.
        Forked = "forked",
        /// A new session gets the conversation as a document.
        Primed = "primed",
    }
}

/// A decision about a blocked access.
#[derive(Clone, PartialEq, Debug)]
pub struct Decided {
    /// As it stands afterwards, with who decided.
    pub access: BlockedAccess,
    /// To the agent.
    pub message: Option<String>,
    /// The span of the grant, for an access that is allowed.
    pub scope: GrantSpan,
    /// The time after which the grant ends at the latest; None: no such time.
    pub ttl: Option<Duration>,
    /// The pattern of all that is allowed, for an access that is.
    pub pattern: Option<Arc<str>>,
}
