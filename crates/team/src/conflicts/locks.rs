//! The locks of files: who may write which, and until when. Pure: the time is given.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::workers::{LockHolder, Workers};
use crate::model::{AgentId, SessionId, TimestampMs};

/// Locks of all agents, and of one. Past either a claim is refused; for a write, the agent's oldest
/// lock makes state, or if it has none the write is not locked.
const MOST: usize = 10_000;
const MOST_OF_ONE: usize = 1_000;

/// The locks of a team.
#[derive(Default, Debug)]
pub(super) struct Locks {
    by_path: HashMap<Arc<str>, FileLock>,
    /// The number of claims: only they may stand for a folder.
    claims: usize,
    last_fence: u64,
}

/// A lock, as it stands for others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lock {
    /// The file, or a folder above it that is claimed.
    pub path: Arc<str>,
    pub holder: LockHolder,
    /// Grows with each new lock: whoever has an older number no longer holds it.
    pub fence: u64,
    /// Claimed before a write.
    pub is_claim: bool,
    /// When its holder got it.
    pub since_ms: TimestampMs,
}

#[derive(Debug)]
struct FileLock {
    holder: LockHolder,
    fence: u64,
    since_ms: TimestampMs,
    /// The holder's last write.
    written: Option<Instant>,
    claimed: Option<Instant>,
}

/// Why a lock can't be had.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum LockRefused {
    /// Another agent holds it.
    HeldBy(Lock),
    /// The agent has too many, or all agents together.
    TooMany,
}

/// A lock that is no longer the caller's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NotHeld;

/// The conditions under which locks last.
#[derive(Clone, Copy, Debug)]
pub(super) struct LockTime<'a> {
    pub(super) at: Instant,
    /// The same on the clock on the wall.
    pub(super) at_ms: TimestampMs,
    /// How long a write's lock outlasts the holder's last sign of work.
    pub(super) lock: Duration,
    pub(super) workers: &'a Workers,
}

impl FileLock {
    /// When it ends, unless its holder goes on working.
    fn ends(&self, now: LockTime<'_>) -> Option<Instant> {
        let written = self.written.map(|written| {
            let worked = now.workers.last_work(&self.holder.agent);
            worked.map_or(written, |worked| worked.max(written)) + now.lock
        });
        written.max(self.claimed)
    }

    fn is_over(&self, now: LockTime<'_>) -> bool {
        now.workers.is_gone(&self.holder) || self.ends(now).is_none_or(|end| end <= now.at)
    }
}

impl Locks {
    /// The lock of another agent that a write of `agent` meets.
    pub(super) fn against(&self, agent: &AgentId, path: &str, now: LockTime<'_>) -> Option<Lock> {
        if self.by_path.is_empty() {
            return None;
        }
        let above = path.match_indices('/').map(|(at, _)| &path[..at]);
        let above = above.filter(|_| self.claims > 0);
        above.chain([path]).find_map(|locked| {
            let (locked, lock) = self.by_path.get_key_value(locked)?;
            // Only a claim stands for what is in a folder.
            let covers = &**locked == path || lock.claimed.is_some_and(|until| until > now.at);
            let blocks = covers && lock.holder.agent != *agent && !lock.is_over(now);
            blocks.then(|| lock.shown(locked))
        })
    }

    /// When the lock that a write meets ends, unless its holder goes on working.
    pub(super) fn ends(&self, lock: &Lock, now: LockTime<'_>) -> Option<Instant> {
        self.by_path.get(&lock.path).and_then(|lock| lock.ends(now))
    }

    /// Locks a file for a write; a lock of the same agent is renewed.
    pub(super) fn take(
        &mut self,
        holder: &LockHolder,
        path: &Arc<str>,
        now: LockTime<'_>,
    ) -> Result<u64, LockRefused> {
        if let Some(other) = self.against(&holder.agent, path, now) {
            return Err(LockRefused::HeldBy(other));
        }
        self.put(holder, path, now, |lock| lock.written = Some(now.at))
    }

    /// Locks a file for a write, whoever holds it; returns whose lock ended by that.
    pub(super) fn take_over(
        &mut self,
        holder: &LockHolder,
        path: &Arc<str>,
        now: LockTime<'_>,
    ) -> Option<Lock> {
        let other = self.against(&holder.agent, path, now);
        // A claimed folder stays claimed, but for this file.
        if other.as_ref().is_some_and(|other| other.path == *path) {
            self.remove(path);
        }
        let _ = self.put(holder, path, now, |lock| lock.written = Some(now.at));
        other
    }

    /// The lock of another agent that a claim of `agent` meets: of the file, of a folder above it, or
    /// of a file in it.
    pub(super) fn against_claim(
        &self,
        agent: &AgentId,
        path: &str,
        now: LockTime<'_>,
    ) -> Option<Lock> {
        self.against(agent, path, now).or_else(|| {
            let is_inside =
                |locked: &str| locked.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
            let mut inside = self.by_path.iter().filter(|(locked, lock)| {
                is_inside(locked) && lock.holder.agent != *agent && !lock.is_over(now)
            });
            inside.next().map(|(locked, lock)| lock.shown(locked))
        })
    }

