//! How a worktree stands: its commits beside those of its base, and what is not committed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde::Serialize;

use super::{Worktree, WorktreeState};
use crate::repository::GitError;

/// How a worktree stands to the branch that it began at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BranchStanding {
    /// The branch that it is compared with; None: there is none any more.
    pub into: Option<String>,
    /// Commits that it has, and that the other does not.
    pub ahead: u64,
    pub behind: u64,
    /// Its changes: its commits, and what is not committed.
    pub diff: Diffs,
    /// Files with changes that are not committed.
    pub uncommitted: u64,
    /// Whether all its commits are in the other.
    pub is_merged: bool,
}

/// Files and lines.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Diffs {
    pub files: u64,
    pub added: u64,
    pub removed: u64,
}

/// How a worktree stands now. `into`: the branch that it is compared with; None: the one that it began at.
pub fn standing(tree: &Worktree, into: Option<&str>) -> Result<BranchStanding, GitError> {
    let repository = tree.repository();
    let into = into.map(str::to_owned).or_else(|| tree.base_branch.clone());
    let into = into.filter(|into| repository.tip(into).is_some());
    let other = into.clone().map_or_else(|| tree.base.clone(), |into| format!("refs/heads/{into}"));
    let own = tree.reference();
    let range = format!("{other}...{own}");
    let mut count = repository.git();
    count.args(["rev-list", "--left-right", "--count", &range, "--"]);
    let counted = count.text()?;
    let mut numbers = counted.split_whitespace().map(|it| it.parse().unwrap_or_default());
    let (behind, ahead) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let since = repository.git().args(["merge-base", &other, &own]).text()?;
    let is_there = tree.state == WorktreeState::Ready && tree.path.is_dir();
    let (diff, uncommitted) = if is_there {
        let mut diff = tree.git();
        diff.args(["diff", "--numstat", "-z", "--no-renames", "--ignore-submodules=dirty"]);
        let mut diff = lines(&diff.args([&since, "--"]).bytes()?);
        let mut status = tree.git();
        status.args(["status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=dirty"]);
        status.args(["--untracked-files=all", "--", "."]).args(tree.brought_in()?);
        let status = status.bytes()?;
        let changes: Vec<_> =
            status.split(|byte| *byte == 0).filter(|line| !line.is_empty()).collect();
        for line in changes.iter().filter(|line| line.starts_with(b"?? ")) {
            diff.files += 1;
            diff.added += lines_of(&tree.path.join(OsStr::from_bytes(&line[3..])));
        }
        (diff, changes.len() as u64)
    } else {
        let mut diff = repository.git();
        diff.args(["diff", "--numstat", "-z", "--no-renames", &since, &own, "--"]);
        (lines(&diff.bytes()?), 0)
    };
    // One that never had a commit of its own was not merged.
    let is_merged = ahead == 0 && repository.tip(&tree.branch).is_some_and(|tip| tip != tree.base);
    Ok(BranchStanding { into, ahead, behind, diff, uncommitted, is_merged })
}

/// Bytes of a new file whose lines are counted.
const LONGEST: u64 = 1 << 20;

fn lines_of(file: &Path) -> u64 {
    let found = file.symlink_metadata().ok().filter(|it| it.is_file() && it.len() <= LONGEST);
    let text = found.and_then(|_| std::fs::read(file).ok()).unwrap_or_default();
    let parts = text.split(|byte| *byte == b'\n').count();
    // The last line may have no end.
    (parts - usize::from(text.is_empty() || text.ends_with(b"\n"))) as u64
}

/// Adds up the lines `ADDED<TAB>REMOVED<TAB>PATH`.
fn lines(numstat: &[u8]) -> Diffs {
    let mut sum = Diffs::default();
    for line in numstat.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let line = String::from_utf8_lossy(line);
        let mut fields = line.split('\t').map(|field| field.parse::<u64>().unwrap_or_default());
        sum.files += 1;
        sum.added += fields.next().unwrap_or_default();
        sum.removed += fields.next().unwrap_or_default();
    }
    sum
}
