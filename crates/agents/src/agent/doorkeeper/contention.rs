//! Writes of files that another agent has locked: what the doorkeeper asks of the locks.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{HandlerState, release};
use crate::confine::{Attempt, FileCall};
use crate::conflicts::{AgentConflicts, Way, WriteGate, is_locked_ever};
use crate::extract::Workspace;
use crate::model::{
    Action, Activity, ActivityKind, Lines, SessionId, Source, Touch, one_line, wire_real,
};
use crate::proxy::TurnContext;

/// How long, and for how many paths, it is remembered which are ignored.
const REMEMBERED: Duration = Duration::from_secs(10);
const MOST_REMEMBERED: usize = 16_384;

/// The locks of files, for one agent. Ignored files are not locked: builds of several agents share
/// them.
pub(super) struct Contention {
    conflicts: AgentConflicts,
    workspace: Arc<dyn Workspace>,
    ignored: Mutex<(Instant, HashMap<Arc<str>, bool>)>,
}

impl Contention {
    pub(super) fn new(conflicts: AgentConflicts, workspace: Arc<dyn Workspace>) -> Self {
        Self { conflicts, workspace, ignored: Mutex::new((Instant::now(), HashMap::new())) }
    }

    /// Whether another agent has the file at a real path locked.
    pub(super) fn blocks(&self, workspace: &Path, real: &Path) -> bool {
        self.conflicts.has_locks() && self.conflicts.blocks(&wire_real(workspace, real))
    }

    pub(super) fn read(&self, session: &SessionId, path: &Arc<str>) {
        if is_locked_ever(path) {
            self.conflicts.read(session, path);
        }
    }

    /// A program is about to write the file at a real path. Reads the disk.
    pub(super) fn writes(&self, session: &SessionId, workspace: &Path, real: &Path) {
        let path: Arc<str> = wire_real(workspace, real).into();
        if is_locked_ever(&path) && !self.is_ignored(&path, real) {
            self.conflicts.writes(session, &path);
        }
    }

    /// Decides on a write that met a lock.
    pub(super) fn begin_write(
        &self,
        session: &SessionId,
        path: &Arc<str>,
        may_wait: bool,
    ) -> WriteGate {
        self.conflicts.begin_write(session, path, Way::Other { may_wait })
    }

    fn is_ignored(&self, path: &Arc<str>, real: &Path) -> bool {
        let now = Instant::now();
        let known = {
            let (since, ignored) = &mut *self.ignored.lock();
            if now.duration_since(*since) > REMEMBERED || ignored.len() >= MOST_REMEMBERED {
                ignored.clear();
                *since = now;
            }
            ignored.get(path).copied()
        };
        known.unwrap_or_else(|| {
            let ignored = self.workspace.is_ignored(real);
            self.ignored.lock().1.insert(Arc::clone(path), ignored);
            ignored
        })
    }
}

impl HandlerState {
    /// Whether another agent has a file locked.
    pub(super) fn is_locked(&self, real: &Path) -> bool {
        let Some(contention) = &self.contention else { return false };
        contention.blocks(self.bounds.zone().workspace(), real)
    }

    /// Locks the files that a call may write.
    pub(super) fn lock(&self, call: FileCall<'_>) {
        let Some(contention) = &self.contention else { return };
        let (session, workspace) = (self.running.moment().session, self.bounds.zone().workspace());
        let writes = |path: &Path| contention.writes(&session, workspace, path);
        match call {
            FileCall::Write(path, _)
            | FileCall::Mode(path, _)
            | FileCall::Name(path)
            | FileCall::Link { name: path, .. }
            | FileCall::Remove(path) => writes(path),
            FileCall::Rename { from, to, .. } => {
                writes(from);
                writes(to);
            }
        }
    }

    /// Whether an attempt was stopped for a lock alone.
    pub(super) fn is_contended(&self, attempt: &Attempt) -> bool {
        let bounds = self.bounds();
        let real = bounds.zone().workspace().join(&*attempt.path);
        self.contention.is_some()
            && !attempt.to_server
            && attempt.action == Action::Write
            && bounds.judge(&real, Action::Write).is_ok()
            && !self.running.withholds(&real, Action::Write)
    }

    /// Waits for the lock of a file that a call writes; returns whether the call may go on.
    pub(super) async fn contend(
        &self,
        attempt: &Attempt,
        context: &TurnContext,
        reply: &mut oneshot::Sender<bool>,
    ) -> bool {
        let Some(contention) = &self.contention else { return true };
        match contention.begin_write(&context.session, &attempt.path, attempt.may_wait) {
            WriteGate::Passes => true,
            WriteGate::Refused(_) => false,
            WriteGate::Waits(wait) => {
                let access = format!("the lock of {}", one_line(&attempt.path));
                let _waits = self.vitals.wait_for(&access);
                tokio::select! {
                    settled = wait.settled() => settled.is_ok(),
                    () = release(context, reply) => false,
                }
            }
        }
    }

    /// Records a write that had waited for a lock.
    pub(super) fn record_write(&self, session: &SessionId, path: &Arc<str>) {
        let (touch, source, lines) = (Touch::Write, Source::Kernel, Lines::default());
        let kind = ActivityKind::Touched { path: Arc::clone(path), touch, source, lines };
        self.tracker.record(&self.agent, Activity { session: session.clone(), kind });
    }
}
