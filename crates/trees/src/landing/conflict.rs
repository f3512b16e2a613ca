//! A merge with conflicts that is begun in the branch's own worktree: its agent settles it there.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::LandingError;
use super::preview::{Preview, merge, no_drivers};
use crate::repository::{GitError, GitRepository};
use crate::tree::{Worktree, read_plain};

/// Bytes of a part of a task: what one side did, or its commits. git shows the rest.
const LONGEST_PART: usize = 16 << 10;

/// Commits and files that a task names.
const MOST_COMMITS: &str = "20";
const MOST_FILES: usize = 100;

/// Bytes of a file in which marks are looked for.
const LONGEST: u64 = 16 << 20;

const HOW: &str = "Edit these files so that they do what both sides were made for, and take the marks out. Run the tests. Then \
    `git add` them, and `git commit --no-edit`. If you may not commit, a person does.";

/// Begins to merge `into` into the branch of a worktree, which must be clean. Returns the task for its agent.
pub fn begin(tree: &Worktree, into: &str) -> Result<String, LandingError> {
    tree.is_settled().map_err(LandingError::Unsettled)?;
    let target = format!("refs/heads/{into}");
    let mut merge = tree.git();
    merge.args(["-c", "merge.conflictStyle=diff3"]).args(no_drivers(&tree.repository()));
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
        "git cannot merge `{into}` and your branch `{branch}` by itself. A merge of `{into}` into `{branch}` is begun in your worktree. \
         These files are in conflict. Text that both sides changed has marks, with both sides between; others (binary files, \
         and those that a side removed, renamed, or gave other permissions) have none, and `git status` says what happened:\n\n"
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
    Ok(begun(tree)?.map(|merged| merged.conflicts))
}

/// The merge that is under way in a worktree, as it was when it began.
fn begun(tree: &Worktree) -> Result<Option<Preview>, GitError> {
    if !tree.is_merging() {
        return Ok(None);
    }
    let commit = |name: &str| tree.git().args(["rev-parse", "--verify", name]).text();
    // By the attributes that its files have.
    let mut call = tree.git();
    call.args(no_drivers(&tree.repository()));
    merge(call, &commit("HEAD")?, &commit("MERGE_HEAD")?, None).map(Some)
}

/// Refuses files with conflicts that nobody settled: those that have marks which neither side has, and those without marks
/// (binary files, files that one side removed) that git still lists.
pub fn refuse_unsettled(tree: &Worktree, files: &[String]) -> Result<(), LandingError> {
    let listed = tree.git().args(["ls-files", "--unmerged", "-z"]).bytes()?;
    let listed: Vec<_> = listed.split(|byte| *byte == 0).filter_map(unmerged).collect();
    let content = |name: &str, path: &str| {
        tree.git().args(["cat-file", "blob", &format!("{name}:{path}")]).bytes().unwrap_or_default()
    };
    // As git merges them in the worktree, by its attributes.
    let merged = begun(tree)?.map(|merged| merged.tree).unwrap_or_default();
    let is_left = |path: &&String| {
        let now = read_plain(&tree.path.join(path), LONGEST).unwrap_or_default();
        let of_sides = ["HEAD", "MERGE_HEAD"].map(|side| marks(&content(side, path)));
        let of_sides = of_sides.into_iter().max().unwrap_or_default();
        // Where git made marks, somebody has taken them out.
        let is_listed = || listed.iter().any(|it| it == path.as_bytes());
        marks(&now) > of_sides || is_listed() && marks(&content(&merged, path)) <= of_sides
    };
    // Names that git made for a conflict are in the list, and not among the files.
    let others = listed.iter().map(|it| String::from_utf8_lossy(it).into_owned());
    let all: BTreeSet<_> = files.iter().cloned().chain(others).collect();
    let left: Vec<_> = all.iter().filter(is_left).cloned().collect();
    if left.is_empty() {
        return Ok(());
    }
    Err(LandingError::Conflicting { place: tree.path.clone(), left })
}

/// The path of the line `MODE OBJECT STAGE<TAB>PATH`.
fn unmerged(line: &[u8]) -> Option<Vec<u8>> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    Some(line[tab + 1..].to_vec())
}

/// Letters of a mark of a conflict, at least: attributes and renames make it longer.
const MARK: usize = 7;

/// Lines that begin a conflict in a text, and those that end one in a merge which was begun here.
fn marks(text: &[u8]) -> usize {
    let lines = text.split(|byte| *byte == b'\n');
    lines.filter(|line| mark(line, b'<', b" ").is_some() || ends_own(line)).count()
}

/// Whole conflicts in a text, and the ends of those of a merge which was begun here. A text about marks has the lines,
/// and seldom all of them.
fn conflicts(text: &[u8]) -> usize {
    let (mut count, mut begun, mut divided) = (0, None, None);
    for line in text.split(|byte| *byte == b'\n') {
        if let Some(letters) = mark(line, b'<', b" ") {
            (begun, divided) = (Some(letters), None);
        } else if mark(line.trim_ascii_end(), b'=', b"").is_some_and(|it| Some(it) == begun) {
            divided = begun;
        } else if ends_own(line) || mark(line, b'>', b" ").is_some_and(|it| Some(it) == divided) {
            count += 1;
            (begun, divided) = (None, None);
        }
    }
    count
}

/// Whether a line ends a conflict of a merge which was begun here.
fn ends_own(line: &[u8]) -> bool {
    mark(line, b'>', b" refs/heads/").is_some()
}

/// How many letters of a kind a line begins with, where these are a mark and a name follows.
fn mark(line: &[u8], letter: u8, name: &[u8]) -> Option<usize> {
    let count = line.iter().take_while(|byte| **byte == letter).count();
    (count >= MARK && line[count..].starts_with(name)).then_some(count)
}

/// The lines that are counted as marks, for `git diff -G`.
const MARKS: &str = "^(<<<<<<<+ |>>>>>>>+ )";

/// Refuses a branch whose commit `own` has marks of a conflict: of a merge which was begun for its agent, or of its own.
pub fn refuse_marks(
    repository: &GitRepository,
    (branch, own): (&str, &str),
    into: &str,
) -> Result<(), LandingError> {
    let other = format!("refs/heads/{into}");
    let base = repository.git().args(["merge-base", own, &other]).text().unwrap_or_default();
    let from = if base.is_empty() { &other } else { &base };
    let mut diff = repository.git();
    diff.args(["diff", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "-z"]);
    diff.args(["--text", "-G", MARKS, "--diff-filter=d", from, own, "--"]);
    let names = diff.bytes()?;
    let count = |side: &str, path: &str| {
        let name = format!("{side}:{path}");
        conflicts(&repository.git().args(["cat-file", "blob", &name]).bytes().unwrap_or_default())
    };
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let names = names.map(|name| String::from_utf8_lossy(name).into_owned());
    let has_marks = |path: &String| count(own, path) > count(from, path).max(count(&other, path));
    let marked: Vec<_> = names.filter(has_marks).collect();
    if marked.is_empty() {
        return Ok(());
    }
    Err(LandingError::Marked { branch: branch.to_owned(), marked })
}
