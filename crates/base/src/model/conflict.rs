//! Conflicts: writes of several agents to one file.

use std::sync::Arc;

use super::named::named;
use super::{AgentId, ConflictId, DecidedBy, SessionId, TimestampMs};

named! {
    /// The treatment of a write to a file that another agent has locked.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub enum ConflictStrategy {
        /// The first writer wins: the write waits for the lock's end, or is denied.
        #[default]
        FirstWriterWins = "fww",
        /// The last writer wins: the write passes, and is reported.
        LastWriterWins = "lww",
        /// A write of a whole file is merged with what is there; else as the first.
        Merge = "merge",
        /// A person decides.
        Person = "person",
    }
}

named! {
    /// How two agents met at one file.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum ConflictKind {
        /// A write whose base was read before somebody else's write.
        LostUpdate = "lost_update",
        /// A write that waits, or waited, for a lock.
        Held = "held",
        /// A write that was denied, since the file was locked.
        Denied = "denied",
        /// A write that was merged with somebody else's.
        Merged = "merged",
        /// Two worktrees changed the same part of a file.
        Branches = "branches",
    }
}

named! {
    /// The state of the write.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum ConflictStatus {
        Pending = "pending",
        Allowed = "allowed",
        Denied = "denied",
        /// Its turn, request or agent ended first.
        Expired = "expired",
        /// Seen after the fact.
        Observed = "observed",
    }
}

/// A write in conflict with another agent's, in its current state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// The id by which decisions name the conflict.
    pub id: ConflictId,
    /// Relative to the workspace.
    pub path: Arc<str>,
    /// The way in which the write met the others; it does not change.
    pub kind: ConflictKind,
    /// The present state of the write.
    pub status: ConflictStatus,
    /// The writer, then the others.
    pub agents: Vec<AgentId>,
    /// The writer's; empty if it is not known.
    pub session: SessionId,
    /// The conflict in a sentence.
    pub message: Arc<str>,
    /// The decider; None: nobody, or it still waits.
    pub decided_by: Option<DecidedBy>,
    /// The time when it was found, or when its write stopped waiting.
    pub timestamp_ms: TimestampMs,
}

impl Conflict {
    /// Whether its write waits.
    pub fn waits(&self) -> bool {
        self.status == ConflictStatus::Pending
    }
}
