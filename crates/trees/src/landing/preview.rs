//! Merges two branches in memory.

use super::LandingError;
use crate::repository::{GitCall, GitError, GitRepository};

/// The outcome of a merge in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preview {
    /// The merged tree, which has conflict markers where there are any.
    pub tree: String,
    /// The paths that both change, and that git can't merge.
    pub conflicts: Vec<String>,
}

/// Merges a branch into another in memory.
pub fn preview(
    repository: &GitRepository,
    branch: &str,
    into: &str,
) -> Result<Preview, LandingError> {
    repository.merges_in_memory().map_err(LandingError::Old)?;
    for name in [branch, into] {
        if repository.tip(name).is_none() {
            return Err(LandingError::NoBranch(name.to_owned()));
        }
    }
    let of = |name: &str| format!("refs/heads/{name}");
    Ok(exactly(repository, &of(into), &of(branch), None)?)
}

/// Merges two commits in memory by the attributes of the first: a file that is not to be merged line by line is not.
/// git older than 2.41 merges such files as [`between`] does.
pub(super) fn exactly(
    repository: &GitRepository,
    ours: &str,
    theirs: &str,
    base: Option<&str>,
) -> Result<Preview, GitError> {
    let mut call = repository.git();
    call.env("GIT_ATTR_SOURCE", ours).args(no_drivers(repository));
    merge(call, ours, theirs, base)
}

/// Arguments by which git runs no program that merges a file: such a file is in conflict where both sides changed it.
pub(super) fn no_drivers(repository: &GitRepository) -> Vec<String> {
    let mut list = repository.git();
    list.args(["config", "--name-only", "--get-regexp", r"^merge\..*\.driver$"]);
    let names = list.text().unwrap_or_default();
    names.lines().flat_map(|name| ["-c".to_owned(), format!("{name}=false")]).collect()
}

/// Merges two commits in memory, whatever their attributes say. `base`: what they are compared with; None: what both come
/// from.
pub fn between(
    repository: &GitRepository,
    ours: &str,
    theirs: &str,
    base: Option<&str>,
) -> Result<Preview, GitError> {
    merge(repository.git(), ours, theirs, base)
}

/// As [`between`], by a call of git that has its settings.
pub(super) fn merge(
    mut merge: GitCall,
    ours: &str,
    theirs: &str,
    base: Option<&str>,
) -> Result<Preview, GitError> {
    merge.args(["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"]);
    merge.args(base.map(|base| format!("--merge-base={base}")));
    let (_, answer) = merge.args([ours, theirs]).code_and_bytes()?;
    let mut names = answer.split(|byte| *byte == 0);
    let mut next = || names.next().map(|name| String::from_utf8_lossy(name).into_owned());
    let tree = next().unwrap_or_default();
    let mut conflicts = Vec::new();
    while let Some(name) = next().filter(|name| !name.is_empty()) {
        conflicts.push(name);
    }
    Ok(Preview { tree, conflicts })
}
