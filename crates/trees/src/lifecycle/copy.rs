//! Fills a new worktree with copies of the main worktree's files, and writes its index.
//!
//! Only a file that the main index knows to be unchanged is copied, and only where the new worktree is to have just that
//! content. All others are left to git. Files are never hard links: one would be a file of two tasks. They keep
//! the time of their change, so that the index is older than none of them and git trusts it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, ioctl_ficlone, statfs, utimensat};

use super::refresh::newest_trusted;
use crate::repository::{Index, IndexEntry, Stat, TREE_LINK};
use crate::tree::{Worktree, WorktreeError};

/// From how many bytes on the file system is asked to share the content. Less is sooner written: but for btrfs.
const SHARED: u64 = 64 << 10;
const SHARED_BY_BTRFS: u64 = 1;

/// Files that one thread copies before it looks for further ones.
const AT_ONCE: usize = 64;

/// Threads: more of them wait for the same file system.
const MOST_THREADS: usize = 4;

/// The number of the file system btrfs.
const BTRFS: i64 = 0x9123_683E;

/// The modes of git.
const LINK: u32 = 0o120_000;
const PROGRAM: u32 = 0o100_755;

/// Files that say how others are converted on their way into a worktree.
const ATTRIBUTES: &[u8] = b".gitattributes";

/// How many files were copied, and how many are left to git.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Filled {
    pub(super) copied: usize,
    pub(super) left: usize,
    /// Whether a copy is as new as the index, so that git would read it again.
    pub(super) is_fresh: bool,
}

/// Fills the worktree with the files of its base.
pub(super) fn fill(tree: &Worktree, main: &Path) -> Result<Filled, WorktreeError> {
    let mut index = Index { entries: entries_of(tree)? };
    let known = known_to_main(tree, main);
    let folders = folders_of(&index);
    for folder in &folders {
        let folder = tree.path.join(folder);
        fs::create_dir_all(&folder).map_err(WorktreeError::at(folder))?;
    }
    let trusted = known.filter(|known| same_attributes(&index, known));
    let filled = match &trusted {
        Some(known) => copy_all(&mut index, known, main, &tree.path),
        None => Filled { left: index.entries.len(), ..Filled::default() },
    };
    let place = tree.git_dir.join("index");
    // A half of it would have git fail in the whole repository.
    let beside = tree.git_dir.join("index.new");
    let written = fs::write(&beside, index.write()).and_then(|()| fs::rename(&beside, &place));
    written.map_err(WorktreeError::at(place))?;
    if filled.left > 0 {
        let left = index.entries.iter().filter(|entry| entry.stat == Stat::default());
        let left = left.filter(|entry| entry.mode != TREE_LINK);
        let mut paths = Vec::new();
        for entry in left {
            paths.extend_from_slice(&entry.path);
            paths.push(0);
        }
        if !paths.is_empty() {
            let mut call = tree.git();
            call.args(["checkout-index", "-f", "-u", "-z", "--stdin"]);
            call.input(paths).bytes()?;
        }
    }
    Ok(filled)
}

/// The files of the worktree's base, in the order of an index.
fn entries_of(tree: &Worktree) -> Result<Vec<IndexEntry>, WorktreeError> {
    let list = tree.git().args(["ls-tree", "-r", "-z", "--full-tree", "HEAD"]).bytes()?;
    let mut entries: Vec<_> = list.split(|byte| *byte == 0).filter_map(entry_of).collect();
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(entries)
}

/// An entry of the line `MODE TYPE OBJECT<TAB>PATH`.
fn entry_of(line: &[u8]) -> Option<IndexEntry> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let fields = str::from_utf8(&line[..tab]).ok()?;
    let mut fields = fields.split(' ');
    let mode = u32::from_str_radix(fields.next()?, 8).ok()?;
    let hex = fields.nth(1)?;
    let mut object = [0; 20];
    for (at, byte) in object.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    let path = line[tab + 1..].to_vec();
    Some(IndexEntry { path, mode, object, stat: Stat::default(), is_plain: true })
}

/// The entries of the main index that can be trusted.
struct MainIndex {
    entries: HashMap<Vec<u8>, IndexEntry>,
}

fn known_to_main(tree: &Worktree, main: &Path) -> Option<MainIndex> {
    let place = tree.common.join("index");
    let written = place.metadata().ok()?;
    let index = fs::read(&place).and_then(|bytes| Index::read(&bytes));
    let index = index.inspect_err(|error| {
        tracing::debug!(main = %main.display(), %error, "its index is not used");
    });
    let written = Stat::of(&written);
    // Where the index is no newer than a file, the file may have been changed in the same second.
    let is_sure = |entry: &IndexEntry| {
        entry.is_plain && !entry.stat.is_unknown() && entry.stat.changed() < written.changed()
    };
    let sure = index.ok()?.entries.into_iter().filter(is_sure);
    Some(MainIndex { entries: sure.map(|entry| (entry.path.clone(), entry)).collect() })
}

