//! Brings a worktree back from its recovery: its branch, its files and git's own state of it, as they were.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use super::bring::place_in;
use crate::recovery::{Manifest, RecoveryError, SavedFile, read_manifest};
use crate::repository::GitRepository;
use crate::tree::{CopiedFile, HeldWorktree, Worktree, WorktreeError, WorktreeState, Worktrees};

/// Files of git's folder that git makes anew.
const OF_PLACE: [&str; 3] = ["gitdir", "commondir", "locked"];

/// A worktree that came back.
#[derive(Debug)]
pub struct BroughtBack {
    pub held: HeldWorktree,
    pub notes: Vec<String>,
}

/// Brings the worktree of a branch back.
pub fn restore(
    trees: &Worktrees,
    repository: &GitRepository,
    branch: &str,
) -> Result<BroughtBack, RecoveryError> {
    let none = || RecoveryError::None(branch.to_owned());
    let held = trees.hold(repository, branch)?.ok_or_else(none)?;
    if held.tree.state != WorktreeState::Gone {
        held.tree.is_there()?;
        return Err(RecoveryError::There(branch.to_owned(), held.tree.path.clone()));
    }
    let reference = held.tree.recovery.clone().ok_or_else(none)?;
    let manifest = read_manifest(&held.tree, &reference)?;
    let mut notes = Vec::new();
    let tip = manifest.tip.clone().or_else(|| manifest.head.clone()).ok_or_else(none)?;
    match repository.tip(branch) {
        None => {
            let mut make = repository.git();
            make.args(["update-ref", &format!("refs/heads/{branch}"), &tip, ""]).bytes()?;
        }
        Some(now) if now != tip => notes.push(format!(
            "the branch has moved since, to {}: the worktree is on its old commit, {}, without a branch",
            &now[..now.len().min(12)],
            &tip[..tip.len().min(12)]
        )),
        Some(_) => {}
    }
    let has_moved = !notes.is_empty();
    held.share(true);
    let mut held = make_again(trees, repository, held)?;
    let tree = &held.tree;
    fill(tree, &manifest, has_moved)?;
    notes.extend(bring_again(tree));
    trees.renew_ports(&mut held)?;
    held.tree.state = WorktreeState::Ready;
    held.keep()?;
    held.share(false);
    Ok(BroughtBack { held, notes })
}

