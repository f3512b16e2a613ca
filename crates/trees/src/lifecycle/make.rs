//! Makes a worktree: its record first, then git's, then its files. A start that finds one half made takes it back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::bring::{Bringing, bring};
use super::copy::fill;
use super::refresh::refresh;
use super::restore::restore;
use super::settle::{settle, take_back};
use crate::model::now_ms;
use crate::recovery::RecoveryError;
use crate::repository::GitRepository;
use crate::tree::{
    HeldWorktree, Worktree, WorktreeError, WorktreeState, Worktrees, default_folder, is_inside,
};

/// A worktree that is wanted.
#[derive(Clone, Debug)]
pub struct WorktreeRequest {
    pub branch: String,
    /// Where a new branch begins: a name of a commit. None: where the main worktree is.
    pub base: Option<String>,
    /// Where its files are to be; None: in a folder beside the repository.
    pub place: Option<PathBuf>,
    /// Folders that it has alone; empty: all.
    pub only: Vec<String>,
    pub bringing: Bringing,
    pub build: Vec<String>,
    pub owner: String,
    pub task: Option<String>,
}

/// A worktree that is ready.
#[derive(Debug)]
pub struct Made {
    pub held: HeldWorktree,
    /// Whether it was made just now.
    pub is_new: bool,
    /// Sentences that a person should know.
    pub notes: Vec<String>,
}

/// Makes the worktree of a branch, or takes the one that it has. What fails leaves none.
pub fn make(
    trees: &Worktrees,
    repository: &GitRepository,
    request: &WorktreeRequest,
) -> Result<Made, RecoveryError> {
    let branch = &request.branch;
    let name = ["check-ref-format", "--branch", branch];
    if branch.starts_with(['-', '@']) || repository.git().args(name).bytes().is_err() {
        return Err(WorktreeError::Name(branch.clone()).into());
    }
    if is_taken_for_another(repository, branch)? {
        return Err(WorktreeError::Ambiguous(branch.clone()).into());
    }
    let before = match earlier(trees, repository, branch)? {
        Earlier::There(made) => return Ok(*made),
        Earlier::Gone(before) => before,
    };
    let mut tree = planned(trees, repository, request)?;
    if let Some(before) = before {
        // Its recovery stays known, and what a copy was.
        tree.recovery = before.recovery;
        tree.copied = before.copied;
        tree.linked = before.linked;
    }
    let mut made = trees.add(repository, tree)?;
    made.share(true);
    match complete(trees, repository, &mut made, request) {
        Ok(notes) => {
            made.share(false);
            Ok(Made { held: made, is_new: true, notes })
        }
        Err(error) => {
            take_back(trees, made, repository)?;
            Err(error.into())
        }
    }
}

/// Whether git, and whoever reads it, would take the name of a branch for something else: a branch of a remote, a tag, or
/// a full name.
fn is_taken_for_another(repository: &GitRepository, branch: &str) -> Result<bool, WorktreeError> {
    let first = branch.split('/').next().unwrap_or_default();
    if branch.contains('/') && ["refs", "heads", "tags", "remotes"].contains(&first) {
        return Ok(true);
    }
    let remotes = repository.git().arg("remote").text().unwrap_or_default();
    if branch.contains('/') && remotes.lines().any(|remote| remote == first) {
        return Ok(true);
    }
    let others = [format!("refs/tags/{branch}"), format!("refs/remotes/{branch}")];
    let known = repository.commits(&others.map(|name| format!("{name}^{{commit}}")))?;
    Ok(known.iter().any(Option::is_some))
}

/// The worktree that a branch had before.
enum Earlier {
    There(Box<Made>),
    /// The worktree is gone. Has what is known of it, if anything is.
    Gone(Option<Box<Worktree>>),
}

fn earlier(
    trees: &Worktrees,
    repository: &GitRepository,
    branch: &str,
) -> Result<Earlier, RecoveryError> {
    let held = trees.hold(repository, branch)?;
    let Some(held) = held.map(|held| settle(trees, held, repository)).transpose()?.flatten() else {
        return Ok(Earlier::Gone(None));
    };
    if held.tree.state == WorktreeState::Ready {
        if repository.tip(branch).is_none() {
            let (branch, place) = (branch.to_owned(), held.tree.path.clone());
            let last = held.tree.last_logged().unwrap_or_else(|| held.tree.base.clone());
            return Err(WorktreeError::NoBranch { branch, place, last }.into());
        }
        return Ok(Earlier::There(Box::new(Made { held, is_new: false, notes: Vec::new() })));
    }
    if repository.tip(branch).is_none() {
        return Ok(Earlier::Gone(Some(Box::new(held.tree))));
    }
    // Its branch is there: so is what was not committed.
    drop(held);
    let back = restore(trees, repository, branch)?;
    let mut notes = vec!["it comes back as it was cleaned".to_owned()];
    notes.extend(back.notes);
    Ok(Earlier::There(Box::new(Made { held: back.held, is_new: false, notes })))
}

