//! Owns the record of a run's remains if it is killed, and finds such runs for the cleanup.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::{RunInfo, kept_at, run_dir};
use crate::kept::{HeldLock, LockAt, dead_drafts, remove_draft, try_lock};

/// The remains of a run that is killed together with its cleanup processes.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Remains {
    /// When the run's process started, in clock ticks since boot: identifies it even if its pid is
    /// used again.
    pub started: u64,
    /// Identifies the boot.
    pub boot: String,
    /// A mark in the environment of all its processes.
    pub mark: String,
    /// The cgroup of all its processes.
    pub group: Option<PathBuf>,
    /// Temporary folders.
    pub folders: Vec<PathBuf>,
    /// The workspace, which stays. A new run there logs a warning.
    pub workspace: Option<PathBuf>,
}

/// Records a run's remains: a folder before others can use it, and again after its removal. Cheap
/// to clone.
#[derive(Clone, Debug)]
pub struct Ledger(Arc<Mutex<RunFilePage>>);

#[derive(Debug)]
struct RunFilePage {
    file: PathBuf,
    /// None once the run is over.
    info: Option<RunInfo>,
}

/// A run that ended without removing its run file. The lock keeps other processes from it.
#[derive(Debug)]
pub struct StaleRun {
    pub info: RunInfo,
    file: PathBuf,
    _lock: HeldLock,
}

impl Ledger {
    pub(super) fn new(file: PathBuf, info: RunInfo) -> Self {
        Self(Arc::new(Mutex::new(RunFilePage { file, info: Some(info) })))
    }

    /// Records a folder to remove after this run.
    pub fn add_folder(&self, folder: &Path) -> io::Result<()> {
        self.note(|remains| remains.folders.push(folder.to_owned()))
    }

    /// Changes the record. Does nothing once the run is over.
    pub fn note(&self, change: impl FnOnce(&mut Remains)) -> io::Result<()> {
        // The record is consistent even after a panic under the lock.
        let mut page = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let RunFilePage { file, info } = &mut *page;
        let Some(info) = info else { return Ok(()) };
        change(&mut info.remains);
        let mut json = serde_json::to_vec(info)?;
        json.push(b'\n');
        kept_at(file).replace(&json)
    }

    /// Stops all writing of the run file.
    pub(super) fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).info = None;
    }
}

impl StaleRun {
    /// Removes the run file, once the run is cleaned up.
    pub fn forget(self) {
        let _ = fs::remove_file(&self.file);
        let _ = fs::remove_file(self.file.with_extension("lock"));
    }
}

/// Returns the runs that were killed, each locked against other processes. Removes run files that
/// can't be read.
pub fn stale_runs(eisen_dir: &Path) -> io::Result<Vec<StaleRun>> {
    // A file that was being written when its run was killed has its token.
    for draft in dead_drafts(&run_dir(eisen_dir))? {
        remove_draft(&draft)?;
    }
    let entries = match fs::read_dir(run_dir(eisen_dir)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut runs = Vec::new();
    for entry in entries {
        let file = entry?.path();
        if file.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let lock_file = file.with_extension("lock");
        let Some(lock) = try_lock(LockAt::File(&lock_file))? else { continue };
        if let Ok(Some(info)) = kept_at(&file).read_json() {
            runs.push(StaleRun { info, file, _lock: lock });
        } else {
            let _ = fs::remove_file(&file);
            let _ = fs::remove_file(lock_file);
        }
    }
    Ok(runs)
}
