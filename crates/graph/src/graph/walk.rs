//! Lists and reads the files of a workspace. Respects ignore files; leaves out hidden files, symbolic
//! links and everything but regular files.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Bound;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;

use ignore::{DirEntry, WalkBuilder, WalkState};
use nix::fcntl::OFlag;

use crate::ignored::{Further, Ignored};

/// The largest file that is read; larger ones are listed only.
pub(super) const LARGEST: u64 = 2 << 20;

/// Bytes at the start of a file that are searched for a zero byte: text has none.
const PREFIX: usize = 8 << 10;

/// A file of the workspace.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Relative, with `/`; invalid UTF-8 is replaced.
    pub id: Arc<str>,
    /// The path to open: the root, and the relative path as the disk has it.
    pub path: PathBuf,
    pub(super) stamp: Stamp,
}

/// Metadata that changes with a file's content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Stamp {
    pub(super) size: u64,
    inode: u64,
    /// Time of the last change in nanoseconds, which programs cannot set.
    changed_ns: i128,
    modified_ns: i128,
}

/// The content of a file.
#[derive(Debug)]
pub(super) enum Content<'a> {
    Text(&'a [u8]),
    /// No text, or too large.
    Other,
}

/// The folders and files of a workspace.
#[derive(Debug)]
pub struct Listing {
    /// Paths with the root in front, in no order. A whole listing has the root itself, too.
    pub folders: Vec<PathBuf>,
    /// In order.
    pub files: Vec<Entry>,
}

/// The paths that a listing is limited to.
pub type Only = Arc<BTreeSet<PathBuf>>;

/// Lists the files below a root, or only those at and below some paths. Err: the root is unreadable.
pub fn list(root: &Path, threads: usize, only: Option<&Only>) -> io::Result<Listing> {
    if !std::fs::metadata(root)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    std::fs::read_dir(root)?;
    let (found, finds) = mpsc::channel();
    // Outside of a repository, ignore files above the root are not read.
    let above = root.canonicalize()?.ancestors().any(|above| above.join(".git").exists());
    let ignored = Ignored::new(root, Further { above, of_user: true }).with_hidden();
    let wanted = only.cloned();
    let is_wanted = move |path: &Path| {
        wanted.as_ref().is_none_or(|only| leads_to(path, only) || is_of(path, only))
    };
    let mut walk = WalkBuilder::new(root);
    walk.standard_filters(false)
        .threads(threads)
        .filter_entry(move |entry| is_wanted(entry.path()) && !ignored.has(entry));
    walk.build_parallel().run(|| {
        let found = found.clone();
        Box::new(move |entry| {
            // An unreadable or removed folder has no files.
            if let Some(thing) = entry.ok().and_then(|entry| thing(root, entry)) {
                let _ = found.send(thing);
            }
            WalkState::Continue
        })
    });
    drop(found);
    let mut listing = Listing { folders: Vec::new(), files: Vec::new() };
    for thing in finds {
        match thing {
            Thing::Folder(path) if only.is_none_or(|only| is_of(&path, only)) => {
                listing.folders.push(path);
            }
            Thing::Folder(_) => {}
            Thing::File(entry) => listing.files.push(entry),
        }
    }
    listing.files.sort_unstable_by(|a, b| (&a.id, &a.path).cmp(&(&b.id, &b.path)));
    make_unique(&mut listing.files);
    Ok(listing)
}

enum Thing {
    Folder(PathBuf),
    File(Entry),
}

/// Whether a path is equal to one of these, or above one.
fn leads_to(path: &Path, paths: &BTreeSet<PathBuf>) -> bool {
    let from = (Bound::Included(path), Bound::Unbounded);
    paths.range::<Path, _>(from).next().is_some_and(|next| next.starts_with(path))
}

/// Whether a path is equal to one of these, or below one.
fn is_of(path: &Path, paths: &BTreeSet<PathBuf>) -> bool {
    path.ancestors().any(|above| paths.contains(above))
}

fn thing(root: &Path, entry: DirEntry) -> Option<Thing> {
    if entry.file_type()?.is_dir() {
        return Some(Thing::Folder(entry.into_path()));
    }
    if !entry.file_type()?.is_file() {
        return None;
    }
    let stamp = Stamp::of(&entry.metadata().ok()?);
    let path = entry.into_path();
    let relative = path.strip_prefix(root).ok()?;
    Some(Thing::File(Entry { id: relative.to_string_lossy().into(), path, stamp }))
}

/// Makes ids unique: names with invalid UTF-8 may have the same.
fn make_unique(entries: &mut [Entry]) {
    let mut number = 1;
    for at in 1..entries.len() {
        let (before, rest) = entries.split_at_mut(at);
        let (before, entry) = (&before[at - number], &mut rest[0]);
        if before.id == entry.id {
            number += 1;
            entry.id = format!("{}#{number}", entry.id).into();
        } else {
            number = 1;
        }
    }
}

impl Stamp {
    fn of(metadata: &std::fs::Metadata) -> Self {
        let ns = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
        Self {
            size: metadata.size(),
            inode: metadata.ino(),
            changed_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
            modified_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
        }
    }

    /// Whether the file changed so recently that another change may leave the same times.
    pub(super) fn is_fresh(&self, now_ns: i128) -> bool {
        const COARSEST_CLOCK_NS: i128 = 2_000_000_000;
        self.changed_ns.max(self.modified_ns) > now_ns - COARSEST_CLOCK_NS
    }
}

/// Reads a file. Reuse `buffer`: allocating one for each file takes longer than reading.
pub(super) fn read<'a>(path: &Path, buffer: &'a mut Vec<u8>) -> io::Result<(Content<'a>, Stamp)> {
    let (text, stamp) = read_at_most(path, LARGEST, buffer)?;
    let text = text.filter(|text| memchr::memchr(0, &text[..text.len().min(PREFIX)]).is_none());
    Ok((text.map_or(Content::Other, Content::Text), stamp))
}

/// Reads a regular file; never follows a link or blocks on a pipe. Without content if it is larger.
pub(super) fn read_at_most<'a>(
    path: &Path,
    most: u64,
    buffer: &'a mut Vec<u8>,
) -> io::Result<(Option<&'a [u8]>, Stamp)> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let mut file = File::options().read(true).custom_flags(flags.bits()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let stamp = Stamp::of(&metadata);
    if stamp.size > most {
        return Ok((None, stamp));
    }
    buffer.clear();
    buffer.reserve(usize::try_from(stamp.size).unwrap_or(0) + 1);
    // It may be growing.
    file.by_ref().take(most + 1).read_to_end(buffer)?;
    Ok((Some(&buffer[..]).filter(|text| text.len() as u64 <= most), stamp))
}
