//! Decisions about blocked accesses: what they are, who makes them, and why one is refused.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{AgentId, BlockedId, BlockedStatus, DecidedBy, GrantSpan, denial, quoted};

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
        scope: GrantSpan,
        ttl: Option<Duration>,
        /// The pattern of all that is opened, also of accesses that wait now; None: the path alone.
        pattern: Option<Arc<str>>,
    },
    /// As `Allow`, of an access for which its agent does not wait any more: it is told with its next prompt.
    Tell {
        scope: GrantSpan,
        ttl: Option<Duration>,
        pattern: Option<Arc<str>>,
    },
    Answer {
        content: String,
    },
}

/// For how long, at most for how long, and by which pattern an access is allowed.
pub(super) type DecisionExtent<'a> = (GrantSpan, Option<Duration>, Option<&'a Arc<str>>);

impl Decision {
    /// How much an access that is allowed opens; None: it is not allowed.
    pub(super) fn opening(&self) -> Option<DecisionExtent<'_>> {
        match self {
            Self::Allow { scope, ttl, pattern } | Self::Tell { scope, ttl, pattern } => {
                Some((*scope, *ttl, pattern.as_ref()))
            }
            Self::Deny { .. } | Self::Answer { .. } => None,
        }
    }
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
    #[error("{0}")]
    Pattern(String),
    #[error(
        "the pattern {} does not match {}, which is asked for: widen it, or leave it out",
        quoted(pattern),
        quoted(path)
    )]
    PatternOfOther { pattern: Arc<str>, path: Arc<str> },
    #[error(
        "no pattern opens {}: it is denied, a secret, part of a git folder, or a search; allow it \
         alone, without a pattern",
        quoted(.0)
    )]
    PathAlone(Arc<str>),
    #[error(
        "only a person allows for the team: with the control token, or on the page; allow it for the \
         session instead"
    )]
    TeamByAgent,
    #[error("what is allowed for the team lasts until it is revoked: leave out `ttl_s`")]
    TeamForTime,
    #[error(
        "a search of all below a folder can't be allowed for the team: allow it for the session"
    )]
    TeamForSearch,
    #[error("nothing can be allowed for the team here: allow it for the session")]
    NoTeam,
    #[error("what is allowed for the team can't be kept: {0}")]
    NotKept(String),
    #[error(
        "{0} grants of the team are as many as there may be: revoke one by `eisen-core team grants revoke ID`"
    )]
    TooManyGrants(usize),
    #[error("no grant of the team has the id {0}: `eisen-core team grants` lists them")]
    UnknownGrant(String),
    #[error("the team is stopping")]
    Stopping,
}
