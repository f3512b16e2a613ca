//! A merge with conflicts that is begun in the branch's own worktree: its agent settles it there.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{LandingError, between};
use crate::repository::{GitError, GitRepository};
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

/// Refuses files with conflicts that nobody settled: those that have marks which neither side has, and those without marks
/// (binary files, files that one side removed) that git still lists.
pub fn refuse_unsettled(tree: &Worktree, files: &[String]) -> Result<(), LandingError> {
    let listed = tree.git().args(["ls-files", "--unmerged", "-z"]).bytes()?;
    let listed: Vec<_> = listed.split(|byte| *byte == 0).filter_map(unmerged).collect();
    let content = |name: &str, path: &str| {
        tree.git().args(["cat-file", "blob", &format!("{name}:{path}")]).bytes().unwrap_or_default()
    };
    let is_left = |path: &&String| {
        let now = read_plain(&tree.path.join(path), LONGEST).unwrap_or_default();
        let sides = [content("HEAD", path), content("MERGE_HEAD", path)];
        if marks(&now) > sides.iter().map(|side| marks(side)).max().unwrap_or_default() {
            return true;
        }
        let stages: Vec<_> = listed.iter().filter(|it| it.path == path.as_bytes()).collect();
        // Where both sides have a text, git made marks, and somebody has taken them out.
        let had_marks =
            [2, 3].iter().all(|stage| stages.iter().any(|it| it.stage == *stage && it.is_file))
                && !sides.iter().any(|side| is_binary(side));
        !stages.is_empty() && !had_marks
    };
    // Names that git made for a conflict are in the list, and not among the files.
    let others = listed.iter().map(|it| String::from_utf8_lossy(&it.path).into_owned());
    let all: BTreeSet<_> = files.iter().cloned().chain(others).collect();
    let left: Vec<_> = all.iter().filter(is_left).cloned().collect();
    if left.is_empty() {
        return Ok(());
    }
    Err(LandingError::Conflicting { place: tree.path.clone(), left })
}

/// An entry of the index that is not merged.
struct Unmerged {
    path: Vec<u8>,
    stage: u8,
    is_file: bool,
}

/// An entry of the line `MODE OBJECT STAGE<TAB>PATH`.
fn unmerged(line: &[u8]) -> Option<Unmerged> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let head = str::from_utf8(&line[..tab]).ok()?;
    let mut fields = head.split(' ');
    let is_file = fields.next()?.starts_with("100");
    let stage = fields.nth(1)?.parse().ok()?;
    Some(Unmerged { path: line[tab + 1..].to_vec(), stage, is_file })
}

/// Whether git takes a content for no text.
fn is_binary(content: &[u8]) -> bool {
    content.iter().take(8_000).any(|byte| *byte == 0)
}

/// The number of conflicts that are marked in a text.
fn marks(text: &[u8]) -> usize {
    text.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"<<<<<<< ")).count()
}

/// Refuses a branch that has committed the marks of a merge which was begun for its agent.
pub fn refuse_marks(
    repository: &GitRepository,
    branch: &str,
    into: &str,
) -> Result<(), LandingError> {
    let end = format!(">>>>>>> refs/heads/{into}");
    let mut diff = repository.git();
    diff.args(["diff", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "-z"]);
    diff.arg(format!("-S{end}")).arg(format!("refs/heads/{into}...refs/heads/{branch}"));
    let names = diff.bytes()?;
    let has_marks = |path: &String| {
        let name = format!("refs/heads/{branch}:{path}");
        let text = repository.git().args(["cat-file", "blob", &name]).bytes().unwrap_or_default();
        text.split(|byte| *byte == b'\n').any(|line| line.trim_ascii_end() == end.as_bytes())
    };
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let marked: Vec<_> =
        names.map(|name| String::from_utf8_lossy(name).into_owned()).filter(has_marks).collect();
    if marked.is_empty() {
        return Ok(());
    }
    Err(LandingError::Marked { branch: branch.to_owned(), marked })
}
