//! Grants: how long a decision opens a path, and what a person opened for the team.

use std::fmt;
use std::sync::Arc;

use super::named::named;
use super::shown::quoted;
use super::{Action, AgentId, DecidedBy, TimestampMs};

named! {
    /// For how long an access is allowed.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum GrantSpan {
        /// This access.
        Once = "once",
        /// Until the session ends.
        Session = "session",
        /// Until a person revokes it, also in later runs of the team.
        Team = "team",
    }
}

/// A permission that a person gave an agent for the team.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TeamGrant {
    /// Unique in the team, such as `g1`.
    pub id: String,
    /// The agent that may make the access.
    pub agent: AgentId,
    /// The path that was asked for: relative to the workspace, absolute if outside.
    pub path: Arc<str>,
    /// A grant of a write is one of reads, too, but of secrets.
    pub action: Action,
    /// The pattern of all that is opened; None: the path alone.
    pub pattern: Option<Arc<str>>,
    /// A person granted the path in spite of a matching pattern of `denied`.
    pub even_denied: bool,
    /// The person who granted it, as far as the credential tells.
    pub by: DecidedBy,
    /// The time when it was granted last.
    pub granted_ms: TimestampMs,
    /// The workspace of an earlier run, if it is not the team's.
    pub elsewhere: Option<Arc<str>>,
    /// The grant holds: its agent is one of the configuration, and its workspace the team's.
    pub applies: bool,
}

impl fmt::Display for TeamGrant {
    /// Such as `g1: ui may write test/**`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, agent, action, .. } = self;
        write!(f, "{id}: {agent} may {action} {}", quoted(self.opens()))?;
        let denied = if self.even_denied { ", though it is denied" } else { "" };
        let by = DecidedBy::behind(Some(&self.by));
        write!(f, "{denied}: allowed{by} for the team")?;
        match (&self.elsewhere, self.applies) {
            (_, true) => Ok(()),
            (Some(workspace), false) => {
                write!(f, "; does not apply: it is of {}", quoted(workspace))
            }
            (None, false) => write!(f, "; does not apply: the team has no such agent of its own"),
        }
    }
}

impl TeamGrant {
    /// The pattern or path that is opened, as it is shown.
    pub fn opens(&self) -> &str {
        self.pattern.as_deref().unwrap_or(&self.path)
    }

    /// Whether another grant opens the same.
    pub fn opens_as(&self, other: &Self) -> bool {
        self.agent == other.agent
            && self.elsewhere == other.elsewhere
            && self.action == other.action
            && self.pattern == other.pattern
            && (self.pattern.is_some() || self.path == other.path)
            && self.even_denied == other.even_denied
    }
}
