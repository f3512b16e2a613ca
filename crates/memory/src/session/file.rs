//! The registry's file and its lock: reads it, replaces it as a whole, and moves a corrupt one
//! aside. Does not know the format.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::registry::Registry;
use super::{RegistryError, format};
use crate::kept::{Durable, HeldLock, KeptFile};
use crate::model::{SessionKey, now_ms};

const LOCK: &str = "core_sessions.lock";

/// Bytes of the largest file to write or read.
const MOST_BYTES: usize = 64 << 20;

/// Age of a file whose identity is reliable. A younger one may be replaced within the resolution of
/// its time by a file with the same inode and length.
const SETTLED: Duration = Duration::from_secs(2);

/// Names to try for a corrupt file: none is overwritten.
const ASIDE: u64 = 1_000;

#[derive(Debug)]
pub(super) struct RegistryFile {
    dir: PathBuf,
    file: KeptFile<Durable>,
}

impl RegistryFile {
    pub(super) fn new(dir: &Path) -> Self {
        let file = KeptFile::new(dir.join("core_sessions.json"), MOST_BYTES as u64);
        Self { dir: dir.to_owned(), file }
    }

    /// Reads the file. It is replaced atomically, so no lock is needed.
    pub(super) fn read(&self, deadline: Instant) -> Result<Registry, RegistryError> {
        match self.content()? {
            Ok(registry) => Ok(registry),
            // Moving a corrupt file aside is a change.
            Err(_) => self.update(deadline, |registry| registry.clone()),
        }
    }

    /// Applies `change`, and writes the file if it changed. Waits for the lock until `deadline`.
    pub(super) fn update<T>(
        &self,
        deadline: Instant,
        change: impl FnOnce(&mut Registry) -> T,
    ) -> Result<T, RegistryError> {
        let _lock = self.lock(deadline)?;
        let mut registry = match self.content()? {
            Ok(registry) => registry,
            Err(why) => {
                self.keep_aside(&why)?;
                Registry::default()
            }
        };
        let outcome = change(&mut registry);
        if registry.changed {
            self.write(&format::text(&registry))?;
        }
        Ok(outcome)
    }

    /// Returns the content, empty without a file; the inner error says why it is corrupt.
    fn content(&self) -> Result<Result<Registry, String>, RegistryError> {
        let text = self.file.read().map_err(failed("read", self.file.path()))?;
        Ok(text.map_or_else(|| Ok(Registry::default()), |text| format::parse(&text)))
    }

    fn lock(&self, deadline: Instant) -> Result<HeldLock, RegistryError> {
        let patience = deadline.saturating_duration_since(Instant::now());
        match self.file.lock(LOCK, patience) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(RegistryError::Locked { path: self.dir.join(LOCK) })
            }
            lock => lock.map_err(failed("lock", &self.dir.join(LOCK))),
        }
    }

    /// Moves a corrupt file to a new name.
    fn keep_aside(&self, why: &str) -> Result<(), RegistryError> {
        let now = now_ms();
        let named = |n| self.dir.join(format!("core_sessions.corrupt-{}.json", now + n));
        // The lock protects these names, too.
        let aside = (0..ASIDE).map(named).find(|path| fs::symlink_metadata(path).is_err());
        let aside = aside.ok_or_else(|| io::ErrorKind::AlreadyExists.into());
        let aside = aside.map_err(failed("move", self.file.path()))?;
        fs::rename(self.file.path(), &aside).map_err(failed("move", self.file.path()))?;
        tracing::error!(
            file = %self.file.path().display(),
            kept_as = %aside.display(),
            why,
            "the registry of sessions can't be read: it is kept aside, and a new one begun"
        );
        Ok(())
    }

    /// Replaces the file as a whole; only its owner may read it.
    fn write(&self, text: &[u8]) -> Result<(), RegistryError> {
        if text.len() > MOST_BYTES {
            let (path, bytes) = (self.file.path().to_owned(), text.len());
            return Err(RegistryError::Full { path, bytes, most: MOST_BYTES });
        }
        self.file.replace(text).map_err(failed("replace", self.file.path()))
    }
}

/// A cache of the active session, by the identity of the file.
#[derive(Default, Debug)]
pub(super) struct ActiveCache(Mutex<Option<(Identity, Option<SessionKey>)>>);

/// Distinguishes a file from its replacement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Identity {
    device: u64,
    number: u64,
    length: u64,
    modified: (i64, i64),
}

impl ActiveCache {
    pub(super) fn active(&self, file: &RegistryFile) -> Option<SessionKey> {
        let metadata = fs::metadata(file.file.path()).ok()?;
        let identity = Identity {
            device: metadata.dev(),
            number: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        };
        // Locked while reading: concurrent callers share one read.
        let mut cached = self.0.lock();
        if let Some((read, active)) = &*cached
            && *read == identity
        {
            return active.clone();
        }
        let active = file.content().ok()?.ok()?.active;
        let age = metadata.modified().ok().and_then(|modified| modified.elapsed().ok());
        let is_settled = age.is_some_and(|age| age > SETTLED);
        *cached = is_settled.then(|| (identity, active.clone()));
        active
    }
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RegistryError {
    let path = path.to_owned();
    move |cause| RegistryError::Io { doing, path, cause: Arc::new(cause) }
}
