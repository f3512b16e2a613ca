//! Which files a workspace has, and their content.
//!
//! Ignore files are honoured, what is hidden below the root is left out, links are not followed,
//! only plain files count.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;

use ignore::{DirEntry, WalkBuilder, WalkState};
use nix::fcntl::OFlag;

/// Bytes of a file that is read; a larger one is listed only.
pub(super) const LARGEST: u64 = 2 << 20;

/// What of the beginning of a file is looked at to tell whether it is text.
const TELLING: usize = 8 << 10;

/// A file of the workspace.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Relative, with `/`; what is no UTF-8 is replaced.
    pub(super) id: Arc<str>,
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
}

/// What tells that a file has not changed, without reading it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Stamp {
    pub(super) size: u64,
    inode: u64,
    /// When it changed, in nanoseconds: also when its times are set.
    changed_ns: i128,
    modified_ns: i128,
}

/// What a file holds.
#[derive(Debug)]
pub(super) enum Content {
    Text(Vec<u8>),
    /// Bytes that are no text, or too many.
    Other,
}

/// Lists the files below a root, in order. Cannot be read: only what is wrong with the root itself.
pub(super) fn walk(root: &Path, threads: usize) -> io::Result<Vec<Entry>> {
    if !std::fs::metadata(root)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    std::fs::read_dir(root)?;
    let (found, finds) = mpsc::channel();
    let walk = WalkBuilder::new(root)
        .require_git(false)
        // Outside of a repository, what lies above the root has no say.
        .parents(root.canonicalize()?.ancestors().any(|above| above.join(".git").exists()))
        .threads(threads)
        .build_parallel();
    walk.run(|| {
        let found = found.clone();
        Box::new(move |entry| {
            // A folder that cannot be read, or that is gone, has no files.
            if let Some(entry) = entry.ok().and_then(|entry| file(root, entry)) {
                let _ = found.send(entry);
            }
            WalkState::Continue
        })
    });
    drop(found);
    let mut entries: Vec<_> = finds.into_iter().collect();
    entries.sort_unstable_by(|a: &Entry, b| (&a.id, &a.path).cmp(&(&b.id, &b.path)));
    tell_apart(&mut entries);
    Ok(entries)
}

fn file(root: &Path, entry: DirEntry) -> Option<Entry> {
    if !entry.file_type()?.is_file() {
        return None;
    }
    let stamp = Stamp::of(&entry.metadata().ok()?);
    let path = entry.into_path();
    let relative = path.strip_prefix(root).ok()?;
    Some(Entry { id: relative.to_string_lossy().into(), path, stamp })
}

/// Names that are no UTF-8 may look alike.
fn tell_apart(entries: &mut [Entry]) {
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

    /// Whether the file changed so shortly before `now` that it could change again unseen.
    pub(super) fn is_fresh(&self, now_ns: i128) -> bool {
        const COARSEST_CLOCK_NS: i128 = 2_000_000_000;
        self.changed_ns.max(self.modified_ns) > now_ns - COARSEST_CLOCK_NS
    }
}

/// Reads a file, to see what is in it.
pub(super) fn read(path: &Path) -> io::Result<(Content, Stamp)> {
    let (text, stamp) = read_at_most(path, LARGEST)?;
    let text = text.filter(|text| memchr::memchr(0, &text[..text.len().min(TELLING)]).is_none());
    Ok((text.map_or(Content::Other, Content::Text), stamp))
}

/// Reads a plain file, whatever its name has become since it was listed; never waits for anybody.
/// None for the content of one that is larger.
pub(super) fn read_at_most(path: &Path, most: u64) -> io::Result<(Option<Vec<u8>>, Stamp)> {
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
    let mut text = Vec::with_capacity(usize::try_from(stamp.size).unwrap_or(0) + 1);
    // It may grow meanwhile.
    file.by_ref().take(most + 1).read_to_end(&mut text)?;
    Ok((Some(text).filter(|text| text.len() as u64 <= most), stamp))
}
