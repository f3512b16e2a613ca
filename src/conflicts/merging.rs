//! Merges writes of whole files by the client host with what others wrote since their base was read.

use std::sync::Arc;

use super::stale::Version;
use super::{Conflicts, WriteGate, file_time, is_locked_ever};
use crate::changes::{Merge, merge3};
use crate::model::{AgentId, ConflictKind, ConflictStatus, ConflictStrategy, SessionKey, quoted};

/// What a writer knew of a file before others wrote it.
#[derive(Debug)]
pub struct MergeBase {
    /// None: it is not known.
    content: Option<Vec<u8>>,
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

impl Conflicts {
    /// The base of a write of a whole file, if it is older than another's write and writes are
    /// merged. Call it when all earlier changes are on the bus.
    pub async fn merge_base(&self, by: &SessionKey, path: &str) -> Option<MergeBase> {
        if self.strategy() != ConflictStrategy::Merge {
            return None;
        }
        self.caught_up().await;
        let stale = self.state().stales.stale(by, path)?;
        let content = match stale.base {
            Version::Missing => Some(Vec::new()),
            Version::Unknown => None,
            Version::Hash(hash) => self.content(hash).await,
        };
        Some(MergeBase { content, agents: stale.agents })
    }

    /// The point of a read that begins now: later changes of the file have no earlier time.
    pub fn file_time(&self, path: &str) -> i128 {
        file_time(&self.0.workspace.join(path))
    }

    /// A session knows a file as it was at a time.
    pub fn read_at(&self, by: &SessionKey, path: &Arc<str>, at: i128) {
        self.state().stales.read(by, path, at);
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
        let kind = (ConflictKind::Merged, ConflictStatus::Allowed);
        self.add(&mut state, kind, by, base.agents.clone(), (path, message));
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
}