/// The worktree that is to be made.
fn planned(
    trees: &Worktrees,
    repository: &GitRepository,
    request: &WorktreeRequest,
) -> Result<Worktree, WorktreeError> {
    let branch = &request.branch;
    let start = request.base.as_deref().unwrap_or("HEAD");
    let no_base = || WorktreeError::NoBase(start.to_owned());
    if start.contains('\n') {
        return Err(no_base());
    }
    let names = [&*format!("refs/heads/{branch}"), "HEAD", start];
    let commits = repository.commits(&names.map(|name| format!("{name}^{{commit}}")))?;
    let [tip, head, first] = &commits[..] else { return Err(WorktreeError::NoCommit) };
    if head.is_none() && request.base.is_none() {
        return Err(WorktreeError::NoCommit);
    }
    if let Some(place) = repository.checkouts(branch)?.into_iter().next() {
        return Err(WorktreeError::CheckedOut { branch: branch.clone(), place });
    }
    let base = tip.as_ref().or(first.as_ref()).cloned().ok_or_else(no_base)?;
    let base_branch = match &request.base {
        Some(base) => {
            let name = base.strip_prefix("refs/heads/").unwrap_or(base);
            let remote = format!("refs/remotes/{base}^{{commit}}");
            let is_of_remote = || {
                let found = repository.commits(std::slice::from_ref(&remote));
                found.is_ok_and(|found| found.iter().any(Option::is_some))
            };
            match repository.tip(name) {
                Some(_) => Some(name.to_owned()),
                // It is no target here.
                None if is_of_remote() => None,
                // What began at a tag or a commit lands where all else does.
                None => repository.main_branch(),
            }
        }
        None => repository.main_branch(),
    };
    let name = trees.name_for(repository, branch);
    let usual = || default_folder(repository).unwrap_or_default().join(&name);
    let path = request.place.clone().unwrap_or_else(usual);
    if is_inside(repository, &path) {
        return Err(WorktreeError::Inside(path));
    }
    if path.symlink_metadata().is_ok() {
        return Err(WorktreeError::Occupied(path));
    }
    Ok(Worktree {
        name,
        branch: branch.clone(),
        path,
        common: repository.common().to_owned(),
        main: repository.main().map(Path::to_owned),
        git_dir: PathBuf::new(),
        base,
        base_branch,
        made_branch: tip.is_none(),
        state: WorktreeState::Making,
        owner: request.owner.clone(),
        task: request.task.clone(),
        made_at_ms: now_ms(),
        // The record gets it.
        port_base: 0,
        copied: BTreeMap::new(),
        linked: Vec::new(),
        build: request.build.clone(),
        setup: None,
        recovery: None,
        is_sha1: repository.is_sha1(),
    })
}

/// Performs the steps behind the record. At its end the worktree is ready.
fn complete(
    trees: &Worktrees,
    repository: &GitRepository,
    held: &mut HeldWorktree,
    request: &WorktreeRequest,
) -> Result<Vec<String>, WorktreeError> {
    let mut notes = Vec::new();
    let tree = &mut held.tree;
    if let Some(folder) = tree.path.parent() {
        fs::create_dir_all(folder).map_err(WorktreeError::at(folder))?;
        let name = tree.path.file_name().unwrap_or_default().to_owned();
        tree.path = folder.canonicalize().map_err(WorktreeError::at(folder))?.join(name);
    }
    if tree.path.symlink_metadata().is_ok() {
        return Err(WorktreeError::Occupied(tree.path.clone()));
    }
    held.keep()?;
    let tree = &mut held.tree;
    {
        let _list = trees.lock_list()?;
        let mut add = repository.git();
        add.args(["worktree", "add", "--quiet", "--no-checkout"]);
        if tree.made_branch {
            add.args(["--no-track", "-b", &tree.branch]).arg("--").arg(&tree.path).arg(&tree.base);
        } else {
            add.arg("--").arg(&tree.path).arg(&tree.branch);
        }
        add.bytes()?;
    }
    tree.git_dir = tree.find_git_dir().ok_or_else(|| {
        WorktreeError::File(tree.path.clone(), std::io::Error::other("git did not make it"))
    })?;
    held.keep()?;
    let tree = &mut held.tree;
    // Each copy was compared with the marks that git has of it.
    let (mut is_sure, mut is_fresh) = (false, true);
    if request.only.is_empty() {
        match tree.main.clone().filter(|_| tree.is_sha1) {
            Some(main) => {
                let filled = fill(tree, &main)?;
                is_sure = filled.left == 0;
                is_fresh = !is_sure || filled.is_fresh;
            }
            None => drop(tree.git().args(["read-tree", "-m", "-u", "HEAD"]).bytes()?),
        }
    } else {
        let lines = request.only.join("\n");
        let mut sparse = tree.git();
        sparse.args(["sparse-checkout", "set", "--cone", "--stdin"]).input(lines).bytes()?;
        tree.git().args(["read-tree", "-m", "-u", "HEAD"]).bytes()?;
    }
    if !is_sure && !is_clean(tree)? {
        notes.push("its copies differ from what git has: git checked all files out".to_owned());
        tree.git().args(["read-tree", "--reset", "-u", "HEAD"]).bytes()?;
    }
    if tree.path.join(".gitmodules").exists() {
        let path = tree.path.display();
        notes.push(format!(
            "its submodules are empty: `git -C {path} submodule update --init` fills them"
        ));
    }
    (tree.copied, tree.linked) = (BTreeMap::new(), Vec::new());
    if let Some(main) = tree.main.clone() {
        let brought = bring(tree, &main, &request.bringing)?;
        (tree.copied, tree.linked) = (brought.copied, brought.linked);
        notes.extend(brought.notes);
    }
    if let Some(recovery) = &tree.recovery {
        notes.push(format!("what it had before is kept in {recovery}"));
    }
    if is_fresh {
        refresh(tree)?;
    }
    tree.state = WorktreeState::Ready;
    held.keep()?;
    Ok(notes)
}

/// Whether git finds no change in a new worktree.
fn is_clean(tree: &Worktree) -> Result<bool, WorktreeError> {
    let mut status = tree.git();
    status.args(["status", "--porcelain", "--ignore-submodules=all", "--untracked-files=no"]);
    Ok(status.bytes()?.is_empty())
}
