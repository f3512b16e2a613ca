//! Owns what is known of the worktrees of tasks: where each is, whose, how it stands, and who is in it.
//!
//! The knowledge stands below `$EISEN_DIR`, where no agent writes. A worktree is found by it, never by what a file in
//! the worktree says.

mod known;
mod locks;
mod names;
mod occupants;
mod record;
mod standing;

pub(crate) use self::known::make_removable;
pub use self::known::read_plain;
pub use self::known::{CopiedFile, Worktree, WorktreeState};
pub use self::locks::remove_stale_locks;
pub(crate) use self::names::is_inside;
pub use self::names::{branch_of_task, default_folder};
pub use self::occupants::{Occupant, is_below, occupants};
pub(crate) use self::record::share;
pub use self::record::{HeldWorktree, KEPT, Worktrees};
pub use self::standing::{BranchStanding, Diffs, standing};

use std::io;
use std::path::PathBuf;

use crate::repository::GitError;

/// Why a worktree can't be made, or what is known of it not used.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error("the repository has no commit yet, and a branch begins at one: commit first")]
    NoCommit,
    #[error("there is no commit `{0}` to begin at")]
    NoBase(String),
    #[error("`{0}` is no name of a branch for git")]
    Name(String),
    #[error(
        "`{0}` would be taken for something else: a branch of a remote, a tag, or the full name of another branch"
    )]
    Ambiguous(String),
    #[error(
        "the branch `{branch}` of the worktree {place} is gone: `git branch {branch} {last}` brings it back, or `eisen-core branches clean {branch}` keeps all of it",
        place = .place.display()
    )]
    NoBranch { branch: String, place: PathBuf, last: String },
    #[error("the branch `{branch}` is checked out in {}: name another, or work there", .place.display())]
    CheckedOut { branch: String, place: PathBuf },
    #[error(
        "`{0}` is a repository of its own, and a commit would not have its files: move it out of the worktree, or have git ignore it"
    )]
    Nested(String),
    #[error("{} is there already: move it away, or name another place", .0.display())]
    Occupied(PathBuf),
    #[error(
        "{} lies in the repository's own folder, where tests and package managers look: name a place beside it",
        .0.display()
    )]
    Inside(PathBuf),
    #[error(
        "the worktree of `{branch}` is not in {place}: `git worktree repair NEW_PLACE` if it was moved, `eisen-core branches clean {branch}` gives it up if it is gone",
        place = .place.display()
    )]
    Missing { branch: String, place: PathBuf },
    #[error(
        "another process works in, makes or cleans the worktree of `{0}`: wait for it, or end the run or the team that has it"
    )]
    Busy(String),
    #[error("{} cannot be used: {why}", .0.display(), why = .1)]
    File(PathBuf, #[source] io::Error),
    #[error("{0}")]
    Git(#[from] GitError),
}

impl WorktreeError {
    pub(crate) fn at(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |error| Self::File(path, error)
    }
}
