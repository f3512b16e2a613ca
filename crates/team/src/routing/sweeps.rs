//! Counts accesses that share one entry: incidental ones, one entry for each turn (`git status` and
//! `grep -r` touch every file of a folder), and those beyond the rate of listed ones. Knows no
//! board and no bus.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::{Action, AgentId, BlockedId, SessionKey};

/// A growing count is published this often at most.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);
/// Outside of turns a sweep ends after this time without an access.
const QUIET: Duration = Duration::from_secs(60);

/// The current sweeps by session: one for each running turn, and one for each agent's empty
/// session.
#[derive(Default, Debug)]
pub(super) struct Sweeps(HashMap<SessionKey, Sweep>);

#[derive(Debug)]
pub(super) struct Sweep {
    pub(super) id: BlockedId,
    /// The deepest folder that holds all accesses, or the path if there was only one.
    pub(super) path: Arc<str>,
    /// `Write` if any of the accesses was.
    pub(super) action: Action,
    pub(super) count: u64,
    /// 0 outside of turns.
    turn: u64,
    is_one_path: bool,
    /// The last count is not published yet.
    is_unpublished: bool,
    published_at: Instant,
    last: Instant,
}

impl Sweeps {
    /// The session's sweep, if it belongs to this turn.
    pub(super) fn get_mut(&mut self, key: &SessionKey, turn: u64) -> Option<&mut Sweep> {
        self.0.get_mut(key).filter(|sweep| sweep.turn == turn)
    }

    pub(super) fn begin(
        &mut self,
        key: SessionKey,
        turn: u64,
        id: BlockedId,
        path: &Arc<str>,
        action: Action,
    ) {
        let now = Instant::now();
        let sweep = Sweep {
            id,
            path: Arc::clone(path),
            action,
            count: 1,
            turn,
            is_one_path: true,
            is_unpublished: false,
            published_at: now,
            last: now,
        };
        self.0.insert(key, sweep);
    }

    /// Ends a session's sweep; returns it if its last count is not published.
    pub(super) fn end(&mut self, key: &SessionKey) -> Option<Sweep> {
        self.0.remove(key).filter(|sweep| sweep.is_unpublished)
    }

    /// Removes the sweeps of an agent that left.
    pub(super) fn forget(&mut self, agent: &AgentId) {
        self.0.retain(|key, _| key.agent != *agent);
    }

    /// When [`Self::due`] is next due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.0.values().filter_map(Sweep::due_at).min()
    }

    /// Returns the sweeps to publish now, and ends those without recent accesses.
    pub(super) fn due(&mut self) -> Vec<BlockedId> {
        let now = Instant::now();
        let mut due = Vec::new();
        self.0.retain(|_, sweep| {
            if sweep.due_at().is_none_or(|at| at > now) {
                return true;
            }
            if sweep.is_unpublished {
                sweep.is_unpublished = false;
                sweep.published_at = now;
                due.push(sweep.id.clone());
            }
            !sweep.is_quiet(now)
        });
        due
    }
}

impl Sweep {
    /// Counts one more access.
    pub(super) fn add(&mut self, path: &str, action: Action) {
        self.count += 1;
        self.is_unpublished = true;
        self.last = Instant::now();
        if action == Action::Write {
            self.action = Action::Write;
        }
        if self.is_one_path {
            if *self.path != *path {
                self.is_one_path = false;
                self.path = common(folder(&self.path), folder(path)).into();
            }
        } else {
            let shared = common(&self.path, path);
            if shared.len() != self.path.len() {
                self.path = shared.into();
            }
        }
    }

    fn due_at(&self) -> Option<Instant> {
        let publishing = self.is_unpublished.then(|| self.published_at + PUBLISH_EVERY);
        let ending = (self.turn == 0).then(|| self.last + QUIET);
        publishing.into_iter().chain(ending).min()
    }

    fn is_quiet(&self, now: Instant) -> bool {
        self.turn == 0 && now >= self.last + QUIET
    }
}

/// The folder that a path lies in.
fn folder(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((folder, _)) => folder,
        None => ".",
    }
}

/// The deepest folder that holds both: `folder`, or one above it.
fn common<'a>(folder: &'a str, path: &str) -> &'a str {
    let is_absolute = folder.starts_with('/');
    if is_absolute != path.starts_with('/') {
        // One is in the workspace, the other outside.
        return "/";
    }
    if folder == "." || folder == "/" {
        return folder;
    }
    let mut end = 0;
    let mut others = path.split('/');
    for part in folder.split('/') {
        if others.next() != Some(part) {
            break;
        }
        end += part.len() + 1;
    }
    match end.saturating_sub(1) {
        0 if is_absolute => "/",
        0 => ".",
        end => &folder[..end],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_paths_share_is_whole_folders() {
        for (first, second, shared) in [
            ("core/a.rs", "core/b.rs", "core"),
            ("core/a/x", "core/b/y", "core"),
            ("core/a", "cores/a", "."),
            ("core/a", ".env", "."),
            ("a/b/c/d", "a/b/x", "a/b"),
            ("/etc/shadow", "/etc/ssl/key", "/etc"),
            ("/etc/shadow", "/srv/x", "/"),
            ("/etc/shadow", "core/a", "/"),
            ("core/a", "/etc/shadow", "/"),
            // One of them is the folder of the other.
            ("core/a", "core/a/b", "core"),
        ] {
            assert_eq!(common(folder(first), folder(second)), shared, "{first} {second}");
        }
    }
}
