//! Owns what is kept of a worktree before it is removed.
//!
//! A *recovery* is a commit below `refs/eisen/trees/`. It has each file of the worktree that no commit has, byte by byte,
//! and git's own files of the worktree. A file is removed only when the recovery has it, a commit has it, or it was named
//! before as left out.

mod manifest;
mod objects;
mod remove;
mod scan;

use std::io;
use std::path::PathBuf;

pub use self::manifest::{LeftOut, WhyLeftOut};
pub(crate) use self::manifest::{Manifest, SavedFile};
pub(crate) use self::objects::{drop_needless, read_manifest, save};
pub(crate) use self::remove::remove_files;
pub(crate) use self::scan::{Scan, scan};

use crate::repository::GitError;
use crate::tree::{Occupant, WorktreeError};

/// Why a worktree can't be cleaned or restored. Nothing was removed, unless it says so.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    #[error("{} cannot be kept: {why}; nothing was removed", .0.display(), why = .1)]
    File(PathBuf, #[source] io::Error),
    #[error("{} cannot be removed: {why}; it and all that is left stays, and all of it is in the recovery", .0.display(), why = .1)]
    Stays(PathBuf, #[source] io::Error),
    #[error("{} changes while it is kept: end what writes there, and try again", .0.display())]
    Changes(PathBuf),
    #[error("{} changed after the recovery was made and was not removed: run `branches clean` again", .0.display())]
    Unaccounted(PathBuf),
    #[error("{} is another file system: unmount it first", .0.display())]
    Mounted(PathBuf),
    #[error("{} in the worktree: {}", processes(.0.len()), named(.0))]
    Occupied(Vec<Occupant>),
    #[error("nothing to restore: the worktree of `{0}` is in {place}", place = .1.display())]
    There(String, PathBuf),
    #[error("there is no recovery of `{0}`")]
    None(String),
    #[error("the recovery can't be read: {0}")]
    Strange(String),
    #[error(transparent)]
    Worktree(Box<WorktreeError>),
    #[error("{0}")]
    Git(#[from] GitError),
}

impl From<WorktreeError> for RecoveryError {
    fn from(error: WorktreeError) -> Self {
        Self::Worktree(Box::new(error))
    }
}

impl RecoveryError {
    pub(crate) fn stays(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |error| Self::Stays(path, error)
    }

    pub(crate) fn at(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |error| Self::File(path, error)
    }
}

fn processes(count: usize) -> String {
    if count == 1 { "a process is".to_owned() } else { format!("{count} processes are") }
}

/// Names of processes in an error.
const MOST_NAMED: usize = 5;

fn named(all: &[Occupant]) -> String {
    let names = all.iter().take(MOST_NAMED).map(|one| format!("{} ({})", one.name, one.pid));
    let mut names = names.collect::<Vec<_>>().join(", ");
    if all.len() > MOST_NAMED {
        names.push_str(", …");
    }
    names
}
