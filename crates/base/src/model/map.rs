//! Nodes of the heat map, session modes, models and usage.

use std::sync::Arc;

use super::TimestampMs;
use super::named::named;

/// A file on the heat map of a session.
#[derive(Clone, PartialEq, Debug)]
pub struct FileNode {
    /// Relative to the workspace with forward slashes; absolute if outside.
    pub path: Arc<str>,
    /// 0 … 1.
    pub heat: f64,
    /// Whether the agent probably still has the file in its context.
    pub in_context: bool,
    /// The kind of the last access.
    pub last_action: Touch,
    /// Number of the turn of the last access, from 0 for each session.
    pub turn_accessed: u64,
    /// The time of the last access.
    pub timestamp_ms: TimestampMs,
    /// Ids of the touched symbols, in order; None if none are known. Only for nodes in context.
    pub symbols: Option<Arc<[Arc<str>]>>,
    /// None if it was not written.
    pub origin: Option<Origin>,
}

named! {
    /// The kind of a touch; `last_action` on the wire.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum Touch {
        /// Embedded in a prompt as a resource.
        UserProvided = "user_provided",
        /// Linked from a prompt.
        UserReferenced = "user_referenced",
        Read = "read",
        Write = "write",
        Search = "search",
        Blocked = "blocked",
    }
}

named! {
    /// The source of a file's last write.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum Origin {
        /// An agent claimed it; it was not seen yet.
        Claimed = "claimed",
        /// The disk or the kernel showed it; no agent claimed it.
        Observed = "observed",
        /// An agent claimed it, and the disk, the kernel or the client confirmed it.
        Confirmed = "confirmed",
    }
}

impl Origin {
    /// Combines two sources of a write.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::Confirmed }
    }
}

named! {
    /// The purpose of a session: its agent's own work, or the orchestrator's.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum SessionMode {
        SingleAgent = "single_agent",
        Orchestrator = "orchestrator",
    }
}

/// A language model, as named by its agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Model {
    /// The id by which the agent names the model.
    pub id: Arc<str>,
    /// For people.
    pub name: Arc<str>,
}

/// Tokens and cost, as the agent last reported them.
#[derive(Clone, PartialEq, Debug)]
pub struct Usage {
    /// Tokens in context.
    pub used: u64,
    /// Size of the context in tokens.
    pub size: u64,
    /// The cost of the session so far; None: the agent does not report it.
    pub cost: Option<Cost>,
}

/// An amount of money.
#[derive(Clone, PartialEq, Debug)]
pub struct Cost {
    /// In whole units of the currency, such as dollars.
    pub amount: f64,
    /// ISO 4217 code.
    pub currency: Arc<str>,
}
