//! Owns how branches are merged: in memory first, then the branch moves, then its worktree follows. One that was merged
//! can be taken back while nothing was built on it.

mod apply;
mod commit;
mod conflict;
mod preview;
mod record;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use self::apply::{check, finish, land, take_back};
pub use self::commit::{MergeMessage, commit};
pub use self::conflict::{abort, begin, refuse_marks, refuse_unsettled, under_way};
pub use self::preview::{Preview, between, preview};
pub use self::record::Landings;

use crate::repository::GitError;
use crate::tree::WorktreeError;

/// How a branch's commits come into another.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MergeWay {
    /// A commit with both as its parents.
    #[default]
    Merge,
    /// One commit with all changes.
    Squash,
    /// Each commit again, behind those of the other.
    Rebase,
}

/// A merge that was made: a branch that moved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Landing {
    pub branch: String,
    /// The branch that moved.
    pub into: String,
    /// Its commit before and behind the merge.
    pub old: String,
    pub new: String,
    /// The commit that was merged.
    pub tip: String,
    pub landed_at_ms: u64,
    #[serde(default)]
    pub way: MergeWay,
}

impl Landing {
    /// The move that takes it back.
    fn reverse(&self) -> Self {
        Self { old: self.new.clone(), new: self.old.clone(), ..self.clone() }
    }
}

/// Why a branch can't be merged. Nothing has moved.
#[derive(Debug, thiserror::Error)]
pub enum LandingError {
    #[error("there is no branch `{0}`")]
    NoBranch(String),
    #[error("`{0}` has changed since it was looked at: look again")]
    NotLookedAt(String),
    #[error("{0}")]
    Old(String),
    #[error("`{branch}` and `{into}` conflict in {}", conflicts.join(", "))]
    Conflicts { branch: String, into: String, conflicts: Vec<String> },
    #[error(
        "not settled: {}. Edit and `git add` them in {place}, or `git -C {place} merge --abort`",
        left.join(", "),
        place = .place.display()
    )]
    Conflicting { place: PathBuf, left: Vec<String> },
    #[error(
        "`{branch}` has conflict markers committed, in {}: take them out, and commit. An indented line is none",
        marked.join(", ")
    )]
    Marked { branch: String, marked: Vec<String> },
    #[error(
        "a merge of `{into}` into `{branch}` is under way in {place}: settle it there, and `eisen-core merge {branch} --commit` ends it, or `git -C {place} merge --abort` takes it back. `eisen-core run --branch {branch} \"Settle the merge\"` asks an agent anew",
        place = .place.display()
    )]
    Merging { branch: String, into: String, place: PathBuf },
    #[error(
        "the merge of `{branch}` into `{into}` was stopped, and is not at its end: `eisen-core branches` says why"
    )]
    Unfinished { branch: String, into: String },
    #[error("`{0}` has nothing that `{1}` lacks")]
    Nothing(String, String),
    #[error(
        "{count} not committed in the worktree of `{branch}`: `--commit` commits all of it, with the task as its message"
    )]
    Uncommitted { branch: String, count: String },
    #[error(
        "`{into}` is checked out in {place} with changes: commit them, or `git -C {place} stash`, and merge again",
        place = .place.display()
    )]
    Unclean { into: String, place: PathBuf },
    #[error("`{into}` moved while it was merged: merge again")]
    Moved { into: String },
    #[error("`{into}` and its files are as they were: {said}")]
    Broken { into: String, said: String },
    #[error("no merge of `{0}` is known that could be taken back")]
    NoLanding(String),
    #[error(
        "`{into}` has commits behind the merge of `{branch}`: `git revert {what}` takes it back"
    )]
    BuiltOn { branch: String, into: String, what: String },
    #[error("{0}")]
    Unsettled(String),
    #[error(
        "in {place} untracked files are where the merge has some: move them away, and merge again
{said}",
        place = .place.display()
    )]
    InTheWay { place: PathBuf, said: String },
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    #[error("{0}")]
    Git(#[from] GitError),
}
