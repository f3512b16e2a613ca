//! Follows the changes of files on the bus, and finds lost updates among them.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::Conflicts;
use super::lost::{self, Suspect};
use super::stale::{FileVersion, SeenWrite, Version};
use crate::bus::{Received, Subscriber};
use crate::model::{
    AgentId, ConflictKind, ConflictStatus, Event, FileCause, FileChange, FileChangeKind, FileKind,
    FileStamp, FileState, Record, SeenBy, SessionKey, Topic, quoted,
};

/// Writes whose contents wait to be compared; past that, one is reported without.
const MOST_SUSPECTS: usize = 256;

/// How long a caller waits for changes to be known.
const CATCH_UP: Duration = Duration::from_secs(1);

impl Conflicts {
    /// Follows the changes of files, until `cancel`.
    pub fn follow(
        self,
        mut events: Subscriber,
        cancel: CancellationToken,
    ) -> impl Future<Output = ()> + Send {
        // Before the first event: changes are only published while somebody wants them.
        events.want(Topic::Record);
        let calls = self.0.catching_up.lock().unwrap_or_else(PoisonError::into_inner).take();
        async move {
            let Some(mut calls) = calls else { return };
            let (suspects, queue) = mpsc::channel(MOST_SUSPECTS);
            let comparing = lost::compare(self.clone(), queue);
            let following = async move {
                loop {
                    tokio::select! {
                        () = cancel.cancelled() => return,
                        received = events.recv() => match received {
                            Some(received) => self.follow_event(&received, &suspects),
                            None => return,
                        },
                        Some(caught_up) = calls.recv() => {
                            while let Some(received) = events.try_recv() {
                                self.follow_event(&received, &suspects);
                            }
                            // Nobody may wait for it any more.
                            let _ = caught_up.send(());
                        }
                    }
                }
            };
            tokio::join!(following, comparing);
        }
    }

    /// Waits until all changes are known that were published before now.
    pub async fn caught_up(&self) {
        if !self.looks() {
            return;
        }
        let (reply, caught_up) = oneshot::channel();
        // Without a follower, nothing is known.
        if self.0.catch_up.send(reply).await.is_ok() {
            let _ = tokio::time::timeout(CATCH_UP, caught_up).await;
        }
    }

    fn follow_event(&self, received: &Received, suspects: &mpsc::Sender<Suspect>) {
        let Received::Event(_, event) = received else {
            tracing::warn!("lost updates may be missed: the team was too fast");
            return self.state().stales.clear();
        };
        let Event::Record { key, record: Record::FileChanged(change), .. } = &***event else {
            return;
        };
        self.file_changed(key, change, suspects);
    }

    fn file_changed(
        &self,
        key: &SessionKey,
        change: &FileChange,
        suspects: &mpsc::Sender<Suspect>,
    ) {
        if is_left_out(change) {
            return;
        }
        let by = match change.cause {
            FileCause::Agent => Some(key.clone()),
            FileCause::Outside => None,
            // It may be a write of the very agent whose base it would outdate.
            FileCause::Unknown => return,
        };
        let path = &change.path.text;
        let is_put = change.by == SeenBy::ClientHost;
        let [old, new] = change.stamps;
        let replaced = version(change.before.as_ref(), old);
        let missing = FileVersion::of(Version::Missing);
        if let Some(from) = &change.from {
            let (by, before, after) = (by.clone(), replaced.clone(), missing.clone());
            let gone = SeenWrite { by, is_put, before, after };
            let _ = self.state().stales.wrote(&from.text, gone);
        }
        let before = if change.kind == FileChangeKind::Rename { missing } else { replaced };
        let after = version(change.after.as_ref(), new);
        let (theirs, ours) = (before.content.clone(), after.content.clone());
        if theirs == ours && theirs != Version::Unknown {
            return;
        }
        let write = SeenWrite { by: by.clone(), is_put, before, after };
        let stale = self.state().stales.wrote(path, write);
        let (Some(by), Some(stale)) = (by, stale) else { return };
        // Whoever removes what it never read means to.
        if ours == Version::Missing && !stale.was_read {
            return;
        }
        let suspect = Suspect {
            by,
            path: Arc::clone(path),
            position: self.0.bus.position(),
            others: stale.agents,
            outside: stale.outside,
            versions: [stale.base, theirs, ours],
        };
        if let Err(full) = suspects.try_send(suspect) {
            self.report_lost(&full.into_inner());
        }
    }

    /// Reports a write that took back what others wrote.
    pub(super) fn report_lost(&self, suspect: &Suspect) {
        let Suspect { by, path, others, .. } = suspect;
        let mut state = self.state();
        let message = message(&by.agent, path, others, suspect.outside);
        if let Some(told) = state.take_told(&by.agent, path) {
            if let Some(conflict) = state.board.observe(&told, &message) {
                self.0.bus.publish(Event::Conflict(conflict));
            }
            return;
        }
        let (kind, status) = (ConflictKind::LostUpdate, ConflictStatus::Observed);
        self.add(&mut state, kind, status, by, others.clone(), path, message);
    }

    /// A write kept what the others wrote.
    pub(super) fn report_kept(&self, by: &SessionKey, path: &Arc<str>) {
        let _ = self.state().take_told(&by.agent, path);
    }
}

fn message(agent: &AgentId, path: &str, others: &[AgentId], outside: bool) -> String {
    let mut names: Vec<_> = others.iter().map(|other| format!("`{other}`")).collect();
    if outside {
        names.push("somebody outside the team".to_owned());
    }
    let path = quoted(path);
    format!("`{agent}` wrote {path} over what {} wrote, which it had not read", names.join(" and "))
}

fn version(state: Option<&FileState>, stamp: Option<FileStamp>) -> FileVersion {
    let content = match state {
        None => return FileVersion::of(Version::Missing),
        Some(FileState { hash: Some(hash), .. }) => Version::Hash(Arc::clone(hash)),
        Some(_) => Version::Unknown,
    };
    FileVersion { content, stamp }
}

/// Files that many write, by the way: outside the workspace, of git, and those that git ignores. Nobody else has those of an
/// agent's worktree.
fn is_left_out(change: &FileChange) -> bool {
    let is_file =
        |state: &Option<FileState>| state.as_ref().is_none_or(|state| state.kind == FileKind::File);
    change.ignored
        || change.tree.is_some()
        || change.denied
        || !super::is_locked_ever(&change.path.text)
        || !(is_file(&change.before) && is_file(&change.after))
}
