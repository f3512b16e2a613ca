//! The reasons that a journal can't be written, for people.

use std::fmt;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;

/// Bytes of the disk below which it counts as full.
const LEAST_FREE: u64 = 64 << 10;

/// Why nothing can be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// The class of the cause, by which the advice is chosen.
    pub kind: TroubleKind,
    /// The file of the journal.
    pub path: PathBuf,
    /// The cause, as the system names it.
    pub why: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TroubleKind {
    DiskFull,
    ReadOnly,
    /// Another process holds it.
    Locked,
    /// The file was damaged, and can't be set aside.
    Corrupt,
    /// A later version of this program wrote it.
    Newer,
    Other,
}

impl Trouble {
    pub(super) fn new(kind: TroubleKind, path: &Path, why: impl Into<String>) -> Self {
        Self { kind, path: path.to_owned(), why: why.into() }
    }

    pub(super) fn of_sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let kind = match kind(error) {
            // Some errors don't say that the disk is full.
            TroubleKind::Other | TroubleKind::ReadOnly if is_full(path) => TroubleKind::DiskFull,
            kind => kind,
        };
        Self::new(kind, path, error.to_string())
    }

    pub(super) fn of_io(path: &Path, error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        let kind = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => TroubleKind::DiskFull,
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => TroubleKind::ReadOnly,
            ErrorKind::WouldBlock => TroubleKind::Locked,
            _ => TroubleKind::Other,
        };
        Self::new(kind, path, error.to_string())
    }

    /// The advice for people.
    pub fn advice(&self) -> &'static str {
        match self.kind {
            TroubleKind::DiskFull => "make room on the disk, or set `path` in `[journal]`",
            TroubleKind::ReadOnly => "make it writable, or set `path` in `[journal]`",
            TroubleKind::Locked => "end the program that holds it",
            TroubleKind::Corrupt => "move the file away",
            TroubleKind::Newer => "update this program, or set `path` in `[journal]`",
            TroubleKind::Other => "see the cause",
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            TroubleKind::DiskFull => "the disk is full",
            TroubleKind::ReadOnly => "it is read-only",
            TroubleKind::Locked => "it is locked by another process",
            TroubleKind::Corrupt => "it is corrupt",
            TroubleKind::Newer => "it is from a newer version",
            TroubleKind::Other => "it can't be written",
        };
        write!(f, "the journal {} records nothing: {what} ({}); ", self.path.display(), self.why)?;
        f.write_str(self.advice())
    }
}

/// Whether the disk of a path is full.
pub(super) fn is_full(path: &Path) -> bool {
    let folder = path.ancestors().skip(1).find(|folder| folder.exists());
    let disk = folder.and_then(|folder| statvfs(folder).ok());
    // Fewer bits on some systems.
    #[allow(clippy::useless_conversion)]
    let free = disk.map(|disk| u64::from(disk.blocks_available()) * disk.fragment_size());
    free.is_some_and(|free| free < LEAST_FREE)
}

pub(super) fn kind(error: &rusqlite::Error) -> TroubleKind {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => TroubleKind::DiskFull,
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            TroubleKind::ReadOnly
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => TroubleKind::Locked,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => TroubleKind::Corrupt,
        _ => TroubleKind::Other,
    }
}
