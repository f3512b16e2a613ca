//! Has git trust its index of a worktree, so that it need not read files again: an agent may not read each of them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use crate::tree::{Worktree, WorktreeError};

/// How much older than the index a file has to be: git compares whole seconds.
const OLDER: Duration = Duration::from_secs(2);

/// The present second, and the newest that git takes for older than an index of now.
pub(super) fn newest_trusted() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.saturating_sub(OLDER).as_secs()).unwrap_or_default()
}

/// Gives files that are as new as the index a time before it. Nobody works in the worktree yet.
pub(super) fn refresh(tree: &Worktree) -> Result<(), WorktreeError> {
    let mut list = tree.git();
    let names = list.args(["ls-files", "-z"]).bytes()?;
    let newest = newest_trusted();
    let before = Timespec { tv_sec: newest, tv_nsec: 0 };
    let times = Timestamps { last_access: before, last_modification: before };
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let place = tree.path.join(OsStr::from_bytes(name));
        let Ok(found) = place.symlink_metadata() else { continue };
        if !found.is_dir() && found.mtime() > newest {
            let set = utimensat(CWD, &place, &times, AtFlags::SYMLINK_NOFOLLOW);
            set.map_err(|errno| WorktreeError::at(&place)(errno.into()))?;
        }
    }
    let mut refresh = tree.git();
    refresh.args(["update-index", "-q", "--refresh"]).code_and_bytes()?;
    Ok(())
}
