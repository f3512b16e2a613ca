//! What the graph's thread has to do next: changes of the disk, writes that agents tell of, and
//! questions. Bounded: changes are gathered, and writes of a file are one.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::GraphState;
use super::disk::DiskChange;
use super::pending::{Changed, PendingChanges};
use crate::model::{Lines, TimestampMs};

/// Files whose writes are kept until they are looked at; later ones show on the disk alone.
const MOST_WRITES: usize = 10_000;

/// A write that an agent told of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Write {
    pub(super) lines: Lines,
    pub(super) timestamp_ms: TimestampMs,
}

/// By the path that the wire has.
pub(super) type Writes = HashMap<Arc<str>, Write>;

pub(super) enum GraphTask {
    Answer(oneshot::Sender<GraphState>),
    Look(Changed, Writes),
    /// There was nothing to do for a while.
    Rest,
    Stop,
}

#[derive(Default)]
pub(super) struct Inbox {
    held: Mutex<InboxState>,
    filled: Condvar,
}

#[derive(Default)]
struct InboxState {
    asks: Vec<oneshot::Sender<GraphState>>,
    pending: PendingChanges,
    writes: Writes,
    is_closed: bool,
}

impl Inbox {
    pub(super) fn ask(&self, reply: oneshot::Sender<GraphState>) {
        let mut held = self.lock();
        // Dropped, it says that nobody will answer.
        if !held.is_closed {
            held.asks.push(reply);
            self.filled.notify_one();
        }
    }

    pub(super) fn changed(&self, change: DiskChange) {
        let (mut held, now) = (self.lock(), Instant::now());
        match change {
            DiskChange::Paths(paths) => {
                for path in paths {
                    held.pending.add(path, now);
                }
            }
            DiskChange::Unknown => held.pending.add_everything(now),
        }
        self.filled.notify_one();
    }

    pub(super) fn wrote(&self, path: &str, write: Write) {
        let mut held = self.lock();
        if let Some(known) = held.writes.get_mut(path) {
            known.lines.extend(&write.lines);
            known.timestamp_ms = write.timestamp_ms;
        } else if held.writes.len() < MOST_WRITES {
            held.writes.insert(path.into(), write);
        }
        held.pending.wake(Instant::now());
        self.filled.notify_one();
    }

    pub(super) fn close(&self) {
        let mut held = self.lock();
        held.is_closed = true;
        held.asks.clear();
        self.filled.notify_one();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Waits for the next task. `git_works` says whether git is changing files, which delays a look at
    /// them. After `rest` without a task, it is [`GraphTask::Rest`].
    pub(super) fn next(&self, git_works: impl Fn() -> bool, rest: Option<Duration>) -> GraphTask {
        let rests_at = rest.map(|rest| Instant::now() + rest);
        let mut held = self.lock();
        loop {
            if held.is_closed {
                return GraphTask::Stop;
            }
            if let Some(reply) = held.asks.pop() {
                return GraphTask::Answer(reply);
            }
            let now = Instant::now();
            let wait = match held.pending.due(false) {
                Some(due) if due > now => Some(due - now),
                Some(_) if git_works() && held.pending.due(true) > Some(now) => Some(GIT_REST),
                Some(_) => {
                    let writes = std::mem::take(&mut held.writes);
                    let Some(changed) = held.pending.take() else { continue };
                    return GraphTask::Look(changed, writes);
                }
                None if rests_at.is_some_and(|at| at <= now) => return GraphTask::Rest,
                None => rests_at.map(|at| at - now),
            };
            held = match wait {
                Some(wait) => {
                    let waited = self.filled.wait_timeout(held, wait);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.filled.wait(held).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, InboxState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long git's lock is left alone before it is looked for again.
const GIT_REST: Duration = Duration::from_millis(20);
