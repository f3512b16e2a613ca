//! Keeps each task in a file of its own, replaced whole.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use super::kept::{Kept, MOST_TEXT};
use crate::model::{TaskId, TimestampMs};

/// Files that are read at a start, and bytes of each: JSON has up to six bytes for one of a text.
/// Larger files are not this program's.
const MOST_FILES: usize = 4096;
const MOST_BYTES: u64 = 8 * MOST_TEXT as u64;

/// The folder of a team's tasks; None: nothing is kept.
#[derive(Clone, Debug)]
pub(super) struct Store(Option<PathBuf>);

impl Store {
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self(folder)
    }

    /// Reads the tasks, oldest first, and removes those that ended before `oldest`.
    pub(super) fn load(&self, oldest: TimestampMs) -> Vec<Kept> {
        let Some(folder) = &self.0 else { return Vec::new() };
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let mut tasks = Vec::new();
        for path in entries.take(MOST_FILES).filter_map(|entry| Some(entry.ok()?.path())) {
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("json") => {}
                // A remainder of a run that was killed while it wrote.
                Some("new") if is_id(path.file_stem()) => {
                    let _ = fs::remove_file(&path);
                    continue;
                }
                _ => continue,
            }
            let is_short =
                path.symlink_metadata().is_ok_and(|it| it.is_file() && it.len() <= MOST_BYTES);
            let read = if is_short { fs::read(&path).ok() } else { None };
            let kept = read.and_then(|json| serde_json::from_slice::<Kept>(&json).ok());
            match kept.filter(|kept| path.file_stem().is_some_and(|it| *it == *kept.id.as_str())) {
                Some(kept) if kept.ended_ms.is_some_and(|ended| ended < oldest) => {
                    let _ = fs::remove_file(&path);
                }
                Some(kept) => tasks.push(kept),
                None => tracing::warn!(file = %path.display(), "the file of a task makes no sense"),
            }
        }
        tasks.sort_by_key(|kept| kept.begun_ms);
        tasks
    }

    pub(super) fn write(&self, kept: &Kept) -> io::Result<()> {
        let Some(folder) = &self.0 else { return Ok(()) };
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let file = folder.join(format!("{}.json", kept.id));
        let new = folder.join(format!("{}.new", kept.id));
        let json = serde_json::to_vec(kept)?;
        let mut options = OpenOptions::new();
        let mut written = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        written.write_all(&json)?;
        // A result is on the disk before it is reported, even after a power cut.
        written.sync_all()?;
        fs::rename(&new, &file)?;
        File::open(folder)?.sync_all()
    }

    pub(super) fn remove(&self, id: &TaskId) {
        if let Some(folder) = &self.0 {
            let _ = fs::remove_file(folder.join(format!("{id}.json")));
        }
    }
}

fn is_id(name: Option<&OsStr>) -> bool {
    name.and_then(OsStr::to_str).is_some_and(|name| name.starts_with("t-"))
}