/// Writes the files of the commit, then those of the recovery over them.
fn fill(tree: &Worktree, manifest: &Manifest, has_moved: bool) -> Result<(), RecoveryError> {
    let head = manifest.head.as_ref().or(manifest.tip.as_ref());
    if let Some(head) = head {
        tree.git().args(["read-tree", "--reset", "-u", head]).bytes()?;
    }
    let strange = || RecoveryError::Strange("a path leads out of it".to_owned());
    for path in &manifest.missing {
        let place = tree.path.join(path.path().ok_or_else(strange)?);
        let _ = fs::remove_file(&place);
        let above = place.ancestors().skip(1).take_while(|folder| **folder != *tree.path);
        for folder in above {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
    write_all(tree, &tree.path, &manifest.files, |_| true)?;
    for folder in &manifest.folders {
        let folder = folder.path().ok_or_else(strange)?;
        let made = place_in(&tree.path, &folder).and_then(|place| match fs::create_dir(place) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        });
        made.map_err(RecoveryError::at(tree.path.join(folder)))?;
    }
    write_all(tree, &tree.git_dir, &manifest.own, |path| {
        let is_of_place = OF_PLACE.iter().any(|name| path == Path::new(name));
        // A lock that was left would hold git up again.
        let is_lock = path.extension().is_some_and(|extension| extension == "lock");
        let is_left = is_of_place || is_lock || has_moved && path == Path::new("HEAD");
        !is_left
    })?;
    complete_modules(&tree.git_dir.join("modules"));
    if let Some(head) = head.filter(|_| has_moved) {
        // On the branch, its files and index would take back what came since.
        let (beside, place) = (tree.git_dir.join("HEAD.new"), tree.git_dir.join("HEAD"));
        let written = fs::write(&beside, format!("{head}\n"));
        let written = written.and_then(|()| fs::rename(&beside, &place));
        written.map_err(RecoveryError::at(place))?;
    }
    // The marks of the files are new.
    let mut refresh = tree.git();
    let _ = refresh.args(["update-index", "-q", "--refresh"]).code_and_bytes();
    Ok(())
}

/// Folders of submodules that are looked through.
const MOST_FOLDERS: usize = 10_000;

/// Makes the folders without which git takes a submodule's for no repository: a recovery has files alone.
fn complete_modules(modules: &Path) {
    let mut ahead = vec![modules.to_owned()];
    for _ in 0..MOST_FOLDERS {
        let Some(folder) = ahead.pop() else { return };
        if folder.join("HEAD").is_file() {
            for name in ["refs", "objects"] {
                let _ = fs::create_dir(folder.join(name));
            }
        }
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        ahead.extend(folders.map(|entry| entry.path()));
    }
}

/// Files whose contents are read by one call of git, and their bytes: a larger one is read by itself, past the memory.
const AT_ONCE: usize = 200;
const LARGE: u64 = 1 << 20;

fn write_all(
    tree: &Worktree,
    top: &Path,
    files: &[SavedFile],
    is_wanted: impl Fn(&Path) -> bool,
) -> Result<(), RecoveryError> {
    let strange = || RecoveryError::Strange("a path leads out of it".to_owned());
    let mut small = Vec::new();
    for file in files {
        let path = file.path.path().ok_or_else(strange)?;
        if !is_wanted(&path) {
            continue;
        }
        make_room(top, &path)?;
        let place = top.join(path);
        if file.bytes > LARGE && !file.is_link() {
            let beside = beside(&place);
            let copy = create(&beside)?;
            tree.repository().git().args(["cat-file", "blob", &file.object]).write_into(copy)?;
            finish(&beside, &place, file)?;
        } else {
            small.push((place, file));
        }
    }
    for chunk in small.chunks(AT_ONCE) {
        let names: Vec<_> = chunk.iter().map(|(_, file)| file.object.as_str()).collect();
        let mut read = tree.repository().git();
        let read = read.args(["cat-file", "--batch"]).input(names.join("\n") + "\n").bytes()?;
        let mut rest = &read[..];
        for (place, file) in chunk {
            let content = next_blob(&mut rest).ok_or_else(|| {
                RecoveryError::Strange(format!("git has no blob {}", file.object))
            })?;
            let beside = beside(place);
            if file.is_link() {
                let target = PathBuf::from(std::ffi::OsString::from_vec(content.to_vec()));
                symlink(target, &beside).map_err(RecoveryError::at(place))?;
            } else {
                create(&beside)?.write_all(content).map_err(RecoveryError::at(place))?;
            }
            finish(&beside, place, file)?;
        }
    }
    Ok(())
}

/// Takes a blob off an answer of `cat-file --batch`: `OBJECT blob BYTES`, and the bytes.
fn next_blob<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (line, behind) = (str::from_utf8(&rest[..end]).ok()?, &rest[end + 1..]);
    let mut words = line.split(' ');
    let (_, kind, bytes) = (words.next()?, words.next()?, words.next()?.parse::<usize>().ok()?);
    let (content, behind) = behind.split_at_checked(bytes)?;
    *rest = behind.get(1..)?;
    (kind == "blob").then_some(content)
}

/// Takes away what stands in the place of a file and of its folders: the commit may have a link there.
fn make_room(top: &Path, path: &Path) -> Result<(), RecoveryError> {
    let mut above: Vec<_> = path.ancestors().skip(1).collect();
    above.retain(|folder| !folder.as_os_str().is_empty());
    for folder in above.into_iter().rev().map(|folder| top.join(folder)) {
        if folder.symlink_metadata().is_ok_and(|it| !it.is_dir()) {
            fs::remove_file(&folder).map_err(RecoveryError::at(&folder))?;
        }
    }
    let place = &place_in(top, path).map_err(RecoveryError::at(top.join(path)))?;
    match place.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(place).map_err(RecoveryError::at(place)),
        // A file is replaced at once: git fails in the whole repository without a worktree's HEAD.
        _ => Ok(()),
    }
}

