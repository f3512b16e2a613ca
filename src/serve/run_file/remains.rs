use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nix::fcntl::Flock;
use serde::{Deserialize, Serialize};

use super::{NEW, RunInfo, run_dir, try_lock, write_private};

/// What a run leaves behind if it is killed together with those who would have cleaned up after it.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Remains {
    /// When the run's own process started, in clock ticks since the machine came up: with the pid
    /// it names one process, and not another that got the pid later.
    pub started: u64,
    /// Names the time since the machine came up.
    pub boot: String,
    /// What all its processes carry in their environment.
    pub mark: String,
    /// The kernel's group of all its processes.
    pub group: Option<PathBuf>,
    /// Temporary folders.
    pub folders: Vec<PathBuf>,
    /// What it works on: that stays, but whoever starts there is warned.
    pub workspace: Option<PathBuf>,
}

/// Where a run writes down what it would leave behind: before it makes a folder known to others,
/// and again once it has removed it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ledger(Arc<Mutex<Page>>);

#[derive(Debug)]
struct Page {
    file: PathBuf,
    /// None once the run is over.
    info: Option<RunInfo>,
}

/// A run that ended without removing its run file. It is nobody else's as long as this is there.
#[derive(Debug)]
pub struct StaleRun {
    pub info: RunInfo,
    file: PathBuf,
    _lock: Flock<File>,
}

impl Ledger {
    pub(super) fn new(file: PathBuf, info: RunInfo) -> Self {
        Self(Arc::new(Mutex::new(Page { file, info: Some(info) })))
    }

    /// Writes a folder down that is to be removed after this run.
    pub fn add_folder(&self, folder: &Path) -> io::Result<()> {
        self.note(|remains| remains.folders.push(folder.to_owned()))
    }

    /// Strikes out a folder that has been removed.
    pub fn strike_folder(&self, folder: &Path) -> io::Result<()> {
        self.note(|remains| remains.folders.retain(|noted| noted != folder))
    }

    /// Changes what is written down. Once the run is over nothing happens.
    pub fn note(&self, change: impl FnOnce(&mut Remains)) -> io::Result<()> {
        // It is whole whatever panicked beside it.
        let mut page = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Page { file, info } = &mut *page;
        let Some(info) = info else { return Ok(()) };
        change(&mut info.remains);
        write_private(file, info)
    }

    /// From here on the run file is not written any more.
    pub(super) fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).info = None;
    }
}

impl StaleRun {
    /// Removes the run file, once nothing is left of the run.
    pub fn forget(self) {
        let _ = fs::remove_file(&self.file);
        let _ = fs::remove_file(self.file.with_extension("lock"));
    }
}

/// Returns the runs that were killed, each locked against others that would clean up after it.
/// Run files that make no sense are removed.
pub fn stale_runs(eisen_dir: &Path) -> io::Result<Vec<StaleRun>> {
    let entries = match fs::read_dir(run_dir(eisen_dir)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut runs = Vec::new();
    for entry in entries {
        let file = entry?.path();
        let is = |ending: &str| file.extension().is_some_and(|extension| extension == ending);
        if !is("json") && !is(NEW) {
            continue;
        }
        let Some(lock) = try_lock(&file.with_extension("lock"))? else { continue };
        // Whoever wrote it was killed before it was whole.
        let _ = fs::remove_file(file.with_extension(NEW));
        let file = file.with_extension("json");
        let info = fs::read(&file).map(|json| serde_json::from_slice(&json));
        if let Ok(Ok(info)) = info {
            runs.push(StaleRun { info, file, _lock: lock });
        } else {
            let _ = fs::remove_file(&file);
            let _ = fs::remove_file(file.with_extension("lock"));
        }
    }
    Ok(runs)
}