    /// The number of the last lock.
    pub(super) fn last_fence(&self) -> u64 {
        self.last_fence
    }

    /// Locks a file, or all files in a folder, until a time; an earlier claim of the same agent is
    /// replaced.
    pub(super) fn claim(
        &mut self,
        holder: &LockHolder,
        path: &Arc<str>,
        until: Instant,
        now: LockTime<'_>,
    ) -> Result<u64, LockRefused> {
        if let Some(other) = self.against_claim(&holder.agent, path, now) {
            return Err(LockRefused::HeldBy(other));
        }
        let fence = self.put(holder, path, now, |lock| lock.claimed = Some(until))?;
        self.claims = self.by_path.values().filter(|lock| lock.claimed.is_some()).count();
        Ok(fence)
    }

    /// Ends a lock of an agent. With a fence, only the lock that has it.
    pub(super) fn release(
        &mut self,
        agent: &AgentId,
        path: &str,
        fence: Option<u64>,
    ) -> Result<(), NotHeld> {
        let lock = self.by_path.get(path).filter(|lock| lock.holder.agent == *agent);
        if lock.is_none_or(|lock| fence.is_some_and(|fence| fence != lock.fence)) {
            return Err(NotHeld);
        }
        self.remove(path);
        Ok(())
    }

    /// A turn ended: so do its locks, but for what is claimed for longer.
    pub(super) fn turn_over(&mut self, agent: &AgentId, session: &SessionId, now: LockTime<'_>) {
        self.retain(|lock| {
            // With several running turns a lock may belong to none of them.
            let ends = lock.holder.agent == *agent
                && (lock.holder.session == *session || lock.holder.session.as_str().is_empty());
            if ends {
                lock.written = None;
            }
            !ends || lock.claimed.is_some_and(|until| until > now.at)
        });
    }

    /// Ends all locks of an agent.
    pub(super) fn forget(&mut self, agent: &AgentId) {
        self.retain(|lock| lock.holder.agent != *agent);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    /// All locks, ordered by path.
    pub(super) fn list(&self, now: LockTime<'_>) -> Vec<Lock> {
        let held = self.by_path.iter().filter(|(_, lock)| !lock.is_over(now));
        let mut all: Vec<_> = held.map(|(path, lock)| lock.shown(path)).collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    fn put(
        &mut self,
        holder: &LockHolder,
        path: &Arc<str>,
        now: LockTime<'_>,
        change: impl FnOnce(&mut FileLock),
    ) -> Result<u64, LockRefused> {
        let known = self
            .by_path
            .get_mut(path)
            .filter(|lock| lock.holder.agent == holder.agent && !lock.is_over(now));
        if let Some(lock) = known {
            lock.holder = holder.clone();
            change(lock);
            return Ok(lock.fence);
        }
        self.remove(path);
        self.make_room(&holder.agent, now)?;
        self.last_fence += 1;
        let fence = self.last_fence;
        let (holder, since_ms) = (holder.clone(), now.at_ms);
        let mut lock = FileLock { holder, fence, since_ms, written: None, claimed: None };
        change(&mut lock);
        self.by_path.insert(Arc::clone(path), lock);
        Ok(fence)
    }

    fn make_room(&mut self, agent: &AgentId, now: LockTime<'_>) -> Result<(), LockRefused> {
        if self.by_path.len() < MOST_OF_ONE {
            return Ok(());
        }
        let count = |locks: &Self| {
            locks.by_path.values().filter(|lock| lock.holder.agent == *agent).count()
        };
        if self.by_path.len() < MOST && count(self) < MOST_OF_ONE {
            return Ok(());
        }
        self.retain(|lock| !lock.is_over(now));
        if self.by_path.len() < MOST && count(self) < MOST_OF_ONE {
            return Ok(());
        }
        // The oldest lock of its writes.
        let own = self
            .by_path
            .iter()
            .filter(|(_, lock)| lock.holder.agent == *agent && lock.claimed.is_none());
        let oldest = own.min_by_key(|(_, lock)| lock.written).map(|(path, _)| Arc::clone(path));
        self.remove(&oldest.ok_or(LockRefused::TooMany)?);
        Ok(())
    }

    fn remove(&mut self, path: &str) {
        let removed = self.by_path.remove(path);
        self.claims -= usize::from(removed.is_some_and(|lock| lock.claimed.is_some()));
    }

    fn retain(&mut self, keep: impl Fn(&mut FileLock) -> bool) {
        self.by_path.retain(|_, lock| keep(lock));
        self.claims = self.by_path.values().filter(|lock| lock.claimed.is_some()).count();
    }
}

impl FileLock {
    fn shown(&self, path: &Arc<str>) -> Lock {
        Lock {
            path: Arc::clone(path),
            holder: self.holder.clone(),
            fence: self.fence,
            is_claim: self.claimed.is_some(),
            since_ms: self.since_ms,
        }
    }
}
