//! Looks at each file of a worktree: whether a commit has it, whether it is to be kept, or left out.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD};

use super::RecoveryError;
use super::manifest::{LeftOut, WhyLeftOut};
use crate::repository::GitCall;
use crate::tree::{CopiedFile, Worktree};

/// Settings under which git takes a file for unchanged only by all of its marks.
const EXACT: [&str; 10] = [
    "-c",
    "core.trustctime=true",
    "-c",
    "core.checkStat=default",
    "-c",
    "core.fileMode=true",
    "-c",
    "core.symlinks=true",
    "-c",
    "core.preloadIndex=true",
];

/// The flag of `statx` for the number of a mount.
const MOUNT_ID: u32 = 0x1000;

/// Permissions of a file where nothing says how git makes one.
const USUAL: u32 = 0o644;

/// A file as it was looked at: another write shows by these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Marks {
    pub(super) device: u64,
    number: u64,
    pub(super) bytes: u64,
    pub(super) mode: u32,
    pub(super) changed: (i64, i64),
    renamed: (i64, i64),
}

impl Marks {
    pub(super) fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            number: file.ino(),
            bytes: file.size(),
            mode: file.mode(),
            changed: (file.mtime(), file.mtime_nsec()),
            renamed: (file.ctime(), file.ctime_nsec()),
        }
    }

    /// Whether it is the same file with the same content, whatever names it has.
    pub(super) fn is_but_for_names(&self, before: &Self) -> bool {
        Self { renamed: before.renamed, ..*self } == *before
    }
}

/// All that is in a worktree. Paths are relative to it.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Files that no commit has.
    pub(crate) kept: BTreeMap<PathBuf, Marks>,
    /// Files that the worktree's commit has, and links and copies that were brought in.
    pub(super) known: BTreeMap<PathBuf, Marks>,
    /// Files of the commit that are not there.
    pub(crate) missing: Vec<PathBuf>,
    /// Folders with nothing in them.
    pub(super) empty: Vec<PathBuf>,
    /// Folders that are removed with all that is in them.
    pub(super) build: Vec<PathBuf>,
    pub(crate) left_out: Vec<LeftOut>,
}

/// Looks at all files. Follows no link.
pub(crate) fn scan(tree: &Worktree) -> Result<Scan, RecoveryError> {
    let top = tree.path.symlink_metadata().map_err(RecoveryError::at(&tree.path))?;
    let (git, mount) = (Tracked::read(tree)?, mount_of(&tree.path));
    let mut scan = Scan::default();
    let mut ahead = vec![PathBuf::new()];
    while let Some(folder) = ahead.pop() {
        let place = tree.path.join(&folder);
        let mut is_empty = true;
        for entry in fs::read_dir(&place).map_err(RecoveryError::at(&place))? {
            let entry = entry.map_err(RecoveryError::at(&place))?;
            is_empty = false;
            let path = folder.join(entry.file_name());
            let place = entry.path();
            let found = place.symlink_metadata().map_err(RecoveryError::at(&place))?;
            if found.dev() != top.dev() || mount_of(&place) != mount {
                return Err(RecoveryError::Mounted(place));
            }
            if path == Path::new(".git") && found.is_file() {
                continue;
            }
            if found.is_dir() {
                if tree.is_of_build(&path) && git.ignores(tree, &path)? {
                    let bytes = bytes_below(&place, top.dev(), mount)?;
                    scan.left_out.push(left_out(&path, bytes, WhyLeftOut::Build));
                    scan.build.push(path);
                } else {
                    ahead.push(path);
                }
                continue;
            }
            scan.sort_in(tree, &git, path, &found)?;
        }
        if is_empty && !folder.as_os_str().is_empty() {
            scan.empty.push(folder);
        }
    }
    let there = |path: &PathBuf| scan.kept.contains_key(path) || scan.known.contains_key(path);
    scan.missing = git.files.iter().filter(|path| !there(path)).cloned().collect();
    scan.missing.sort();
    Ok(scan)
}

impl Scan {
    fn sort_in(
        &mut self,
        tree: &Worktree,
        git: &Tracked,
        path: PathBuf,
        found: &Metadata,
    ) -> Result<(), RecoveryError> {
        let marks = Marks::of(found);
        let kind = found.file_type();
        if kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device() {
            self.left_out.push(left_out(&path, 0, WhyLeftOut::Special));
            self.known.insert(path, marks);
        } else if tree.is_linked(&path) && kind.is_symlink() {
            self.left_out.push(left_out(&path, 0, WhyLeftOut::Link));
            self.known.insert(path, marks);
        } else if git.has(&path) && git.gives(found) {
            self.known.insert(path, marks);
        } else if is_as_copied(tree, &path)? {
            self.left_out.push(left_out(&path, found.len(), WhyLeftOut::Copy));
            self.known.insert(path, marks);
        } else {
            self.kept.insert(path, marks);
        }
        Ok(())
    }

