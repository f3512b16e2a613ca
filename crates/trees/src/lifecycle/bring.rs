//! Brings files into a new worktree that git does not have: those of `.worktreeinclude`, of `copy` and of `link`.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use ignore::WalkBuilder;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use nix::libc::O_NOFOLLOW;

use super::copy::Copier;
use crate::tree::{CopiedFile, Worktree, WorktreeError};

/// The list of a project: patterns as in `.gitignore`, of files that git ignores.
const LIST: &str = ".worktreeinclude";

/// Files and bytes that are copied into one worktree.
const MOST_FILES: usize = 10_000;
const MOST_BYTES: u64 = 1 << 30;

/// Which files are brought into a new worktree.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Bringing {
    /// Patterns as in `.gitignore`, of files that git ignores or does not know.
    pub copy: Vec<String>,
    /// Files and folders that become links to those of the main worktree.
    pub link: Vec<String>,
}

/// The files that were brought, and sentences about the others.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Brought {
    pub copied: BTreeMap<String, CopiedFile>,
    pub linked: Vec<String>,
    pub notes: Vec<String>,
}

/// Copies and links what is asked for.
pub(super) fn bring(
    tree: &Worktree,
    main: &Path,
    asked: &Bringing,
) -> Result<Brought, WorktreeError> {
    let mut brought = Brought::default();
    for link in &asked.link {
        match link_one(tree, main, link) {
            Ok(()) => {
                brought.linked.push(link.clone());
                if !is_ignored(tree, link)? {
                    brought.notes.push(format!(
                        "git does not ignore the link `{link}`, so `git add -A` commits it: put the line `/{link}` into .gitignore (`{link}/` means folders alone)"
                    ));
                }
            }
            Err(why) => brought.notes.push(format!("`link` has `{link}`: {why}")),
        }
    }
    for line in &asked.copy {
        let path = line.trim_matches('/');
        if tree.is_of_build(Path::new(path)) && main.join(path).exists() {
            brought.notes.push(format!(
                "`copy` has `{line}`: a folder that builds fill is not copied; `setup` can fill it"
            ));
        }
    }
    let list = patterns(main, &[], true, &mut brought.notes);
    let copy = patterns(main, &asked.copy, false, &mut brought.notes);
    if list.is_empty() && copy.is_empty() {
        return Ok(brought);
    }
    let found = matched(tree, main, &brought.linked, &[&list, &copy]);
    let (untracked, ignored) = unknown_to_git(tree, main, &found)?;
    // The list of the project is for files that git ignores; `copy` is for all that git does not have.
    let is_wanted = |path: &PathBuf| {
        ignored.contains(path) || untracked.contains(path) && is_matched(&copy, main, path)
    };
    let contents = Copier::new(&tree.path);
    let mut bytes = 0;
    for path in found.into_iter().filter(is_wanted) {
        let shown = path.to_string_lossy().into_owned();
        if brought.copied.len() >= MOST_FILES || bytes > MOST_BYTES {
            let most = MOST_BYTES >> 30;
            brought.notes.push(format!(
                "more than {MOST_FILES} files or {most} GiB would be copied: `{shown}` and those behind it are not"
            ));
            break;
        }
        match copy_one(main, &tree.path, &path, &contents) {
            Ok(copied) => {
                bytes += copied.bytes;
                brought.copied.insert(shown, copied);
            }
            Err(error) => brought.notes.push(format!("`{shown}` was not copied: {error}")),
        }
    }
    Ok(brought)
}

/// The patterns of the project's list, or of a key.
fn patterns(main: &Path, lines: &[String], of_list: bool, notes: &mut Vec<String>) -> Gitignore {
    let mut builder = GitignoreBuilder::new(main);
    if of_list {
        let file = main.join(LIST);
        if file.is_file() {
            notes.extend(builder.add(&file).map(|error| format!("`{LIST}`: {error}")));
        }
    }
    for line in lines {
        if let Err(error) = builder.add_line(None, line) {
            notes.push(format!("`copy` has `{line}`: {error}"));
        }
    }
    builder.build().unwrap_or_else(|error| {
        notes.push(error.to_string());
        Gitignore::empty()
    })
}

fn is_matched(patterns: &Gitignore, main: &Path, path: &Path) -> bool {
    patterns.matched_path_or_any_parents(main.join(path), false).is_ignore()
}

