//! Owns what a person looks at before a branch lands: its files and hunks, which of them are new since the last look, and
//! what was said of them.

mod hunks;
mod notes;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;
use tempfile::TempDir;

pub use self::hunks::{FileStatus, Hunk, HunkOrigin, ReviewedFile};
pub use self::notes::{ChecksEnd, Comment, ReviewNotes};
use crate::repository::GitError;
use crate::tree::{Worktree, WorktreeError, read_plain};

/// All that a branch changes.
#[derive(Clone, Debug, Serialize)]
pub struct Review {
    pub branch: String,
    /// The branch that it is compared with; None: the commit that it began at.
    pub into: Option<String>,
    /// The commit that both come from.
    pub base: String,
    /// The tree of git with all that it has now, committed or not.
    pub tree: String,
    pub task: Option<String>,
    /// How often a person has looked at it before.
    pub round: u64,
    /// Files in its worktree that no commit has as they are.
    pub uncommitted: Vec<String>,
    /// Whether its agent is in the middle of a rebase, whose list of steps is shown before anybody goes on with it.
    pub rebase: Option<String>,
    pub files: Vec<ReviewedFile>,
}

/// Why a review can't be made, or a hunk not be taken back.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    #[error("the worktree of `{0}` is cleaned: `eisen-core branches restore {0}` brings it back")]
    Cleaned(String),
    #[error("there is no hunk or file `{0}`: the branch may have changed since")]
    NoHunk(String),
    #[error("`{0}` cannot be taken back by itself: {1}")]
    NotAlone(String, String),
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    #[error("{0}")]
    Git(#[from] GitError),
}

/// Looks at all that a branch changes, committed or not. `into`: the branch that it is compared with; None: the one that
/// it began at.
pub fn review(
    tree: &Worktree,
    into: Option<&str>,
    notes: &ReviewNotes,
) -> Result<Review, ReviewError> {
    let repository = tree.repository();
    let into = into.map(str::to_owned).or_else(|| tree.base_branch.clone());
    let into = into.filter(|into| repository.tip(into).is_some());
    let other = into.clone().map_or_else(|| tree.base.clone(), |into| format!("refs/heads/{into}"));
    let base = repository.git().args(["merge-base", &other, &tree.reference()]).text()?;
    let (now, uncommitted) = snapshot(tree)?;
    let mut files = hunks::between(tree, &base, &now)?;
    for file in &mut files {
        for hunk in &mut file.hunks {
            hunk.is_new = notes.round > 0 && !notes.seen.contains(&hunk.id);
            hunk.is_accepted = notes.accepted.contains(&hunk.id);
            let of_hunk = notes.comments.iter().filter(|comment| comment.on == hunk.id);
            hunk.comments = of_hunk.cloned().collect();
        }
    }
    Ok(Review {
        branch: tree.branch.clone(),
        into,
        base,
        tree: now,
        task: tree.task.clone(),
        round: notes.round,
        uncommitted,
        rebase: todo_of(tree),
        files,
    })
}

impl Review {
    /// The hunk with an id, or with the beginning of one that no other has.
    pub fn hunk(&self, id: &str) -> Result<(&ReviewedFile, &Hunk), ReviewError> {
        let all =
            self.files.iter().flat_map(|file| file.hunks.iter().map(move |hunk| (file, hunk)));
        let mut found = all.filter(|(_, hunk)| hunk.id.starts_with(id));
        match (found.next(), found.next()) {
            (Some(hunk), None) => Ok(hunk),
            _ => Err(ReviewError::NoHunk(id.to_owned())),
        }
    }

    /// The ids of all hunks.
    pub fn ids(&self) -> BTreeSet<String> {
        self.files.iter().flat_map(|file| &file.hunks).map(|hunk| hunk.id.clone()).collect()
    }

    /// The ids of the hunks of a file.
    pub fn of_file(&self, path: &str) -> Vec<String> {
        let of_path = self.files.iter().filter(|file| file.path == path);
        of_path.flat_map(|file| &file.hunks).map(|hunk| hunk.id.clone()).collect()
    }
}

/// Takes a hunk back in the files of its worktree. All that is there is kept below `refs/eisen` first.
pub fn revert(tree: &Worktree, review: &Review, id: &str) -> Result<PathBuf, ReviewError> {
    let (file, hunk) = review.hunk(id)?;
    keep(tree, &review.tree)?;
    let path = tree.path.join(&file.path);
    if hunk.is_whole() {
        hunks::set_back(tree, &review.base, file)?;
        return Ok(path);
    }
    let mut apply = tree.git();
    apply.args(["apply", "--reverse", "--recount", "--whitespace=nowarn", "-"]);
    match apply.input(file.patch_of(hunk)).bytes() {
        Ok(_) => Ok(path),
        Err(GitError::Failed { said, .. }) => Err(ReviewError::NotAlone(hunk.id.clone(), said)),
        Err(error) => Err(error.into()),
    }
}

/// The tree of git with all that a worktree has now, committed or not: the one of its [`Review`].
pub fn tree_now(tree: &Worktree) -> Result<String, ReviewError> {
    snapshot(tree).map(|(now, _)| now)
}

/// The tree of git with all that a worktree has now, and the files that no commit has so.
fn snapshot(tree: &Worktree) -> Result<(String, Vec<String>), ReviewError> {
    if !tree.is_there()? {
        return Err(ReviewError::Cleaned(tree.branch.clone()));
    }
    let folder = TempDir::new().map_err(WorktreeError::at(std::env::temp_dir()))?;
    let index = folder.path().join("index");
    // With the marks of files that git has read already.
    let own = tree.git_dir.join("index");
    std::fs::copy(&own, &index).map_err(WorktreeError::at(own))?;
    let with_index = || {
        let mut call = tree.git();
        call.env("GIT_INDEX_FILE", &index);
        call
    };
    let mut add = with_index();
    add.args(["add", "--all", "--", "."]).args(tree.brought_in()?).bytes()?;
    let now = with_index().arg("write-tree").text()?;
    let mut list = tree.git();
    list.args(["diff-tree", "-r", "--name-only", "--no-renames", "-z", "HEAD", &now]);
    let names = list.bytes()?;
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok((now, names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()))
}

/// Keeps a tree of git in a commit, so that what is taken back can be looked at later.
fn keep(tree: &Worktree, now: &str) -> Result<(), ReviewError> {
    let repository = tree.repository();
    let mut make = repository.git();
    for role in ["AUTHOR", "COMMITTER"] {
        make.env(&format!("GIT_{role}_NAME"), "eisen-core");
        make.env(&format!("GIT_{role}_EMAIL"), "eisen-core@localhost");
    }
    let what = format!("Before a hunk of {} was taken back", tree.branch);
    let commit = make.args(["commit-tree", now, "-p", &tree.reference(), "-m", &what]).text()?;
    let name = format!("refs/eisen/trees/{}/review-{}", tree.name, crate::model::now_ms());
    repository.git().args(["update-ref", &name, &commit]).bytes()?;
    Ok(())
}

/// Bytes of a rebase's list of steps that are shown.
const LONGEST_TODO: u64 = 64 << 10;

/// The steps of a rebase that is under way: a person who goes on with it runs them.
fn todo_of(tree: &Worktree) -> Option<String> {
    let text = read_plain(&tree.git_dir.join("rebase-merge/git-rebase-todo"), LONGEST_TODO)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let steps = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    Some(steps.collect::<Vec<_>>().join("\n"))
}
