//! The fate of a write that is about to happen.

use std::sync::Arc;

use super::Conflicts;
use super::locks::{Lock, LockRefused};
use super::state::ConflictState;
use super::waits::{LockWait, Refused};
use crate::model::{Conflict, ConflictKind, ConflictStatus, ConflictStrategy, SessionKey, quoted};
use crate::tasks::WaitKind;

/// Writes that may wait for locks at once, of all agents; one more is denied.
const MOST_WAITING: usize = 1024;

/// The way of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// A write of a whole file by the team's own client host, which can merge it.
    Host,
    /// Any other; `may_wait`: it can be held.
    Other { may_wait: bool },
}

/// The fate of a write.
#[derive(Debug)]
pub enum WriteGate {
    Passes,
    Waits(Box<LockWait>),
    Refused(Refused),
}

impl Conflicts {
    /// A session is about to write a file: it gets the lock, or what becomes of the write is
    /// decided by the strategy.
    pub fn begin_write(&self, by: &SessionKey, path: &Arc<str>, way: Way) -> WriteGate {
        let mut state = self.state();
        if way != Way::Host {
            state.stales.begin(by, path, None);
        }
        let holder = state.holder(by);
        let lock = match state.with_locks(|locks, now| locks.take(&holder, path, now)) {
            Ok(_) => return self.locked(state),
            // There is no room for another lock: the write passes unlocked.
            Err(LockRefused::TooMany) => return WriteGate::Passes,
            Err(LockRefused::HeldBy(lock)) => lock,
        };
        let may_wait = way != Way::Other { may_wait: false };
        match state.rules.strategy {
            ConflictStrategy::LastWriterWins => {
                let _ = state.with_locks(|locks, now| locks.take_over(&holder, path, now));
                let message = format!(
                    "`{}` wrote {} while `{}` had it locked",
                    by.agent,
                    quoted(path),
                    lock.holder.agent
                );
                let (kind, status) = (ConflictKind::LostUpdate, ConflictStatus::Allowed);
                let others = vec![lock.holder.agent.clone()];
                let told = self.add(&mut state, kind, status, by, others, path, message);
                state.note_told(&by.agent, path, told.id);
                self.locked(state)
            }
            ConflictStrategy::Merge if way == Way::Host => WriteGate::Passes,
            ConflictStrategy::Person => self.hold(&mut state, by, path, &lock, may_wait, true),
            ConflictStrategy::FirstWriterWins | ConflictStrategy::Merge => {
                let may_wait = may_wait && state.rules.holds(&by.agent);
                self.hold(&mut state, by, path, &lock, may_wait, false)
            }
        }
    }

    /// A program of an agent writes a file: it gets the lock, unless another has it. With the last
    /// writer winning, it has it in any case.
    pub fn writes(&self, by: &SessionKey, path: &Arc<str>) {
        let last_wins = {
            let mut state = self.state();
            let at = tokio::time::Instant::now();
            state.workers.worked(&by.agent, at);
            state.rules.strategy == ConflictStrategy::LastWriterWins
        };
        if last_wins {
            self.begin_write(by, path, Way::Other { may_wait: false });
            return;
        }
        let mut state = self.state();
        state.stales.begin(by, path, None);
        let holder = state.holder(by);
        let _ = state.with_locks(|locks, now| locks.take(&holder, path, now));
        self.locked(state);
    }

    fn locked(&self, state: std::sync::MutexGuard<'_, ConflictState>) -> WriteGate {
        drop(state);
        self.0.has_locks.store(true, std::sync::atomic::Ordering::Relaxed);
        WriteGate::Passes
    }

    /// Has a write wait for the lock's end, or for a person; else denies it.
    pub(super) fn hold(
        &self,
        state: &mut ConflictState,
        by: &SessionKey,
        path: &Arc<str>,
        lock: &Lock,
        may_wait: bool,
        for_person: bool,
    ) -> WriteGate {
        let other = &lock.holder.agent;
        let holds = may_wait && state.waiting() < MOST_WAITING;
        let guard = match () {
            () if !holds => Err(None),
            // A person's decision is no other agent's.
            () if for_person => Ok(None),
            () => {
                match self.0.waits.begin(&by.agent, std::slice::from_ref(other), WaitKind::Lock) {
                    Ok(guard) => Ok(Some(guard)),
                    Err(circle) => Err(Some(circle.to_string())),
                }
            }
        };
        let what = format!("`{other}` has {} locked", quoted(&lock.path));
        match guard {
            Ok(guard) => {
                let message = if for_person {
                    format!("{what}, and a person decides about the write of `{}`", by.agent)
                } else {
                    format!("{what}, and `{}` waits to write it", by.agent)
                };
                let (kind, status) = (ConflictKind::Held, ConflictStatus::Pending);
                let held = self.add(state, kind, status, by, vec![other.clone()], path, message);
                state.queue(path, &held.id);
                let deadline = tokio::time::Instant::now() + state.rules.hold_timeout;
                WriteGate::Waits(Box::new(LockWait::new(
                    self.clone(),
                    by.clone(),
                    held,
                    deadline,
                    for_person,
                    guard,
                )))
            }
            Err(circle) => WriteGate::Refused(self.deny(state, by, path, lock, circle)),
        }
    }

    fn deny(
        &self,
        state: &mut ConflictState,
        by: &SessionKey,
        path: &Arc<str>,
        lock: &Lock,
        circle: Option<String>,
    ) -> Refused {
        let holder = lock.holder.agent.clone();
        let what = format!("`{holder}` has {} locked", quoted(&lock.path));
        let message = match circle {
            Some(circle) => format!("{what}, and waiting for that is refused: {circle}"),
            None => format!("{what}: write it once its turn is over, or ask it"),
        };
        let id = state.denied_before(&by.agent, path, lock).unwrap_or_else(|| {
            let (kind, status) = (ConflictKind::Denied, ConflictStatus::Denied);
            let (others, told) = (vec![holder.clone()], message.clone());
            let Conflict { id, .. } = self.add(state, kind, status, by, others, path, told);
            state.note_denied(&by.agent, path, lock, &id);
            id
        });
        Refused { id, path: Arc::clone(path), holder, message }
    }
}
