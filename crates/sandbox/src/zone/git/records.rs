//! The files of a git folder that a commit writes, by paths relative to it. Pure.

use std::path::Path;

use super::SEALED;
use crate::zone::patterns::Subtree;

/// Files that make a folder among objects, refs or logs a repository of its own.
const NESTED: [&str; 3] = [".git", "objects", "commondir"];

/// Files in `objects/info` that make git read objects from elsewhere.
const ELSEWHERE: [&str; 2] = ["alternates", "http-alternates"];

/// Folders in `lfs` that the filter of Git LFS writes: contents by their hash, and what is on its way there.
const LFS: [&str; 3] = ["objects", "tmp", "incomplete"];

/// Whether `git commit` writes a path, given relative to its git folder. A list of writable files,
/// since later versions of git may obey further ones.
pub(super) fn is_record(within: &Path) -> bool {
    let Some(names) = within.iter().map(|name| name.to_str()).collect::<Option<Vec<_>>>() else {
        return false;
    };
    let mut names = names.as_slice();
    loop {
        match names {
            // A submodule that came after the start: its name may contain slashes, so the start of
            // its folder is unknown.
            ["worktrees" | "modules", _, behind @ ..] => {
                if behind.iter().any(|name| SEALED.contains(name)) {
                    return false;
                }
                names = behind;
            }
            ["objects", "info", name]
                if ELSEWHERE.contains(&name.strip_suffix(".lock").unwrap_or(name)) =>
            {
                return false;
            }
            ["objects" | "refs" | "logs", behind @ ..] if !behind.is_empty() => {
                return !behind.iter().any(|name| NESTED.contains(name));
            }
            ["lfs", folder, behind @ ..] if !behind.is_empty() => {
                return LFS.contains(folder) && !behind.iter().any(|name| NESTED.contains(name));
            }
            // Made with the first commit of a repository or a worktree.
            ["refs" | "logs"] => return true,
            [name] => return is_record_file(name),
            _ => return false,
        }
    }
}

/// The state of a rebase, or of a row of picks, in a worktree's own folder.
const SEQUENCES: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

/// Whether a path, within a worktree's own folder, is the state of a rebase. git goes on with it only when it is told to.
pub(super) fn is_sequence(within: &Path) -> bool {
    let mut names = within.iter();
    names.next().is_some_and(|first| SEQUENCES.iter().any(|name| first == *name))
        && !names.any(|name| NESTED.iter().chain(&SEALED).any(|it| name == *it))
}

/// Files that hold something of all worktrees and that a commit locks, but does not replace.
const LOCKED: [&str; 2] = ["packed-refs.lock", "maintenance.lock"];

/// Folders whose files are named by their content.
const CONTENTS: [&str; 2] = ["objects", "lfs"];

/// Folders that the first log of a repository makes.
const LOGS: [&str; 3] = ["logs", "logs/refs", "logs/refs/heads"];

/// Whether a commit in a worktree of a task writes a path of what all worktrees share: objects, and the worktree's
/// own branch with its log.
pub(super) fn is_own_record(within: &Path, branch: &str) -> bool {
    if CONTENTS.iter().any(|folder| within.starts_with(folder)) {
        return is_record(within);
    }
    let is_any = |names: &[&str]| names.iter().any(|name| within == Path::new(name));
    if is_any(&LOCKED) || is_any(&LOGS) {
        return true;
    }
    let heads = within.strip_prefix("logs").unwrap_or(within);
    let Some(name) = heads.strip_prefix("refs/heads").ok().and_then(Path::to_str) else {
        return false;
    };
    let own = name.strip_prefix(branch);
    let is_own =
        own.is_some_and(|rest| rest.is_empty() || rest == ".lock" || rest.starts_with('/'));
    // git removes folders that are empty, and makes them again.
    let is_above = branch.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
    (is_own || is_above && !name.is_empty()) && is_record(within)
}

/// Whether such a commit writes something below a folder.
pub(super) fn own_records_below(within: &Path, branch: &str) -> Subtree {
    let heads = within.strip_prefix("logs").unwrap_or(within);
    let own = Path::new("refs/heads").join(branch);
    let leads_to_own = own.starts_with(heads) || heads.starts_with(&own);
    let has_contents = CONTENTS.iter().any(|folder| within.starts_with(folder));
    if within.as_os_str().is_empty() || has_contents || leads_to_own {
        records_below(within)
    } else {
        Subtree::None
    }
}

/// Whether `git commit` writes something below a folder, given relative to its git folder.
pub(super) fn records_below(within: &Path) -> Subtree {
    let Some(names) = within.iter().map(|name| name.to_str()).collect::<Option<Vec<_>>>() else {
        return Subtree::None;
    };
    let mut names = names.as_slice();
    while let ["worktrees" | "modules", _, behind @ ..] = names {
        names = behind;
    }
    let behind = match names {
        [] | ["worktrees" | "modules" | "lfs"] => return Subtree::Mixed,
        ["lfs", folder, behind @ ..] if LFS.contains(folder) => behind,
        ["objects" | "refs" | "logs", behind @ ..] => behind,
        _ => return Subtree::None,
    };
    if behind.iter().any(|name| NESTED.contains(name)) { Subtree::None } else { Subtree::Mixed }
}

fn is_record_file(name: &str) -> bool {
    let name = name.strip_suffix(".lock").unwrap_or(name);
    matches!(name, "HEAD" | "index" | "AUTO_MERGE" | "SQUASH_MSG" | "gc.pid" | "gc.log")
        || name.ends_with("_HEAD")
        || name.ends_with("_EDITMSG")
        || ["MERGE_", "packed-refs", "sharedindex.", "next-index-", "index.stash."]
            .iter()
            .any(|start| name.starts_with(start))
}
