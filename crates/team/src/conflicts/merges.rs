//! Merges writes of whole files by the client host with what others wrote since their base was read.

use std::sync::Arc;

use super::stale::{FileVersion, Version};
use super::waits::Refused;
use super::{Conflicts, WriteGate, is_locked_ever};
use crate::changes::{Merge, merge3};
use crate::journal::hash_of;
use crate::model::{AgentId, ConflictKind, ConflictStatus, ConflictStrategy, SessionKey, quoted};

/// The content that a writer knew, of a file that has another one now.
#[derive(Clone, Debug)]
pub struct MergeBase {
    /// None: it is not known.
    content: Option<Arc<[u8]>>,
    /// The agents that wrote meanwhile, as far as they are known.
    agents: Vec<AgentId>,
}

impl MergeBase {
    /// Merges a write with the present content; None if both changed the same lines.
    pub fn merge(&self, write: &[u8], present: &[u8]) -> Option<Vec<u8>> {
        match merge3(self.content.as_ref()?, write, present) {
            Merge::Clean(merged) => Some(merged),
            Merge::Conflict => None,
        }
    }
}

/// The content of a file that is about to be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PresentContent(FileVersion);

impl PresentContent {
    /// None: there is no file.
    pub fn of(content: Option<&[u8]>) -> Self {
        let hash = |content| Version::Hash(hash_of(content).into());
        Self(FileVersion::of(content.map_or(Version::Missing, hash)))
    }

    /// A content that can't be read, or is too large for that.
    pub fn unknown() -> Self {
        Self(FileVersion::of(Version::Unknown))
    }
}

impl Conflicts {
    /// Whether a session that writes a whole file surely knows its present content.
    pub fn is_known(&self, by: &SessionKey, path: &str, present: &PresentContent) -> bool {
        self.state().stales.is_known(by, path, &present.0)
    }

    /// The content that a session knew of a file that it writes whole, if that is not the present one. Call
    /// it when all earlier changes are on the bus.
    pub async fn merge_base(
        &self,
        by: &SessionKey,
        path: &str,
        present: &PresentContent,
    ) -> Option<MergeBase> {
        if self.strategy() != ConflictStrategy::Merge {
            return None;
        }
        self.caught_up().await;
        let stale = self.state().stales.stale(by, path, &present.0)?;
        Some(MergeBase { content: self.content(stale.base).await, agents: stale.agents })
    }

    /// One write is merged at a time: the next one finds its result.
    pub async fn merging(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.merging.lock().await
    }

    /// A write is merged with those of others, as `base` says.
    pub fn merged(&self, by: &SessionKey, path: &Arc<str>, base: &MergeBase) {
        let mut state = self.state();
        let message =
            format!("the write of `{}` to {} was merged with the others'", by.agent, quoted(path));
        let (kind, status) = (ConflictKind::Merged, ConflictStatus::Allowed);
        self.add(&mut state, kind, status, by, base.agents.clone(), path, message);
    }

    /// A session's write has passed: the lock is its agent's, whoever had it before.
    pub fn wrote_last(&self, by: &SessionKey, path: &Arc<str>) {
        if is_locked_ever(path) {
            let mut state = self.state();
            let holder = state.holder(by);
            drop(state.with_locks(|locks, now| locks.take_over(&holder, path, now)));
        }
        self.wake();
    }

    /// Has a write that can't be merged wait for the lock, or be refused; it passes if no other
    /// agent has one.
    pub fn hold_unmerged(&self, by: &SessionKey, path: &Arc<str>) -> WriteGate {
        let mut state = self.state();
        let Some(lock) = state.against(&by.agent, path) else { return WriteGate::Passes };
        let may_wait = state.rules.holds(&by.agent);
        self.hold(&mut state, by, path, &lock, may_wait, false)
    }

    /// Denies a write that can't be merged, of a file that nobody has locked any more: it would take back what
    /// others wrote there, which its session has not read.
    pub fn deny_unmerged(&self, by: &SessionKey, path: &Arc<str>, base: &MergeBase) -> Refused {
        let names: Vec<_> = base.agents.iter().map(|agent| format!("`{agent}`")).collect();
        let who = if names.is_empty() { "somebody".to_owned() } else { names.join(" and ") };
        let message = format!(
            "{who} changed the same lines of {} since you read it: read it again, then write",
            quoted(path)
        );
        let (kind, status) = (ConflictKind::Denied, ConflictStatus::Denied);
        let (others, told) = (base.agents.clone(), message.clone());
        let denied = self.add(&mut self.state(), kind, status, by, others, path, told);
        let holder = base.agents.first().unwrap_or(&by.agent).clone();
        Refused { id: denied.id, path: Arc::clone(path), holder, message }
    }
}
