//! The state behind the handle: locks, waits for them, what is known of files, and the conflicts.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::time::Instant;

use super::ConflictRules;
use super::board::ConflictBoard;
use super::locks::{Lock, LockTime, Locks};
use super::stale::Stales;
use super::workers::{LockHolder, Workers};
use crate::model::{AgentId, ConflictId, SessionKey, now_ms};
use crate::preview::Wanted;

/// Denied and reported writes that are remembered, so that one write is no two conflicts; when full,
/// all are forgotten.
const MOST_NOTED: usize = 1024;

#[derive(Default, Debug)]
pub(super) struct ConflictState {
    pub(super) rules: ConflictRules,
    pub(super) locks: Locks,
    pub(super) workers: Workers,
    pub(super) stales: Stales,
    pub(super) board: ConflictBoard,
    /// Writes that wait for the lock of a path, in the order in which they came.
    queues: HashMap<Arc<str>, VecDeque<ConflictId>>,
    /// A person's decisions on writes that still wait.
    pub(super) decided: HashMap<ConflictId, HeldDecision>,
    /// The contents that waiting writes would put in their files, where these are known.
    wanted: HashMap<ConflictId, Wanted>,
    /// Writes over another's lock that were reported before they happened.
    told: HashMap<(AgentId, Arc<str>), ConflictId>,
    /// The last denial by an agent, of a path, by a lock's number.
    denied: HashMap<(AgentId, Arc<str>), (u64, ConflictId)>,
}

/// A person's decision about a write that waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HeldDecision {
    Allow,
    Deny { message: Option<String> },
}

impl HeldDecision {
    /// The message that tells the writer of a denial.
    pub(super) fn refusal(&self) -> Option<String> {
        let Self::Deny { message } = self else { return None };
        let message = message.clone().filter(|message| !message.is_empty());
        Some(message.unwrap_or_else(|| "A person denied it.".to_owned()))
    }
}

impl ConflictState {
    pub(super) fn new(rules: ConflictRules) -> Self {
        Self { rules, ..Self::default() }
    }

    pub(super) fn now(&self) -> LockTime<'_> {
        lock_time(&self.rules, &self.workers)
    }

    /// The holder of a lock that an agent gets in a session.
    pub(super) fn holder(&self, by: &SessionKey) -> LockHolder {
        LockHolder {
            agent: by.agent.clone(),
            session: by.session.clone(),
            process: self.workers.process(&by.agent),
        }
    }

    /// The lock of another agent that a write meets.
    pub(super) fn against(&self, agent: &AgentId, path: &str) -> Option<Lock> {
        self.locks.against(agent, path, self.now())
    }

    /// Borrows the locks with the time.
    pub(super) fn with_locks<T>(
        &mut self,
        change: impl FnOnce(&mut Locks, LockTime<'_>) -> T,
    ) -> T {
        let now = lock_time(&self.rules, &self.workers);
        change(&mut self.locks, now)
    }

    pub(super) fn queue(&mut self, path: &Arc<str>, id: &ConflictId) {
        self.queues.entry(Arc::clone(path)).or_default().push_back(id.clone());
    }

    pub(super) fn unqueue(&mut self, path: &str, id: &ConflictId) {
        if let Some(queue) = self.queues.get_mut(path) {
            queue.retain(|other| other != id);
            if queue.is_empty() {
                self.queues.remove(path);
            }
        }
        self.decided.remove(id);
        self.wanted.remove(id);
    }

    /// Whether a write still waits, perhaps only to hear that it is decided.
    pub(super) fn is_queued(&self, path: &str, id: &ConflictId) -> bool {
        self.queues.get(path).is_some_and(|queue| queue.contains(id))
    }

    /// Keeps what a write that waits would put in its file.
    pub(super) fn want(&mut self, path: &str, id: &ConflictId, wanted: Wanted) {
        if self.is_queued(path, id) {
            let others = self.wanted.values().map(Wanted::bytes).sum();
            self.wanted.insert(id.clone(), wanted.beside(others));
        }
    }

    pub(super) fn wanted(&self, id: &ConflictId) -> Option<&Wanted> {
        self.wanted.get(id)
    }

    pub(super) fn is_next(&self, path: &str, id: &ConflictId) -> bool {
        self.queues.get(path).and_then(VecDeque::front) == Some(id)
    }

    /// Writes that wait.
    pub(super) fn waiting(&self) -> usize {
        self.queues.values().map(VecDeque::len).sum()
    }

    pub(super) fn note_told(&mut self, agent: &AgentId, path: &Arc<str>, id: ConflictId) {
        if self.told.len() >= MOST_NOTED {
            self.told.clear();
        }
        self.told.insert((agent.clone(), Arc::clone(path)), id);
    }

    /// The report of a write before it happened.
    pub(super) fn take_told(&mut self, agent: &AgentId, path: &Arc<str>) -> Option<ConflictId> {
        self.told.remove(&(agent.clone(), Arc::clone(path)))
    }

    /// The earlier denial of the same write by the same lock.
    pub(super) fn denied_before(
        &self,
        agent: &AgentId,
        path: &Arc<str>,
        lock: &Lock,
    ) -> Option<ConflictId> {
        let (fence, id) = self.denied.get(&(agent.clone(), Arc::clone(path)))?;
        (*fence == lock.fence).then(|| id.clone())
    }

    pub(super) fn note_denied(
        &mut self,
        agent: &AgentId,
        path: &Arc<str>,
        lock: &Lock,
        id: &ConflictId,
    ) {
        if self.denied.len() >= MOST_NOTED {
            self.denied.clear();
        }
        self.denied.insert((agent.clone(), Arc::clone(path)), (lock.fence, id.clone()));
    }
}

fn lock_time<'a>(rules: &ConflictRules, workers: &'a Workers) -> LockTime<'a> {
    LockTime { at: Instant::now(), at_ms: now_ms(), lock: rules.lock, workers }
}
