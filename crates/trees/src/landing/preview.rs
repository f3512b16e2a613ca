//! Merges two branches in memory.

use super::LandingError;
use crate::repository::{GitError, GitRepository};

/// The outcome of a merge in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preview {
    /// The merged tree, which has marks of conflicts where there are any.
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
    Ok(between(repository, &of(into), &of(branch), None)?)
}

/// Merges two commits in memory. `base`: what they are compared with; None: what both come from.
pub fn between(
    repository: &GitRepository,
    ours: &str,
    theirs: &str,
    base: Option<&str>,
) -> Result<Preview, GitError> {
    let mut merge = repository.git();
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
