//! Brings worktrees that killed processes left to an end.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::clean::finish;
use crate::recovery::{self, RecoveryError};
use crate::repository::GitRepository;
use crate::tree::{
    HeldWorktree, Worktree, WorktreeError, WorktreeState, Worktrees, occupants, remove_stale_locks,
};

/// The owner of a worktree in which the checks of a merge run: it ends with the merge.
pub const OF_CHECKS: &str = "checks";

/// Brings what killed processes left of a repository's worktrees to an end. Those that are held are left alone.
/// Locks of git go first, and what would have git fail for each worktree.
pub fn settle_all(trees: &Worktrees, repository: &GitRepository) -> Result<(), RecoveryError> {
    remove_stale_locks(repository);
    let all = trees.of(repository);
    for tree in all.iter().filter(|tree| tree.state == WorktreeState::Making) {
        // One that is held is being made.
        if let Ok(Some(held)) = trees.hold(repository, &tree.branch)
            && held.tree.state == WorktreeState::Making
        {
            // Nor is the folder of another one that git just makes.
            let Ok(_list) = trees.lock_list() else { continue };
            held.tree.complete_git_dir();
        }
    }
    for tree in all {
        let is_left = match tree.state {
            WorktreeState::Making | WorktreeState::Cleaning => true,
            WorktreeState::Ready if !tree.path.exists() => where_it_is(&tree, repository).is_some(),
            WorktreeState::Ready => tree.owner == OF_CHECKS,
            WorktreeState::Gone => false,
        };
        if is_left && let Err(error) = settle_one(trees, repository, &tree) {
            // It holds nobody else up.
            tracing::warn!(branch = %tree.branch, "it was left half done, and stays so: {error}");
        }
    }
    Ok(())
}

/// How long is waited for the git of a killed process, and for a process that works on a worktree.
const PATIENCE: Duration = Duration::from_secs(2);

fn settle_one(
    trees: &Worktrees,
    repository: &GitRepository,
    tree: &Worktree,
) -> Result<(), RecoveryError> {
    // The checks of a merge may run now, for minutes.
    let patience = if tree.owner == OF_CHECKS { Duration::ZERO } else { PATIENCE };
    match trees.hold_within(repository, &tree.branch, patience) {
        Ok(Some(held)) if held.tree.owner == OF_CHECKS => Ok(held.discard()?),
        Ok(Some(held)) => settle(trees, held, repository).map(drop),
        Ok(None) | Err(WorktreeError::Busy(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Brings a worktree that another process left to an end: one half made is taken back, one half cleaned is cleaned.
/// None: nothing is known of it any more.
pub(super) fn settle(
    trees: &Worktrees,
    held: HeldWorktree,
    repository: &GitRepository,
) -> Result<Option<HeldWorktree>, RecoveryError> {
    held.share(true);
    match held.tree.state {
        WorktreeState::Making => take_back(trees, held, repository),
        WorktreeState::Cleaning => finish(held).map(Some),
        WorktreeState::Ready if !held.tree.path.exists() => missing(held, repository),
        WorktreeState::Ready | WorktreeState::Gone => {
            held.share(false);
            Ok(Some(held))
        }
    }
}

/// The place of a worktree that is not where it was.
enum Whereabouts {
    Moved(PathBuf),
    /// git knows nothing of it any more.
    Forgotten,
}

/// None: git still knows it where it was.
fn where_it_is(tree: &Worktree, repository: &GitRepository) -> Option<Whereabouts> {
    let places = repository.checkouts(&tree.branch).unwrap_or_default();
    // Another checkout of the branch is a person's own.
    let is_it = |place: &PathBuf| {
        let there = Worktree { path: place.clone(), ..tree.clone() };
        there.find_git_dir().as_ref() == Some(&tree.git_dir)
    };
    let moved = places.into_iter().find(is_it);
    let is_known = tree.find_git_dir().is_some() || tree.git_dir.join("HEAD").exists();
    match moved {
        Some(place) => Some(Whereabouts::Moved(place)),
        None => (!is_known).then_some(Whereabouts::Forgotten),
    }
}

/// Follows a worktree that a person moved, and forgets one that a person took out of git's list.
fn missing(
    mut held: HeldWorktree,
    repository: &GitRepository,
) -> Result<Option<HeldWorktree>, RecoveryError> {
    match where_it_is(&held.tree, repository) {
        Some(Whereabouts::Moved(place)) => {
            held.tree.path = place;
            held.tree.git_dir = held.tree.find_git_dir().unwrap_or_default();
            held.keep()?;
            held.share(false);
            Ok(Some(held))
        }
        Some(Whereabouts::Forgotten) => Ok(held.let_go()?),
        // Its disk may be away: git still knows what is not committed.
        None => {
            let Worktree { branch, path: place, .. } = held.tree;
            Err(WorktreeError::Missing { branch, place }.into())
        }
    }
}

/// Takes a worktree back that is not whole. What is in it and not in git is kept all the same: a person may
/// have put it there.
pub(super) fn take_back(
    trees: &Worktrees,
    mut held: HeldWorktree,
    repository: &GitRepository,
) -> Result<Option<HeldWorktree>, RecoveryError> {
    let tree = &mut held.tree;
    {
        // The folder of another one that git just makes is not complete either.
        let _list = trees.lock_list()?;
        tree.complete_git_dir();
    }
    tree.git_dir = tree.find_git_dir().unwrap_or_default();
    let has_admin = !tree.git_dir.as_os_str().is_empty();
    let inside = occupants(&tree.path);
    if !inside.is_empty() {
        return Err(RecoveryError::Occupied(inside));
    }
    if has_admin && tree.path.exists() {
        let taken = recovery::save(tree)?;
        recovery::remove_files(tree, &taken)?;
        recovery::drop_needless(tree, &taken)?;
    } else if tree.path.exists() && fs::read_dir(&tree.path).is_ok_and(|it| it.count() <= 1) {
        // git was stopped before it registered the folder.
        let _ = fs::remove_file(tree.path.join(".git"));
        let _ = fs::remove_dir(&tree.path);
    }
    tree.prune()?;
    if tree.made_branch && repository.checkouts(&tree.branch)?.is_empty() {
        let mut delete = repository.git();
        delete.args(["update-ref", "-d", &tree.reference(), &tree.base]);
        // It has moved: it stays.
        let _ = delete.bytes();
    }
    Ok(held.let_go()?)
}
