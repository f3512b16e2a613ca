//! Records the accesses that pass the doorbell: once for a file that is opened repeatedly, and
//! never for an ignored one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::extract::Workspace;
use crate::model::{Action, Activity, ActivityKind, AgentId, Lines, SessionId, Source, Touch};
use crate::proxy::LiveCalls;
use crate::tracker::TrackerHandle;

/// The same access is recorded once within this time.
const ROUND: Duration = Duration::from_millis(100);
/// Accesses recorded within one round; more, as a build may make, are dropped.
const MOST: usize = 4096;
/// How long, and for how many paths, the result of the ignore files is cached.
const REMEMBERED: Duration = Duration::from_secs(10);
const MOST_REMEMBERED: usize = 16_384;

pub(super) struct Passing {
    running: Arc<LiveCalls>,
    round: Mutex<Round>,
    queue: mpsc::Sender<Passed>,
}

struct Round {
    ends: Instant,
    /// The last value of [`LiveCalls::changes`]: a new turn records every access again.
    changes: u64,
    seen: HashMap<Arc<str>, Seen>,
    /// The log has a warning about dropped accesses.
    is_full: bool,
}

#[derive(Default)]
struct Seen {
    read: bool,
    written: bool,
}

struct Passed {
    session: SessionId,
    path: Arc<str>,
    action: Action,
}

/// Records accesses outside the doorbell's threads, since the check of the ignore files reads the
/// disk.
struct ReadRecorder {
    agent: AgentId,
    tracker: TrackerHandle,
    workspace: Arc<dyn Workspace>,
    ignored: HashMap<Arc<str>, bool>,
    since: Instant,
}

impl Passing {
    /// The task ends when the value is dropped.
    pub(super) fn new(
        agent: AgentId,
        tracker: TrackerHandle,
        running: Arc<LiveCalls>,
        workspace: Arc<dyn Workspace>,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (queue, mut passed) = mpsc::channel(MOST);
        let now = Instant::now();
        let round = Round { ends: now, changes: 0, seen: HashMap::new(), is_full: false };
        let mut recorder =
            ReadRecorder { agent, tracker, workspace, ignored: HashMap::new(), since: now };
        let task = async move {
            while let Some(passed) = passed.recv().await {
                recorder.record(passed);
            }
        };
        (Self { running, round: Mutex::new(round), queue }, task)
    }

    /// Never waits: an access that does not fit the queue is dropped.
    pub(super) fn passed(&self, path: Arc<str>, action: Action) {
        if is_of_git(&path) {
            return;
        }
        if !self.is_news(&path, action) {
            return;
        }
        let session = self.running.moment().session;
        // A full queue holds thousands; losing one is harmless.
        let _ = self.queue.try_send(Passed { session, path, action });
    }

    fn is_news(&self, path: &Arc<str>, action: Action) -> bool {
        let mut round = self.round.lock();
        let (now, changes) = (Instant::now(), self.running.changes());
        if now >= round.ends || changes != round.changes {
            (round.ends, round.changes) = (now + ROUND, changes);
            round.seen.clear();
        }
        let round = &mut *round;
        let seen = round.seen.entry(Arc::clone(path)).or_default();
        let mark = match action {
            Action::Read => &mut seen.read,
            Action::Write => &mut seen.written,
        };
        if std::mem::replace(mark, true) {
            return false;
        }
        let has_room = round.seen.len() <= MOST;
        if !has_room {
            round.seen.remove(path);
            if !std::mem::replace(&mut round.is_full, true) {
                tracing::warn!("more files are opened at a time than can be recorded");
            }
        }
        has_room
    }
}

impl ReadRecorder {
    fn record(&mut self, passed: Passed) {
        let Passed { session, path, action } = passed;
        if self.is_ignored(&path) {
            return;
        }
        let touch = match action {
            Action::Read => Touch::Read,
            Action::Write => Touch::Write,
        };
        let (source, lines) = (Source::Kernel, Lines::default());
        let kind = ActivityKind::Touched { path, touch, source, lines };
        self.tracker.record(&self.agent, Activity { session, kind });
    }

    fn is_ignored(&mut self, path: &Arc<str>) -> bool {
        let now = Instant::now();
        if now.duration_since(self.since) > REMEMBERED || self.ignored.len() >= MOST_REMEMBERED {
            self.ignored.clear();
            self.since = now;
        }
        if let Some(known) = self.ignored.get(path) {
            return *known;
        }
        let ignored = self.workspace.is_ignored(&self.workspace.root().join(&**path));
        self.ignored.insert(Arc::clone(path), ignored);
        ignored
    }
}

/// Git opens its own files hundreds of times.
fn is_of_git(path: &str) -> bool {
    path.split('/').any(|part| part == ".git")
}
