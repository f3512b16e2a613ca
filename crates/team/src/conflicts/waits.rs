//! A write that waits for a lock, or for a person.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Conflicts;
use super::locks::LockRefused;
use super::state::ConflictState;
use crate::model::{AgentId, Conflict, ConflictId, ConflictStatus, Event, SessionKey};
use crate::preview::Wanted;
use crate::tasks::WaitGuard;

/// How often a lock is looked at whose holder goes on working.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// A write that was denied, since another agent has the file locked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    pub id: ConflictId,
    pub path: Arc<str>,
    pub holder: AgentId,
    /// A sentence for the writer.
    pub message: String,
}

/// A write that waits. Dropping it withdraws the write.
#[derive(Debug)]
pub struct LockWait {
    conflicts: Conflicts,
    by: SessionKey,
    held: Conflict,
    deadline: Instant,
    for_person: bool,
    /// The edge in the graph of waits.
    _guard: Option<WaitGuard>,
}

/// How a write that waited may go on. It has the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passage {
    /// The lock ended.
    Freed,
    /// A person allowed it, whatever it is over.
    ByPerson,
}

enum Look {
    Allowed(Passage),
    Denied(String),
    /// Look again then at the latest.
    Later(Instant),
}

impl LockWait {
    pub(super) fn new(
        conflicts: Conflicts,
        by: SessionKey,
        held: Conflict,
        deadline: Instant,
        for_person: bool,
        guard: Option<WaitGuard>,
    ) -> Self {
        Self { conflicts, by, held, deadline, for_person, _guard: guard }
    }

    /// The conflict as it began.
    pub fn conflict(&self) -> &Conflict {
        &self.held
    }

    /// Says what the write would put in the file, for whoever decides it.
    pub fn wants(&self, wanted: Wanted) {
        self.conflicts.state().want(&self.held.path, &self.held.id, wanted);
    }

    /// Waits until the write may go on, with the lock, or is denied.
    pub async fn settled(self) -> Result<Passage, Refused> {
        let mut changed = self.conflicts.0.changed.subscribe();
        loop {
            changed.borrow_and_update();
            let look = self.look_and_settle();
            match look {
                Look::Allowed(passage) => {
                    self.conflicts.wake();
                    return Ok(passage);
                }
                Look::Denied(message) => {
                    self.conflicts.wake();
                    let holder = self.held.agents.last().cloned();
                    return Err(Refused {
                        id: self.held.id.clone(),
                        path: self.held.path.clone(),
                        holder: holder.unwrap_or_else(|| self.by.agent.clone()),
                        message,
                    });
                }
                Look::Later(at) => {
                    tokio::select! {
                        _ = changed.changed() => {}
                        () = tokio::time::sleep_until(at.min(self.deadline)) => {}
                    }
                }
            }
        }
    }

    /// At once, so that no decision comes between the two.
    fn look_and_settle(&self) -> Look {
        let mut state = self.conflicts.state();
        let look = self.look(&mut state);
        match &look {
            Look::Allowed(_) => self.settle(&mut state, ConflictStatus::Allowed, None),
            Look::Denied(message) => {
                self.settle(&mut state, ConflictStatus::Denied, Some(message));
            }
            Look::Later(_) => {}
        }
        look
    }

    fn look(&self, state: &mut ConflictState) -> Look {
        let (path, id) = (&self.held.path, &self.held.id);
        let holder = state.holder(&self.by);
        if let Some(decision) = state.decided.get(id) {
            if let Some(message) = decision.refusal() {
                return Look::Denied(message);
            }
            let _ = state.with_locks(|locks, now| locks.take_over(&holder, path, now));
            return Look::Allowed(Passage::ByPerson);
        }
        let now = Instant::now();
        if now >= self.deadline {
            return Look::Denied(format!("{}: nobody freed it in time", self.held.message));
        }
        if self.for_person {
            return Look::Later(self.deadline);
        }
        if !state.is_next(path, id) {
            return Look::Later(now + LOOK_AGAIN);
        }
        match state.with_locks(|locks, now| locks.take(&holder, path, now)) {
            Ok(_) | Err(LockRefused::TooMany) => Look::Allowed(Passage::Freed),
            Err(LockRefused::HeldBy(lock)) => {
                let ends = state.locks.ends(&lock, state.now());
                Look::Later(ends.map_or(now + LOOK_AGAIN, |ends| ends.max(now + LOOK_AGAIN / 50)))
            }
        }
    }

    /// The write waits no more. If a person decided it, that was published then.
    fn settle(&self, state: &mut ConflictState, status: ConflictStatus, message: Option<&str>) {
        state.unqueue(&self.held.path, &self.held.id);
        if let Some(settled) = state.board.settle(&self.held.id, status, message, None) {
            self.conflicts.0.bus.publish(Event::Conflict(settled));
        }
    }
}

impl Drop for LockWait {
    fn drop(&mut self) {
        let is_withdrawn = {
            let mut state = self.conflicts.state();
            let is_queued = state.is_queued(&self.held.path, &self.held.id);
            if is_queued {
                self.settle(&mut state, ConflictStatus::Expired, None);
            }
            is_queued
        };
        if is_withdrawn {
            self.conflicts.wake();
        }
    }
}
