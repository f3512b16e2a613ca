//! Decisions about blocked accesses: what they are, who makes them, and why one is refused.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{AgentId, BlockedId, BlockedStatus, DecidedBy, denial, quoted};

/// The author of a decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decider {
    /// Whoever has the control token.
    Person,
    /// The same, overriding a matching pattern of `denied`.
    Insistent,
    /// Whoever has another credential; may override a matching pattern of `denied`, too.
    Holder { by: DecidedBy, insists: bool },
    /// An agent of the team, with its own token.
    Agent(AgentId),
}

impl From<&Decider> for DecidedBy {
    fn from(by: &Decider) -> Self {
        match by {
            Decider::Agent(agent) => Self::Agent(agent.clone()),
            Decider::Person | Decider::Insistent => Self::Person,
            Decider::Holder { by, .. } => by.clone(),
        }
    }
}

impl Decider {
    /// Whether it overrides a matching pattern of `denied`.
    pub(super) fn insists(&self) -> bool {
        matches!(self, Self::Insistent | Self::Holder { insists: true, .. })
    }
}

/// A decision about a blocked access.
#[derive(Clone, PartialEq, Debug)]
pub enum Decision {
    Deny {
        message: Option<String>,
    },
    Allow {
        scope: Scope,
        ttl: Option<Duration>,
    },
    /// As `Allow`, of an access for which its agent does not wait any more: it is told with its next prompt.
    Tell {
        scope: Scope,
        ttl: Option<Duration>,
    },
    Answer {
        content: String,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    Once,
    Session,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    #[error("no blocked access has the id {0}")]
    Unknown(BlockedId),
    #[error("{id} is decided already: {}{}", .status.as_str(), DecidedBy::behind(.by.as_ref()))]
    Settled { id: BlockedId, status: BlockedStatus, by: Option<DecidedBy> },
    #[error(
        "{id} is too late: {ended}; `eisen-core inbox allow {id} --tell` allows the next try, and tells \
         the agent so with its next prompt"
    )]
    TooLate { id: BlockedId, ended: Arc<str> },
    #[error(
        "only a read through `fs/read_text_file` can be answered with content: allow this or deny it"
    )]
    NotAnswerable,
    #[error("{} cannot be opened to any agent", quoted(.0))]
    NotGrantable(Arc<str>),
    #[error(
        "{0} only counts what was denied, of which nobody asked by name or too much at once: there \
         is nothing to decide"
    )]
    Sweep(BlockedId),
    #[error(
        "{id} is an access of `{agent}` itself, and no agent decides its own: a person with the \
         control token can"
    )]
    Own { id: BlockedId, agent: AgentId },
    #[error(
        "{id} is for a person to decide, by rule {rule} of `[[routing]]`: a person with the control \
         token can"
    )]
    ForPerson { id: BlockedId, rule: NonZeroU32 },
    #[error(
        "{} denies {}: no agent can open or answer it; a person with the control token can, by \
         `eisen-core inbox allow {id} --even-denied`",
        denial(by),
        quoted(path)
    )]
    DeniedBy { id: BlockedId, path: Arc<str>, by: Arc<str> },
    #[error("what was shown of {0} has changed since: look at it again")]
    Changed(BlockedId),
    #[error("the team is stopping")]
    Stopping,
}
