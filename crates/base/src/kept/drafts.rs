//! Drafts: files that are written beside the one that they replace. A live writer has its draft's lock.

use std::ffi::OsStr;
use std::fs::{self, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use super::disk::{OF_FILE, remove};
use super::lock::{LockAt, try_lock};

/// The beginning of the names of all drafts. The rest is random, so that the names fit wherever those of the
/// files do.
const DRAFT: &str = ".draft-";
const RANDOM_BYTES: usize = 12;

/// Drafts that are begun, in case that each is taken for a dead one before it is locked.
const TRIES: u32 = 10;

/// Files of a folder that are looked at.
const MOST_FILES: usize = 100_000;

/// Makes an empty draft, locked, with mode 0600 whatever the umask. It is removed with the result.
pub(super) fn begin(folder: &Path) -> io::Result<NamedTempFile> {
    for _ in 0..TRIES {
        let mode = Permissions::from_mode(OF_FILE);
        let mut draft = Builder::new();
        let draft = draft.prefix(DRAFT).rand_bytes(RANDOM_BYTES).permissions(mode.clone());
        let draft = draft.tempfile_in(folder)?;
        match draft.as_file().try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let found = draft.as_file().metadata()?;
        if found.nlink() == 0 {
            continue;
        }
        if found.mode() & 0o777 != OF_FILE {
            draft.as_file().set_permissions(mode)?;
        }
        return Ok(draft);
    }
    Err(io::Error::new(ErrorKind::WouldBlock, "another process removes all that is written here"))
}

/// Returns the drafts in a folder whose writers are gone; none without the folder.
pub fn dead_drafts(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let is_draft = |name: &OsStr| name.as_encoded_bytes().starts_with(DRAFT.as_bytes());
    let drafts = entries.take(MOST_FILES).flatten().filter(|entry| is_draft(&entry.file_name()));
    let is_dead = |path: &PathBuf| matches!(try_lock(LockAt::Found(path)), Ok(Some(_)));
    Ok(drafts.map(|draft| draft.path()).filter(is_dead).collect())
}

/// Removes a draft, unless a writer has it.
pub fn remove_draft(path: &Path) -> io::Result<()> {
    match try_lock(LockAt::Found(path)) {
        Ok(Some(_lock)) => remove(path).map(drop),
        Ok(None) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
