//! Keeps the merge that is being made, and those that can be taken back.

use std::io;
use std::path::Path;

use super::Landing;
use crate::kept::{Durable, HeldLock, KeptFile, LockAt, lock};
use crate::repository::GitRepository;
use crate::tree::{WorktreeError, Worktrees, share};

/// The file with the merges that were made.
const DONE: &str = "merges.json";

/// Merges that are kept.
const MOST: usize = 100;

/// Bytes of a file of merges.
const LONGEST: u64 = 1 << 20;

/// How long is waited for another process that merges in the same repository.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// The merges of a repository. Only one process makes one at a time.
#[derive(Debug)]
pub struct Landings {
    /// The merge that is being made.
    intent: KeptFile<Durable>,
    done: KeptFile<Durable>,
    _lock: HeldLock,
}

impl Landings {
    /// Opens the merges of a repository. Waits for another process that merges there.
    pub fn of(eisen_dir: &Path, repository: &GitRepository) -> Result<Self, WorktreeError> {
        let folder = folder_of(eisen_dir, repository);
        let failed = |error: io::Error| WorktreeError::File(folder.clone(), error);
        crate::kept::make_folder(&folder).map_err(failed)?;
        let lock = lock(LockAt::File(&folder.join("merges.lock")), PATIENCE).map_err(failed)?;
        share(&lock, true);
        Ok(Self {
            intent: KeptFile::new(folder.join("merging.json"), LONGEST),
            done: KeptFile::new(folder.join(DONE), LONGEST),
            _lock: lock,
        })
    }

    /// The merges of a repository that were made, whoever makes one now.
    pub fn known(eisen_dir: &Path, repository: &GitRepository) -> Vec<Landing> {
        let file = KeptFile::<Durable>::new(folder_of(eisen_dir, repository).join(DONE), LONGEST);
        let all: Vec<Landing> = file.read_json().ok().flatten().unwrap_or_default();
        // One that somebody took back by hand is none any more.
        let is_there = |landing: &Landing| {
            let target = format!("refs/heads/{}", landing.into);
            let mut ask = repository.git();
            ask.args(["merge-base", "--is-ancestor", &landing.new, &target]);
            ask.answer().unwrap_or(false)
        };
        all.into_iter().filter(is_there).collect()
    }

    /// The merge that a killed process was making.
    pub(super) fn unfinished(&self) -> Result<Option<Landing>, WorktreeError> {
        self.intent.read_json().map_err(|error| failed(&self.intent, error))
    }

    pub(crate) fn intend(&self, landing: &Landing) -> Result<(), WorktreeError> {
        write(&self.intent, landing)
    }

    /// Forgets the merge that was being made. `done`: it was made.
    pub(super) fn settle(&self, done: Option<&Landing>) -> Result<(), WorktreeError> {
        if let Some(landing) = done {
            let mut all = self.all()?;
            all.push(landing.clone());
            let first = all.len().saturating_sub(MOST);
            write(&self.done, &all[first..])?;
        }
        self.intent.remove().map_err(|error| failed(&self.intent, error))
    }

    /// Forgets a merge that was taken back.
    pub(super) fn forget(&self, landing: &Landing) -> Result<(), WorktreeError> {
        let mut all = self.all()?;
        all.retain(|known| known != landing);
        write(&self.done, &all)
    }

    /// The merges that were made, oldest first.
    pub fn all(&self) -> Result<Vec<Landing>, WorktreeError> {
        let all = self.done.read_json().map_err(|error| failed(&self.done, error))?;
        Ok(all.unwrap_or_default())
    }
}

fn folder_of(eisen_dir: &Path, repository: &GitRepository) -> std::path::PathBuf {
    Worktrees::new(eisen_dir).folder_of(repository)
}

fn write<T: serde::Serialize + ?Sized>(
    file: &KeptFile<Durable>,
    value: &T,
) -> Result<(), WorktreeError> {
    let text = serde_json::to_vec(value).map_err(io::Error::other);
    text.and_then(|text| file.replace(&text)).map_err(|error| failed(file, error))
}

fn failed(file: &KeptFile<Durable>, error: io::Error) -> WorktreeError {
    WorktreeError::File(file.path().to_owned(), error)
}
