//! Removes locks of git whose processes were killed: git itself never does, and refuses all that follows.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::occupants;
use crate::repository::GitRepository;

/// Entries below `refs` that are looked at for locks.
const MOST_ENTRIES: usize = 50_000;

/// Names of locks in git's folder of a worktree, and in the one that all share.
const OF_FOLDER: [&str; 3] = ["index.lock", "HEAD.lock", "packed-refs.lock"];

/// A lock as it was seen: one that another process has taken since is another one.
#[derive(PartialEq, Eq)]
struct SeenLock {
    file: u64,
    changed: (i64, i64),
}

/// Removes the locks of a repository that killed processes of this user left: of the index and HEAD of each worktree, the
/// main one too, of branches, and of packed refs. One stays while a git works in any of the worktrees, or a process has
/// it open, and where nobody can say which processes there are.
pub fn remove_stale_locks(repository: &GitRepository) {
    let found = locks_of(repository.common());
    if found.is_empty() || !Path::new("/proc/self/fd").exists() {
        return;
    }
    let common = repository.common();
    let mut places: Vec<_> = repository.main().map(Path::to_owned).into_iter().collect();
    places.push(common.to_owned());
    let admins = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    places.extend(admins.filter_map(|admin| {
        let entry = fs::read_to_string(admin.path().join("gitdir")).ok()?;
        Some(Path::new(entry.trim_end()).parent()?.to_owned())
    }));
    let is_git = |place: &PathBuf| occupants(place).iter().any(|it| it.name.starts_with("git"));
    if places.iter().any(is_git) {
        return;
    }
    for (lock, seen) in found {
        let now = lock.symlink_metadata().map(|found| SeenLock::of(&found));
        if now.is_ok_and(|now| now == seen) && occupants(&lock).is_empty() {
            tracing::warn!(lock = %lock.display(), "a killed git left it: it is removed");
            let _ = fs::remove_file(lock);
        }
    }
}

impl SeenLock {
    fn of(lock: &Metadata) -> Self {
        Self { file: lock.ino(), changed: (lock.ctime(), lock.ctime_nsec()) }
    }
}

/// The locks of this user.
fn locks_of(common: &Path) -> Vec<(PathBuf, SeenLock)> {
    let admins = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let folders = admins.map(|admin| admin.path()).chain([common.to_owned()]);
    let mut all: Vec<_> =
        folders.flat_map(|folder| OF_FOLDER.map(|name| folder.join(name))).collect();
    let mut ahead = vec![common.join("refs")];
    let mut count = 0;
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            count += 1;
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                ahead.push(entry.path());
            } else if entry.path().extension().is_some_and(|ending| ending == "lock") {
                // No ref has such a name.
                all.push(entry.path());
            }
        }
        if count > MOST_ENTRIES {
            break;
        }
    }
    let own = rustix::process::geteuid().as_raw();
    let seen = |lock: PathBuf| {
        let found = lock.symlink_metadata().ok()?;
        (found.is_file() && found.uid() == own).then(|| (lock, SeenLock::of(&found)))
    };
    all.into_iter().filter_map(seen).collect()
}
