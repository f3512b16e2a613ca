//! Cleans a worktree: its recovery first, then its files, then git's own folder of it.

use crate::recovery::{
    LeftOut, Manifest, RecoveryError, Scan, read_manifest, remove_files, save, scan,
};
use crate::tree::{HeldWorktree, Occupant, Worktree, WorktreeError, WorktreeState, occupants};

/// The outcome of cleaning a worktree, before it is done.
#[derive(Debug)]
pub struct Survey {
    /// Files that no commit has, and their bytes: the recovery gets them.
    pub files: usize,
    pub bytes: u64,
    /// Files of its commit that are deleted; after `restore` they still are.
    pub deleted: usize,
    pub left_out: Vec<LeftOut>,
    pub occupants: Vec<Occupant>,
    /// Commits of the branch that the one it began at does not have.
    pub unmerged: usize,
    /// Whether somebody moved or removed its folder: there is nothing to keep.
    pub is_missing: bool,
}

/// A worktree that was cleaned.
#[derive(Debug)]
pub struct Cleaned {
    pub tree: Worktree,
    pub left_out: Vec<LeftOut>,
    /// Whether its branch, which was merged, is gone too.
    pub branch_gone: bool,
}

/// Looks at what cleaning would do, and changes nothing.
pub fn survey(tree: &Worktree) -> Result<Survey, RecoveryError> {
    let is_missing = matches!(tree.is_there(), Err(WorktreeError::Missing { .. }));
    let found = if is_missing { Scan::default() } else { scan(tree)? };
    Ok(Survey {
        files: found.kept.len(),
        bytes: found.bytes(),
        deleted: found.missing.len(),
        left_out: found.left_out,
        occupants: occupants(&tree.path),
        unmerged: unmerged(tree)?,
        is_missing,
    })
}

/// Cleans a worktree that nobody is in. `is_landed`: its commits came into another branch in another form.
pub fn clean(mut held: HeldWorktree, is_landed: bool) -> Result<Cleaned, RecoveryError> {
    let occupants = occupants(&held.tree.path);
    if !occupants.is_empty() {
        return Err(RecoveryError::Occupied(occupants));
    }
    held.share(true);
    if matches!(held.tree.is_there(), Err(WorktreeError::Missing { .. })) {
        let tree = held.tree.clone();
        let (held, branch_gone) = gone(held, is_landed)?;
        held.let_go()?;
        return Ok(Cleaned { tree, left_out: Vec::new(), branch_gone });
    }
    let taken = save(&held.tree)?;
    held.tree.recovery = Some(taken.reference.clone());
    held.tree.state = WorktreeState::Cleaning;
    held.keep()?;
    let left_out = taken.left_out().to_vec();
    remove_files(&held.tree, &taken)?;
    let (held, branch_gone) = gone(held, is_landed)?;
    Ok(Cleaned { tree: held.tree, left_out, branch_gone })
}

/// Goes on with the cleaning of a worktree that another process did not end. What came since then gets a recovery of
/// its own.
pub(super) fn finish(held: HeldWorktree) -> Result<HeldWorktree, RecoveryError> {
    let tree = &held.tree;
    let inside = occupants(&tree.path);
    if !inside.is_empty() {
        return Err(RecoveryError::Occupied(inside));
    }
    // Its entry goes last but one.
    let is_empty = std::fs::remove_dir(&tree.path).is_ok();
    if !is_empty && tree.path.exists() && tree.git_dir.join("HEAD").exists() {
        let first = tree.recovery.clone().unwrap_or_default();
        let before = read_manifest(tree, &first)?;
        let taken = save(tree)?;
        if has_all(&before, &taken.manifest) {
            let mut forget = tree.repository().git();
            forget.args(["update-ref", "-d", &taken.reference]).bytes()?;
        }
        remove_files(tree, &taken)?;
    }
    gone(held, false).map(|(held, _)| held)
}

/// Whether a recovery has each file of a later one.
fn has_all(first: &Manifest, later: &Manifest) -> bool {
    later.files.iter().all(|file| first.files.contains(file))
}

/// Notes that the files are gone. A branch that was made with the worktree goes too, where nothing of it would be lost.
fn gone(mut held: HeldWorktree, is_landed: bool) -> Result<(HeldWorktree, bool), RecoveryError> {
    let tree = &mut held.tree;
    tree.prune()?;
    let mut branch_gone = false;
    let repository = tree.repository();
    if tree.made_branch
        && (is_landed || unmerged(tree)? == 0)
        && repository.checkouts(&tree.branch)?.is_empty()
        && let Some(tip) = repository.tip(&tree.branch)
    {
        let mut delete = repository.git();
        branch_gone = delete.args(["update-ref", "-d", &tree.reference(), &tip]).bytes().is_ok();
    }
    tree.state = WorktreeState::Gone;
    held.keep()?;
    Ok((held, branch_gone))
}

/// The commits of a branch that no other branch has.
fn unmerged(tree: &Worktree) -> Result<usize, RecoveryError> {
    let mut count = tree.repository().git();
    let own = tree.reference();
    if tree.repository().tip(&tree.branch).is_none() {
        return Ok(0);
    }
    count.args(["rev-list", "--count", &own, "--not"]);
    count.args([format!("--exclude={}", tree.branch), "--branches".to_owned(), tree.base.clone()]);
    count.arg("--");
    let count = count.text()?;
    count.parse().map_err(|_| RecoveryError::Strange(format!("git counts `{count}` commits")))
}
