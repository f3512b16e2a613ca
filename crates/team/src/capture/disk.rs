//! Reads the entry at a path: kind, mode and content, within bounds. Follows no link, and waits for
//! no pipe.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};

use crate::journal::HeldContent;
use crate::model::{FileKind, FileStamp, FileState, SET_ID};

/// Maximum bytes of a text, and of another content, that is kept; of larger ones only the hash is.
const LONGEST_TEXT: u64 = 16 << 20;
const LONGEST_BINARY: u64 = 1 << 20;

/// Maximum bytes of a file that is hashed; larger ones are known by size and time.
pub(super) const LARGEST_HASHED: u64 = 256 << 20;

/// Bytes at the start of a file that are searched for a zero byte: text has none.
const PREFIX: usize = 8 << 10;

/// The time within which two changes may get the same times: more than a tick of the kernel.
const COARSEST_CLOCK_NS: i128 = 20_000_000;

/// The values that change with a file. Programs can't set the time of its last change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    device: u64,
    inode: u64,
    mode: u32,
    /// Names of the file.
    links: u64,
    size: u64,
    modified_ns: i128,
    changed_ns: i128,
}

/// The entry at a path when it was read.
#[derive(Default, Debug)]
pub(super) struct Seen {
    /// None: no entry, or none that is recorded.
    pub(super) stamp: Option<Stamp>,
    pub(super) state: Option<FileState>,
    /// The content, if it was read and is within the bounds.
    pub(super) content: Option<Content>,
    /// The file changed so recently that a later change may leave the same stamp.
    is_fresh: bool,
}

/// A content before it is recorded.
#[derive(Debug)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    /// A file beside the journal has it.
    File(HeldContent),
}

/// The effect of a call on the content at a path.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Fate {
    /// The file gets another name or mode.
    Stays,
    #[default]
    Changes,
    /// The file loses this name.
    Goes,
}

/// How much is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Depth {
    /// Neither content nor hash.
    Stamp,
    Hash,
    Content,
}

impl Stamp {
    pub fn of(stat: &FileStat) -> Self {
        let ns = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
        Self {
            device: wide(stat.st_dev),
            inode: stat.st_ino,
            mode: mode(stat),
            links: links(stat),
            size: stat.st_size.cast_unsigned(),
            modified_ns: ns(stat.st_mtime, stat.st_mtime_nsec),
            changed_ns: ns(stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// The time of the last change, in nanoseconds since 1970.
    pub(super) fn changed_ns(&self) -> i128 {
        self.changed_ns
    }

    /// Returns the part of the stamp that changes with the content.
    pub(super) fn of_content(&self) -> FileStamp {
        FileStamp {
            device: self.device,
            inode: self.inode,
            size: self.size,
            modified_ns: self.modified_ns,
            changed_ns: self.changed_ns,
        }
    }

    /// Device and inode.
    pub(super) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Whether the last change may be later than a time, in nanoseconds since 1970.
    pub(super) fn is_after(&self, at: i128) -> bool {
        self.changed_ns >= at - COARSEST_CLOCK_NS
    }

    /// The number of the file's names.
    pub(super) fn links(&self) -> u64 {
        self.links
    }

    /// Whether the file may have other names.
    pub(super) fn is_linked(&self) -> bool {
        self.links > 1 && !self.is_folder()
    }

    fn is_folder(&self) -> bool {
        SFlag::from_bits_truncate(self.mode & SFlag::S_IFMT.bits()) == SFlag::S_IFDIR
    }
}

impl Seen {
    /// Whether the path surely has the same entry, if `now` is its stamp.
    pub(super) fn is_still(&self, now: Option<Stamp>) -> bool {
        match (self.stamp, now) {
            (None, None) => true,
            // The times of a folder change with its entries.
            (Some(before), Some(now)) if before.is_folder() && now.is_folder() => {
                (before.identity(), before.mode) == (now.identity(), now.mode)
            }
            (before, now) => before == now && !self.is_fresh,
        }
    }

    /// Whether both are the same: kind, mode and content.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (&self.state, &other.state) {
            (Some(a), Some(b)) if a.hash.is_none() && a.kind == FileKind::File => {
                let times = |seen: &Self| seen.stamp.map(|it| (it.size, it.modified_ns));
                (a.kind, a.mode, &b.hash) == (b.kind, b.mode, &None) && times(self) == times(other)
            }
            (Some(a), Some(b)) => (a.kind, a.mode, &a.hash) == (b.kind, b.mode, &b.hash),
            (a, b) => a.is_none() && b.is_none(),
        }
    }

    /// A state that the journal knows; what the disk has is another matter.
    pub(super) fn known(state: Option<FileState>) -> Self {
        Self { state, ..Self::default() }
    }

    /// The state before an unknown change.
    pub(super) fn unknown(&self) -> Self {
        let mut state = self.state.clone();
        if let Some(state) = &mut state {
            (state.hash, state.size, state.stored) = (None, 0, false);
        }
        Self { state, ..Self::default() }
    }

    pub(super) fn is_there(&self) -> bool {
        self.state.is_some()
    }

    /// Bytes of its content in memory.
    pub(super) fn content_bytes(&self) -> usize {
        match &self.content {
            Some(Content::Bytes(bytes)) => bytes.len(),
            Some(Content::File(_)) | None => 0,
        }
    }
}

/// The stamp of the entry at a path; None without one, and for pipes, sockets and devices.
pub(super) fn stamp(path: &Path) -> Option<Stamp> {
    let handle = hold(path).ok()?;
    let stat = fstat(&handle).ok()?;
    kind(&stat).map(|_| Stamp::of(&stat))
}

/// Reads the entry at a path. An unreadable one has no hash.
pub(super) fn read(path: &Path, depth: Depth) -> Seen {
    let found = hold(path).and_then(|handle| Ok((fstat(&handle)?, handle)));
    let Ok((stat, handle)) = found else { return Seen::default() };
    let Some(kind) = kind(&stat) else { return Seen::default() };
    let mut seen = Seen { stamp: Some(Stamp::of(&stat)), ..Seen::default() };
    seen.is_fresh = seen.stamp.is_some_and(|stamp| is_fresh(&stamp));
    let bits = if kind == FileKind::File { 0o7777 & !SET_ID } else { 0o7777 };
    let mut state = FileState {
        kind,
        mode: mode(&stat) & bits,
        size: stat.st_size.cast_unsigned(),
        hash: None,
        stored: kind == FileKind::Folder,
    };
    match kind {
        FileKind::Folder => state.size = 0,
        _ if depth == Depth::Stamp => {}
        FileKind::Symlink => {
            if let Ok(target) = target(path, &handle) {
                state.hash = Some(hash(&target));
                seen.content = Some(Content::Bytes(target));
            }
        }
        FileKind::File => {
            if let Ok((hash, size, content)) = content(path, &handle, state.size) {
                (state.hash, state.size) = (Some(hash), size);
                seen.content = content.map(Content::Bytes);
            }
        }
    }
    if depth != Depth::Content {
        seen.content = None;
    }
    // It may have changed while it was read.
    seen.is_fresh |= fstat(&handle).ok().map(|stat| Stamp::of(&stat)) != seen.stamp;
    seen.state = Some(state);
    seen
}

/// The recorded kind; None for a pipe, a socket or a device.
fn kind(stat: &FileStat) -> Option<FileKind> {
    match SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) {
        SFlag::S_IFREG => Some(FileKind::File),
        SFlag::S_IFLNK => Some(FileKind::Symlink),
        SFlag::S_IFDIR => Some(FileKind::Folder),
        _ => None,
    }
}