/// Where a file is written before it takes its place.
fn beside(place: &Path) -> PathBuf {
    place.with_file_name(format!(".eisen-restored-{}", std::process::id()))
}

fn create(place: &Path) -> Result<File, RecoveryError> {
    let mut options = OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o600).open(place);
    made.map_err(RecoveryError::at(place))
}

/// Gives a file that was written beside its place its permissions and its time, and puts it there.
fn finish(beside: &Path, place: &Path, file: &SavedFile) -> Result<(), RecoveryError> {
    if !file.is_link() {
        let permissions = Permissions::from_mode(file.mode & 0o7777);
        fs::set_permissions(beside, permissions).map_err(RecoveryError::at(place))?;
    }
    let (seconds, parts) = file.changed;
    let time = Timespec { tv_sec: seconds, tv_nsec: parts };
    let times = Timestamps { last_access: time, last_modification: time };
    let set = utimensat(CWD, beside, &times, AtFlags::SYMLINK_NOFOLLOW);
    set.map_err(|errno| RecoveryError::at(place)(errno.into()))?;
    fs::rename(beside, place).map_err(RecoveryError::at(place))
}

/// Links and copies that were brought in come from the main worktree once more.
fn bring_again(tree: &Worktree) -> Vec<String> {
    let Some(main) = &tree.main else { return Vec::new() };
    let mut notes = Vec::new();
    for link in &tree.linked {
        let place = tree.path.join(link);
        let make = || symlink(main.join(link), place_in(&tree.path, Path::new(link))?);
        if place.symlink_metadata().is_err() && make().is_err() {
            notes.push(format!("the link `{link}` could not be made"));
        }
    }
    for (path, copied) in &tree.copied {
        let (from, to) = (main.join(path), tree.path.join(path));
        if to.symlink_metadata().is_ok() {
            continue;
        }
        let is_same = CopiedFile::of(&from).is_ok_and(|now| now == *copied);
        let copy = |to: PathBuf| match fs::read_link(&from) {
            Ok(target) => symlink(target, to),
            Err(_) => fs::copy(&from, to).map(drop),
        };
        if !is_same || place_in(&tree.path, Path::new(path)).and_then(copy).is_err() {
            notes.push(format!("`{path}` was a copy from the main worktree, which has it no more"));
        }
    }
    notes
}

/// Registers a worktree that comes back, without files. Where its place is taken, it gets another.
pub(crate) fn make_again(
    trees: &Worktrees,
    repository: &GitRepository,
    mut held: HeldWorktree,
) -> Result<HeldWorktree, WorktreeError> {
    let tree = &mut held.tree;
    if let Some(place) = repository.checkouts(&tree.branch)?.into_iter().next() {
        return Err(WorktreeError::CheckedOut { branch: tree.branch.clone(), place });
    }
    let mut number = 2;
    while tree.path.symlink_metadata().is_ok() {
        tree.path.set_file_name(format!("{}-{number}", tree.name));
        number += 1;
    }
    tree.state = WorktreeState::Making;
    tree.git_dir = PathBuf::new();
    held.keep()?;
    let tree = &mut held.tree;
    {
        let _list = trees.lock_list()?;
        let mut add = repository.git();
        add.args(["worktree", "add", "--quiet", "--no-checkout", "--"]);
        add.arg(&tree.path).arg(&tree.branch).bytes()?;
    }
    tree.git_dir = tree.find_git_dir().ok_or_else(|| {
        WorktreeError::File(tree.path.clone(), std::io::Error::other("git did not make it"))
    })?;
    held.keep()?;
    Ok(held)
}
