//! The inbox of the graph's thread: disk changes, writes claimed by agents, and queries. Bounded:
//! changes are collected, and the writes of a file are merged.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::GraphState;
use super::disk::DiskChange;
use super::pending::{Changed, PendingChanges};
use crate::model::{Lines, TimestampMs};

/// Files with waiting writes; over it, later writes are not marked.
const MOST_WRITES: usize = 10_000;

/// A write claimed by an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Write {
    pub(super) lines: Lines,
    pub(super) timestamp_ms: TimestampMs,
}

/// By the path on the wire.
pub(super) type Writes = HashMap<Arc<str>, Write>;

pub(super) enum GraphTask {
    Answer(oneshot::Sender<GraphState>),
    Read(Changed, Writes),
    /// Nothing came in for a while.
    Rest,
    Stop,
}

#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<InboxState>,
    filled: Condvar,
}

#[derive(Default)]
struct InboxState {
    queries: Vec<oneshot::Sender<GraphState>>,
    pending: PendingChanges,
    writes: Writes,
    is_closed: bool,
}

impl Inbox {
    pub(super) fn query(&self, reply: oneshot::Sender<GraphState>) {
        let mut state = self.state.lock();
        // A dropped sender ends the query.
        if !state.is_closed {
            state.queries.push(reply);
            self.filled.notify_one();
        }
    }

    pub(super) fn changed(&self, change: DiskChange) {
        let (mut state, now) = (self.state.lock(), Instant::now());
        let is_first = state.pending.is_empty();
        match change {
            DiskChange::Paths { paths, .. } => {
                for path in paths {
                    state.pending.add(path, now);
                }
            }
            DiskChange::Unknown => state.pending.add_everything(now),
        }
        // Later ones only put off the end of the burst, for which the thread waits already.
        if is_first {
            self.filled.notify_one();
        }
    }

    pub(super) fn wrote(&self, path: &str, write: Write) {
        let mut state = self.state.lock();
        if let Some(known) = state.writes.get_mut(path) {
            known.lines.extend(&write.lines);
            known.timestamp_ms = write.timestamp_ms;
        } else if state.writes.len() < MOST_WRITES {
            state.writes.insert(path.into(), write);
        }
        state.pending.wake(Instant::now());
        self.filled.notify_one();
    }

    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.queries.clear();
        self.filled.notify_one();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Waits for the next task. While `git_is_busy`, changes are collected for longer. After `rest`
    /// without a task, it is [`GraphTask::Rest`].
    pub(super) fn next(&self, git_is_busy: impl Fn() -> bool, rest: Option<Duration>) -> GraphTask {
        let rests_at = rest.map(|rest| Instant::now() + rest);
        let mut state = self.state.lock();
        loop {
            if state.is_closed {
                return GraphTask::Stop;
            }
            if let Some(reply) = state.queries.pop() {
                return GraphTask::Answer(reply);
            }
            let now = Instant::now();
            let wait = match state.pending.due(false) {
                Some(due) if due > now => Some(due - now),
                Some(_) if git_is_busy() && state.pending.due(true) > Some(now) => Some(GIT_REST),
                Some(_) => {
                    let writes = std::mem::take(&mut state.writes);
                    let Some(changed) = state.pending.take() else { continue };
                    return GraphTask::Read(changed, writes);
                }
                None if rests_at.is_some_and(|at| at <= now) => return GraphTask::Rest,
                None => rests_at.map(|at| at - now),
            };
            match wait {
                Some(wait) => drop(self.filled.wait_for(&mut state, wait)),
                None => self.filled.wait(&mut state),
            }
        }
    }
}

/// Interval between two checks of git's lock.
const GIT_REST: Duration = Duration::from_millis(20);