/// The hash and size of a file, and its content within the bounds.
fn content(
    path: &Path,
    handle: &OwnedFd,
    size: u64,
) -> io::Result<(Arc<str>, u64, Option<Vec<u8>>)> {
    if size > LARGEST_HASHED {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut file = reopen(path, handle)?;
    let mut content = Vec::new();
    if size <= LONGEST_TEXT {
        content.reserve_exact(usize::try_from(size).unwrap_or(0) + 1);
        // It may be growing.
        file.by_ref().take(LONGEST_TEXT + 1).read_to_end(&mut content)?;
        let size = content.len() as u64;
        if size <= LONGEST_TEXT {
            let prefix = &content[..content.len().min(PREFIX)];
            let is_text = memchr::memchr(0, prefix).is_none();
            let hash = hash(&content);
            return Ok((hash, size, (is_text || size <= LONGEST_BINARY).then_some(content)));
        }
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(&content);
    hasher.update_reader(file.take(LARGEST_HASHED))?;
    let size = hasher.count();
    Ok((hasher.finalize().to_hex().as_str().into(), size, None))
}

fn hash(content: &[u8]) -> Arc<str> {
    blake3::hash(content).to_hex().as_str().into()
}

fn is_fresh(stamp: &Stamp) -> bool {
    stamp.changed_ns.max(stamp.modified_ns) > now_ns() - COARSEST_CLOCK_NS
}

/// Nanoseconds since 1970.
pub(super) fn now_ns() -> i128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    i128::try_from(now).unwrap_or(i128::MAX)
}

/// A descriptor that refers to the entry at a path, without opening it.
#[cfg(target_os = "linux")]
pub(super) fn hold(path: &Path) -> Result<OwnedFd, Errno> {
    use nix::fcntl::{AT_FDCWD, OpenHow, ResolveFlag, openat2};
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    // Otherwise a link in place of a folder would lead to other files.
    let resolve = ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    match openat2(AT_FDCWD, path, OpenHow::new().flags(flags).resolve(resolve)) {
        // An old kernel, or a sandbox that refuses the call.
        Err(Errno::ENOSYS | Errno::EPERM) => open(path, flags, Mode::empty()),
        held => held,
    }
}

#[cfg(target_os = "linux")]
pub(super) fn reopen(_: &Path, handle: &OwnedFd) -> io::Result<File> {
    use std::os::fd::AsRawFd as _;
    let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
    Ok(open(path.as_str(), OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC, Mode::empty())?
        .into())
}

#[cfg(target_os = "linux")]
fn target(_: &Path, handle: &OwnedFd) -> Result<Vec<u8>, Errno> {
    Ok(bytes(&readlinkat(handle, "")?))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn hold(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_SYMLINK | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    open(path, flags, Mode::empty())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn reopen(_: &Path, handle: &OwnedFd) -> io::Result<File> {
    Ok(handle.try_clone()?.into())
}

#[cfg(not(target_os = "linux"))]
fn target(path: &Path, _: &OwnedFd) -> Result<Vec<u8>, Errno> {
    Ok(bytes(&readlinkat(nix::fcntl::AT_FDCWD, path)?))
}

fn bytes(text: &OsStr) -> Vec<u8> {
    text.as_bytes().to_vec()
}

#[allow(
    clippy::unnecessary_cast,
    clippy::cast_sign_loss,
    reason = "the type depends on the system"
)]
fn wide(device: nix::libc::dev_t) -> u64 {
    device as u64
}

#[allow(
    clippy::useless_conversion,
    clippy::unnecessary_cast,
    reason = "the type depends on the system"
)]
fn links(stat: &FileStat) -> u64 {
    stat.st_nlink as u64
}

#[allow(clippy::useless_conversion, reason = "the type depends on the system")]
fn mode(stat: &FileStat) -> u32 {
    u32::from(stat.st_mode)
}
