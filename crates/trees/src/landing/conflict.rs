//! A merge with conflicts that is begun in the branch's own worktree: its agent settles it there.

use std::fmt::Write as _;

use super::{LandingError, between};
use crate::repository::GitError;
use crate::tree::{Worktree, read_plain};

/// Bytes of a part of a task: what one side did, or its commits. git shows the rest.
const LONGEST_PART: usize = 16 << 10;

/// Commits and files that a task names.
const MOST_COMMITS: &str = "20";
const MOST_FILES: usize = 100;

/// Bytes of a file in which marks are looked for.
const LONGEST: u64 = 16 << 20;

const HOW: &str = "Edit these files so that they do what both sides were made for, without the marks. Run the tests. Then \
    `git add` them, and `git commit --no-edit`. If you may not commit, a person does.";

/// Begins to merge `into` into the branch of a worktree, which must be clean. Returns the task for its agent.
pub fn begin(tree: &Worktree, into: &str) -> Result<String, LandingError> {
    tree.is_settled().map_err(LandingError::Unsettled)?;
    let target = format!("refs/heads/{into}");
    let mut merge = tree.git();
    merge.args(["-c", "merge.conflictStyle=diff3"]);
    merge.args(["merge", "--no-commit", "--no-ff", "--quiet", "-m"]);
    merge.arg(format!("Merge branch '{into}' into {}", tree.branch)).arg(&target);
    // It ends with 1 where there is a conflict.
    let begun = merge.code_and_bytes().map_err(LandingError::from);
    let described = begun.and_then(|_| task(tree, into, &target));
    if described.is_err() {
        let _ = abort(tree);
    }
    described
}

fn task(tree: &Worktree, into: &str, target: &str) -> Result<String, LandingError> {
    let branch = &tree.branch;
    let files = under_way(tree)?.unwrap_or_default();
    let base = tree.git().args(["merge-base", "HEAD", target]).text()?;
    let mut task = format!(
        "`{into}` and your branch `{branch}` change the same lines. A merge of `{into}` into `{branch}` is begun in your worktree. \
         These files have both sides, between marks of conflicts:\n\n"
    );
    for path in files.iter().take(MOST_FILES) {
        let _ = writeln!(task, "- {path}");
    }
    if files.len() > MOST_FILES {
        let _ = writeln!(task, "- and {} more: `git status`", files.len() - MOST_FILES);
    }
    let log =
        ["log", "--oneline", "--no-decorate", "-n", MOST_COMMITS, &format!("{base}..{target}")];
    let diff = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", &base];
    for (heading, command) in [
        (format!("Commits of `{into}`"), &log[..]),
        (format!("Changes of `{into}`"), &[&diff[..], &[target]].concat()),
        (format!("Changes of `{branch}`"), &[&diff[..], &["HEAD"]].concat()),
    ] {
        let part = part(tree, command, &files)?;
        let _ = writeln!(task, "\n{heading}:\n\n{part}");
    }
    Ok(format!("{task}\n{HOW}"))
}

/// The output of git about some files, cut where it is too long.
fn part(tree: &Worktree, command: &[&str], files: &[String]) -> Result<String, GitError> {
    let mut git = tree.git();
    git.arg("--literal-pathspecs").args(command).arg("--").args(files);
    let mut text = git.text()?;
    if text.len() > LONGEST_PART {
        text.truncate(text.floor_char_boundary(LONGEST_PART));
        text.push_str("\n(cut here)");
    }
    Ok(text)
}

/// Takes back a merge that was begun, with all that was done to settle it.
pub fn abort(tree: &Worktree) -> Result<(), LandingError> {
    tree.git().args(["merge", "--abort"]).bytes()?;
    Ok(())
}

/// The files with conflicts of the merge that is under way in a worktree, settled or not; None: there is no merge.
pub fn under_way(tree: &Worktree) -> Result<Option<Vec<String>>, LandingError> {
    if !tree.is_merging() {
        return Ok(None);
    }
    let [head, merged] =
        ["HEAD", "MERGE_HEAD"].map(|name| tree.git().args(["rev-parse", "--verify", name]).text());
    Ok(Some(between(&tree.repository(), &head?, &merged?, None)?.conflicts))
}

/// Refuses files that still have marks of conflicts.
pub fn refuse_marks(tree: &Worktree, files: Vec<String>) -> Result<(), LandingError> {
    let is_mark = |line: &[u8]| line.starts_with(b"<<<<<<< ") || line.starts_with(b">>>>>>> ");
    let has_marks = |path: &String| {
        let text = read_plain(&tree.path.join(path), LONGEST).unwrap_or_default();
        text.split(|byte| *byte == b'\n').any(is_mark)
    };
    let marked: Vec<_> = files.into_iter().filter(has_marks).collect();
    if marked.is_empty() {
        return Ok(());
    }
    Err(LandingError::Marked { place: tree.path.clone(), marked })
}