/// Whether both worktrees convert files in the same way.
fn same_attributes(index: &Index, known: &MainIndex) -> bool {
    let is_of_attributes =
        |path: &[u8]| path.rsplit(|byte| *byte == b'/').next() == Some(ATTRIBUTES);
    let mut own = index.entries.iter().filter(|entry| is_of_attributes(&entry.path));
    let all_known = own.all(|entry| {
        known.entries.get(&entry.path).is_some_and(|known| known.object == entry.object)
    });
    let known_paths = known.entries.keys().filter(|path| is_of_attributes(path));
    let own: std::collections::HashSet<_> = index
        .entries
        .iter()
        .map(|entry| &entry.path)
        .filter(|path| is_of_attributes(path))
        .collect();
    all_known && known_paths.into_iter().all(|path| own.contains(path))
}

/// The folders of all files, those above before those below.
fn folders_of(index: &Index) -> Vec<PathBuf> {
    let mut folders: Vec<&[u8]> = Vec::new();
    for entry in &index.entries {
        let end = entry.path.iter().rposition(|byte| *byte == b'/').unwrap_or_default();
        let folder = if entry.mode == TREE_LINK { &entry.path[..] } else { &entry.path[..end] };
        if !folder.is_empty() && folders.last() != Some(&folder) {
            folders.push(folder);
        }
    }
    folders.into_iter().map(|folder| PathBuf::from(OsStr::from_bytes(folder))).collect()
}

fn copy_all(index: &mut Index, known: &MainIndex, main: &Path, tree: &Path) -> Filled {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.clamp(2, MOST_THREADS);
    let (contents, copied) = (Copier::new(tree), AtomicUsize::new(0));
    let count = index.entries.len();
    let chunks = std::sync::Mutex::new(index.entries.chunks_mut(AT_ONCE));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut buffer = Vec::new();
                loop {
                    let chunk = chunks.lock().ok().and_then(|mut chunks| chunks.next());
                    let Some(chunk) = chunk else { return };
                    for entry in chunk {
                        let Some(known) = known.entries.get(&entry.path) else { continue };
                        if (known.object, known.mode) != (entry.object, entry.mode) {
                            continue;
                        }
                        if let Ok(Some(stat)) = copy_one(known, main, tree, &contents, &mut buffer)
                        {
                            entry.stat = stat;
                            copied.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    let copied = copied.into_inner();
    let is_fresh = |entry: &IndexEntry| i64::from(entry.stat.modified()) > newest_trusted();
    let is_fresh = index.entries.iter().any(is_fresh);
    Filled { copied, left: count - copied, is_fresh }
}

/// Copies a file that is as its entry says; None: it is not, or not any more. git replaces what is there then.
fn copy_one(
    entry: &IndexEntry,
    main: &Path,
    tree: &Path,
    contents: &Copier,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<Stat>> {
    let path = OsStr::from_bytes(&entry.path);
    let (from, to) = (main.join(path), tree.join(path));
    if entry.mode == LINK {
        let found = from.symlink_metadata()?;
        if !found.is_symlink() || !entry.stat.is_of(&Stat::of(&found)) {
            return Ok(None);
        }
        symlink(fs::read_link(&from)?, &to)?;
        let time = Timespec { tv_sec: found.mtime(), tv_nsec: found.mtime_nsec() };
        let times = Timestamps { last_access: time, last_modification: time };
        utimensat(CWD, &to, &times, AtFlags::SYMLINK_NOFOLLOW)?;
        return Ok(Some(Stat::of(&to.symlink_metadata()?)));
    }
    let flags = O_NOFOLLOW | O_NONBLOCK;
    let mut source = OpenOptions::new().read(true).custom_flags(flags).open(&from)?;
    let found = source.metadata()?;
    let marks = Stat::of(&found);
    if !found.is_file() || !entry.stat.is_of(&marks) {
        return Ok(None);
    }
    let mode = if entry.mode == PROGRAM { 0o777 } else { 0o666 };
    let mut copy = OpenOptions::new().write(true).create_new(true).mode(mode).open(&to)?;
    contents.copy(&mut source, &mut copy, found.len(), buffer)?;
    // It may have been written meanwhile.
    if Stat::of(&source.metadata()?) != marks {
        fs::remove_file(&to)?;
        return Ok(None);
    }
    copy.set_times(FileTimes::new().set_modified(found.modified()?))?;
    Ok(Some(Stat::of(&copy.metadata()?)))
}

/// Copies contents, and shares them where the file system can.
pub(super) struct Copier {
    /// From how many bytes on it is asked to.
    shared: u64,
    /// Whether it did not refuse yet.
    shares: AtomicBool,
}

impl Copier {
    /// For copies into a folder.
    pub(super) fn new(folder: &Path) -> Self {
        let is_btrfs = statfs(folder).is_ok_and(|found| found.f_type == BTRFS);
        let shared = if is_btrfs { SHARED_BY_BTRFS } else { SHARED };
        Self { shared, shares: AtomicBool::new(true) }
    }

    /// Copies the content of an open file of so many bytes.
    pub(super) fn copy(
        &self,
        source: &mut File,
        copy: &mut File,
        bytes: u64,
        buffer: &mut Vec<u8>,
    ) -> io::Result<()> {
        if bytes >= self.shared && self.shares.load(Ordering::Relaxed) {
            match ioctl_ficlone(&*copy, &*source) {
                Ok(()) => return Ok(()),
                Err(_) => self.shares.store(false, Ordering::Relaxed),
            }
        }
        if bytes >= SHARED {
            return io::copy(source, copy).map(drop);
        }
        buffer.resize(usize::try_from(bytes).unwrap_or_default(), 0);
        source.read_exact(buffer)?;
        copy.write_all(buffer)
    }
}
