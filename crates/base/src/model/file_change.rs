//! A change of one file, with the states before and after.

use std::fmt;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::AgentId;
use super::named::named;

/// Bits of a file's mode that give whoever executes it the rights of its user or group. No file gets
/// them through an agent, nor are they recorded or restored: it would carry the agent's rights past
/// its wall.
pub const SET_ID: u32 = 0o6000;

/// A change of one file, for the journal.
#[derive(Clone, PartialEq, Debug)]
pub struct FileChange {
    /// The kind, which follows from `from`, `before` and `after`.
    pub kind: FileChangeKind,
    /// The worktree that the file is in, where it is one of an agent; None: the workspace, or outside both.
    pub tree: Option<Arc<Path>>,
    /// The file that was changed, relative to the worktree or the workspace; of a rename its new path.
    pub path: FileName,
    /// The path before, of a rename.
    pub from: Option<FileName>,
    /// The state at `path`, of a rename at `from`; None: nothing was there.
    pub before: Option<FileState>,
    /// None: nothing is there.
    pub after: Option<FileState>,
    /// The source that saw the change; `Watcher` if only the disk showed it.
    pub by: SeenBy,
    /// Whether an agent of the team made the change, or somebody else.
    pub cause: FileCause,
    /// The id of the tool call that made the change; None: it is not known, or there is none.
    pub tool_call: Option<Arc<str>>,
    /// The process.
    pub pid: Option<u32>,
    /// Other agents that had the file open for writing.
    pub contested: Vec<AgentId>,
    /// When it was changed, in nanoseconds since 1970, by the file's own clock; without a file, when
    /// that was seen.
    pub changed_ns: i128,
    /// The files before and after, as the file system shows them.
    pub stamps: [Option<FileStamp>; 2],
    /// git ignores it.
    pub ignored: bool,
    /// A `denied` pattern matches it: nothing more is known than that it changed.
    pub denied: bool,
    /// The contents before and after that the journal is to keep.
    pub contents: Arc<FileContents>,
}

/// The attributes of a file that change with its content. Equal stamps stand for one content; the times are
/// no order, since clocks are set back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileStamp {
    /// The number of the device that holds the file.
    pub device: u64,
    /// The number of the file on its device.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last write, in nanoseconds since 1970; programs can set it.
    pub modified_ns: i128,
    /// The time of the last change of file or metadata, in nanoseconds since 1970.
    pub changed_ns: i128,
}

impl FileStamp {
    /// The stamp that a file has by its metadata.
    pub fn of(found: &Metadata) -> Self {
        let ns = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
        Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified_ns: ns(found.mtime(), found.mtime_nsec()),
            changed_ns: ns(found.ctime(), found.ctime_nsec()),
        }
    }
}

/// The kind of a change of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileChangeKind {
    /// The file was there before and is there now.
    Write,
    /// The file was not there before.
    Create,
    /// The file is not there any more.
    Delete,
    /// The file was at another path before.
    Rename,
}

/// A path as the wire shows it, and its bytes if they are not UTF-8.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileName {
    /// Relative to the workspace, absolute if outside; invalid UTF-8 is replaced.
    pub text: Arc<str>,
    /// The same path in bytes; None: `text` is exact.
    pub bytes: Option<Arc<[u8]>>,
}

impl FileName {
    /// The name of a path.
    pub fn of(path: &Path) -> Self {
        let bytes = path.to_str().is_none().then(|| path.as_os_str().as_bytes().into());
        Self { text: path.to_string_lossy().into(), bytes }
    }
}

/// The file system entry at a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileState {
    /// File, symbolic link or folder; pipes, sockets and devices have no state.
    pub kind: FileKind,
    /// The permission bits.
    pub mode: u32,
    /// The size in bytes; 0 for a folder.
    pub size: u64,
    /// None: too large to be read, not readable, or a folder.
    pub hash: Option<Arc<str>>,
    /// Whether the journal has the content.
    pub stored: bool,
}

named! {
    /// The kind of a file.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum FileKind {
        File = "file",
        /// Its content is its target.
        Symlink = "symlink",
        Folder = "folder",
    }
}

named! {
    /// The source that saw a change.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum SeenBy {
        Doorbell = "doorbell",
        ClientHost = "client_host",
        Watcher = "watcher",
    }
}

named! {
    /// The cause of a change.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum FileCause {
        Agent = "agent",
        /// From outside the team.
        Outside = "outside",
        Unknown = "unknown",
    }
}

/// A content on its way into the journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileContent {
    /// The whole content, in memory.
    Bytes(Vec<u8>),
    /// A file of this size beside the journal has it.
    Kept {
        /// The size of the content in bytes.
        size: u64,
    },
}

/// Contents by their hashes, on their way to the journal. The taker takes over their count in
/// `queued`; dropping untaken contents ends it.
#[derive(Default)]
pub struct FileContents {
    contents: Mutex<Vec<(Arc<str>, FileContent)>>,
    queued: Arc<AtomicUsize>,
}

impl FileContents {
    /// Adds their bytes to `queued`.
    pub fn new(contents: Vec<(Arc<str>, FileContent)>, queued: Arc<AtomicUsize>) -> Self {
        queued.fetch_add(bytes(&contents), Ordering::Relaxed);
        Self { contents: Mutex::new(contents), queued }
    }

    /// Takes all contents out; a second call returns none.
    pub fn take(&self) -> Vec<(Arc<str>, FileContent)> {
        std::mem::take(&mut *self.contents.lock())
    }
}

impl Drop for FileContents {
    fn drop(&mut self) {
        self.queued.fetch_sub(bytes(&self.take()), Ordering::Relaxed);
    }
}

fn bytes(contents: &[(Arc<str>, FileContent)]) -> usize {
    contents.iter().map(|(_, content)| content.in_memory()).sum()
}

impl FileContent {
    /// Its bytes in memory.
    pub fn in_memory(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Kept { .. } => 0,
        }
    }

    /// The size of the content in bytes, wherever it is.
    pub fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Kept { size } => *size,
        }
    }
}

impl PartialEq for FileContents {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl fmt::Debug for FileContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileContents").finish_non_exhaustive()
    }
}