/// The files that match, relative to the main worktree. Folders that builds fill are not looked at.
fn matched(
    tree: &Worktree,
    main: &Path,
    linked: &[String],
    patterns: &[&Gitignore],
) -> Vec<PathBuf> {
    let (own, top, linked) = (tree.clone(), main.to_owned(), linked.to_owned());
    let mut walk = WalkBuilder::new(main);
    walk.standard_filters(false).follow_links(false).sort_by_file_name(Ord::cmp);
    walk.filter_entry(move |entry| {
        let Ok(path) = entry.path().strip_prefix(&top) else { return false };
        // Another repository is not this one's.
        let is_git = path.iter().any(|name| name == ".git");
        let is_repository = !path.as_os_str().is_empty() && entry.path().join(".git").exists();
        let is_linked = linked.iter().any(|link| path.starts_with(link));
        !is_git && !is_repository && !is_linked && !own.is_of_build(path)
    });
    let files = walk.build().filter_map(Result::ok);
    let files = files.filter(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir()));
    let paths = files.filter_map(|entry| Some(entry.path().strip_prefix(main).ok()?.to_owned()));
    paths.filter(|path| patterns.iter().any(|it| is_matched(it, main, path))).collect()
}

/// The files among these that git does not have: those that it would take, and those that it ignores.
fn unknown_to_git(
    tree: &Worktree,
    main: &Path,
    found: &[PathBuf],
) -> Result<(Vec<PathBuf>, Vec<PathBuf>), WorktreeError> {
    if found.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let lines = |paths: &[PathBuf]| {
        let mut bytes = Vec::new();
        for path in paths {
            // A name that begins with a colon is a name.
            bytes.extend_from_slice(b"./");
            bytes.extend_from_slice(path.as_os_str().as_encoded_bytes());
            bytes.push(0);
        }
        bytes
    };
    let call = || crate::repository::GitCall::of(&tree.common, Some(main));
    let tracked = call().args(["ls-files", "-z"]).bytes()?;
    let tracked: std::collections::HashSet<_> = tracked.split(|byte| *byte == 0).collect();
    let mut unknown: Vec<_> = found.to_vec();
    unknown.retain(|path| !tracked.contains(path.as_os_str().as_encoded_bytes()));
    let mut ask = call();
    let (_, answer) =
        ask.args(["check-ignore", "-z", "--stdin"]).input(lines(&unknown)).code_and_bytes()?;
    let ignored: std::collections::HashSet<_> =
        answer.split(|byte| *byte == 0).filter_map(|path| path.strip_prefix(b"./")).collect();
    let (ignored, untracked) =
        unknown.into_iter().partition(|path| ignored.contains(path.as_os_str().as_encoded_bytes()));
    Ok((untracked, ignored))
}

fn copy_one(main: &Path, tree: &Path, path: &Path, contents: &Copier) -> io::Result<CopiedFile> {
    let from = main.join(path);
    let found = from.symlink_metadata()?;
    let to = place_in(tree, path)?;
    if found.is_symlink() {
        symlink(fs::read_link(&from)?, &to)?;
    } else if found.is_file() {
        let mut source = OpenOptions::new().read(true).custom_flags(O_NOFOLLOW).open(&from)?;
        let mode = found.permissions().mode() & 0o777;
        let mut copy = OpenOptions::new().write(true).create_new(true).mode(mode).open(&to)?;
        contents.copy(&mut source, &mut copy, found.len(), &mut Vec::new())?;
        copy.set_modified(found.modified()?)?;
    } else {
        return Err(io::Error::other("it is no file"));
    }
    CopiedFile::of(&to)
}

/// Whether git leaves a path out of `git add -A`.
fn is_ignored(tree: &Worktree, path: &str) -> Result<bool, WorktreeError> {
    let mut ask = tree.git();
    // A name that begins with a colon is a name.
    Ok(ask.args(["check-ignore", "-q", "--"]).arg(Path::new(".").join(path)).answer()?)
}

/// Makes a link to a file or folder of the main worktree, whatever that is.
fn link_one(tree: &Worktree, main: &Path, link: &str) -> Result<(), String> {
    let path = Path::new(link);
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_plain || link.is_empty() {
        return Err("it is no path in the repository".to_owned());
    }
    if tree.is_of_build(path) {
        return Err("a folder that builds fill has to be each worktree's own".to_owned());
    }
    let (from, to) = (main.join(path), tree.path.join(path));
    if from.symlink_metadata().is_err() {
        return Err("there is none".to_owned());
    }
    if to.symlink_metadata().is_ok() {
        return Err("git has it".to_owned());
    }
    let made = place_in(&tree.path, path).and_then(|to| symlink(&from, to));
    made.map_err(|error| error.to_string())
}

/// The place of a path in a worktree, whose folders are made. No link is followed: the branch may have one that leads out.
pub(super) fn place_in(top: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut place = top.to_owned();
    let mut names = path.components().peekable();
    while let Some(Component::Normal(name)) = names.next() {
        place.push(name);
        if names.peek().is_none() {
            return Ok(place);
        }
        match fs::create_dir(&place) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if !place.symlink_metadata()?.is_dir() {
            return Err(io::Error::other("a link or a file is in the place of its folder"));
        }
    }
    Err(io::Error::other("it is no path in the worktree"))
}