    /// The bytes of the files that are kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.kept.values().map(|marks| marks.bytes).sum()
    }
}

fn left_out(path: &Path, bytes: u64, why: WhyLeftOut) -> LeftOut {
    LeftOut { path: path.to_string_lossy().into_owned(), bytes, why }
}

/// The mount that a file is on, by its number; 0 where the system does not say.
pub(super) fn mount_of(place: &Path) -> u64 {
    let wanted = rustix::fs::StatxFlags::from_bits_retain(MOUNT_ID);
    let found = rustix::fs::statx(CWD, place, AtFlags::SYMLINK_NOFOLLOW, wanted);
    found.map_or(0, |found| found.stx_mnt_id)
}

/// Whether a file was copied in, has the same content still, and the main worktree has it too.
fn is_as_copied(tree: &Worktree, path: &Path) -> Result<bool, RecoveryError> {
    let Some(copied) = path.to_str().and_then(|path| tree.copied.get(path)) else {
        return Ok(false);
    };
    let place = tree.path.join(path);
    let is_same = CopiedFile::of(&place).map_err(RecoveryError::at(place))? == *copied;
    let main = tree.main.as_ref().map(|main| main.join(path));
    Ok(is_same && main.is_some_and(|main| CopiedFile::of(&main).is_ok_and(|now| now == *copied)))
}

fn bytes_below(folder: &Path, device: u64, mount: u64) -> Result<u64, RecoveryError> {
    let mut bytes = 0;
    let mut ahead = vec![folder.to_owned()];
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(&folder).map_err(RecoveryError::at(&folder))? {
            let place = entry.map_err(RecoveryError::at(&folder))?.path();
            let found = place.symlink_metadata().map_err(RecoveryError::at(&place))?;
            if found.dev() != device || mount_of(&place) != mount {
                return Err(RecoveryError::Mounted(place));
            }
            bytes += found.len();
            if found.is_dir() {
                ahead.push(place);
            }
        }
    }
    Ok(bytes)
}

/// Git's knowledge of a worktree's files.
struct Tracked {
    /// The files of the commit that it is at.
    files: HashSet<PathBuf>,
    /// Files of these, or of the index, that may differ from it.
    changed: HashSet<PathBuf>,
    has_head: bool,
    /// The permissions with which git makes a file here.
    permissions: u32,
}

impl Tracked {
    fn read(tree: &Worktree) -> Result<Self, RecoveryError> {
        let exact = || {
            let mut call: GitCall = tree.git();
            call.args(EXACT);
            call
        };
        let has_head =
            exact().args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).answer()?;
        let (mut files, mut changed) = (HashSet::new(), HashSet::new());
        if has_head {
            let list = exact().args(["ls-tree", "-r", "-z", "--full-tree", "HEAD"]).bytes()?;
            for line in list.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
                let Some(tab) = line.iter().position(|byte| *byte == b'\t') else { continue };
                // A submodule's files are not this repository's.
                if !line.starts_with(b"160000") {
                    files.insert(path_of(&line[tab + 1..]));
                }
            }
            let mut diff = exact();
            diff.args(["diff-index", "--name-only", "--no-renames", "-z"]);
            let names = diff.args(["--ignore-submodules=all", "HEAD", "--"]).bytes()?;
            changed.extend(names.split(|byte| *byte == 0).map(path_of));
            // Files that git was told not to look at.
            let flagged = exact().args(["ls-files", "-v", "-z"]).bytes()?;
            for line in flagged.split(|byte| *byte == 0).filter(|line| line.len() > 2) {
                if line[0] != b'H' {
                    changed.insert(path_of(&line[2..]));
                }
            }
        }
        // git made this file, and nobody else has a reason to.
        let made = tree.path.join(".git").symlink_metadata();
        let permissions = made.map_or(USUAL, |made| made.mode() & 0o777);
        Ok(Self { files, changed, has_head, permissions })
    }

    /// Whether the worktree's commit has a file as it is.
    fn has(&self, path: &Path) -> bool {
        self.has_head && self.files.contains(path) && !self.changed.contains(path)
    }

    /// Whether git would make a file with these permissions.
    fn gives(&self, file: &Metadata) -> bool {
        let (own, plain) = (file.mode() & 0o7777, self.permissions);
        file.is_symlink() || own == plain || own == plain | (plain & 0o444) >> 2
    }

    /// Whether git ignores a folder, and has no file in it.
    fn ignores(&self, tree: &Worktree, folder: &Path) -> Result<bool, RecoveryError> {
        if self.files.iter().any(|file| file.starts_with(folder)) {
            return Ok(false);
        }
        let mut ask = tree.git();
        // A name that begins with a colon is a name.
        ask.args(["check-ignore", "-q", "--"]).arg(Path::new(".").join(folder));
        Ok(ask.answer()?)
    }
}

fn path_of(bytes: &[u8]) -> PathBuf {
    std::ffi::OsStr::from_bytes(bytes).into()
}
