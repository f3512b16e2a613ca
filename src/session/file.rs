//! The registry's file and its lock: reads it, replaces it as a whole, and moves a corrupt one
//! aside. Does not know the format.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use parking_lot::Mutex;

use super::registry::Registry;
use super::{RegistryError, format};
use crate::model::{SessionKey, now_ms};

/// Longest pause between two attempts to lock, in milliseconds.
const PAUSE_MS: u64 = 5;

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
    file: PathBuf,
    /// Never renamed or removed, so that all processes lock the same file.
    lock: PathBuf,
    /// Written under the lock; overwritten if a killed process left it.
    temporary: PathBuf,
}

impl RegistryFile {
    pub(super) fn new(dir: &Path) -> Self {
        let at = |name| dir.join(name);
        Self {
            dir: dir.to_owned(),
            file: at("core_sessions.json"),
            lock: at("core_sessions.lock"),
            temporary: at("core_sessions.tmp"),
        }
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
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.dir);
        made.map_err(failed("make", &self.dir))?;
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
        match read_file(&self.file) {
            Ok(text) => Ok(format::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Ok(Registry::default())),
            Err(error) => Err(failed("read", &self.file)(error)),
        }
    }

    fn lock(&self, deadline: Instant) -> Result<Flock<File>, RegistryError> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&self.lock)
            .map_err(failed("open", &self.lock))?;
        loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(lock),
                Err((same, Errno::EWOULDBLOCK)) if Instant::now() < deadline => {
                    file = same;
                    std::thread::sleep(Duration::from_millis(fastrand::u64(1..=PAUSE_MS)));
                }
                Err((_, Errno::EWOULDBLOCK)) => {
                    return Err(RegistryError::Locked { path: self.lock.clone() });
                }
                Err((_, errno)) => return Err(failed("lock", &self.lock)(errno.into())),
            }
        }
    }

    /// Moves a corrupt file to a new name.
    fn keep_aside(&self, why: &str) -> Result<(), RegistryError> {
        let now = now_ms();
        let named = |n| self.dir.join(format!("core_sessions.corrupt-{}.json", now + n));
        // The lock protects these names, too.
        let aside = (0..ASIDE).map(named).find(|path| fs::symlink_metadata(path).is_err());
        let aside = aside.ok_or_else(|| io::ErrorKind::AlreadyExists.into());
        let aside = aside.map_err(failed("move", &self.file))?;
        fs::rename(&self.file, &aside).map_err(failed("move", &self.file))?;
        tracing::error!(
            file = %self.file.display(),
            kept_as = %aside.display(),
            why,
            "the registry of sessions makes no sense: it is kept aside, and a new one begun"
        );
        Ok(())
    }

    /// Replaces the file as a whole; only its owner may read it.
    fn write(&self, text: &[u8]) -> Result<(), RegistryError> {
        if text.len() > MOST_BYTES {
            let (path, bytes) = (self.file.clone(), text.len());
            return Err(RegistryError::Full { path, bytes, most: MOST_BYTES });
        }
        let written = self.write_temporary(text);
        if written.is_err() {
            let _ = fs::remove_file(&self.temporary);
        }
        written.map_err(failed("write", &self.temporary))?;
        fs::rename(&self.temporary, &self.file).map_err(failed("replace", &self.file))?;
        // The rename must survive a power failure.
        let synced = File::open(&self.dir).and_then(|dir| dir.sync_all());
        synced.map_err(failed("write", &self.dir))
    }

    fn write_temporary(&self, text: &[u8]) -> io::Result<()> {
        let _ = fs::remove_file(&self.temporary);
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.temporary)?;
        file.write_all(text)?;
        file.sync_all()
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
        let metadata = fs::metadata(&file.file).ok()?;
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

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe would wait for its writer.
    let nonblock = OFlag::O_NONBLOCK.bits();
    let file = OpenOptions::new().read(true).custom_flags(nonblock).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = Vec::new();
    file.take(MOST_BYTES as u64 + 1).read_to_end(&mut text)?;
    if text.len() > MOST_BYTES {
        return Err(io::Error::other(format!("it has more than {MOST_BYTES} bytes")));
    }
    Ok(text)
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RegistryError {
    let path = path.to_owned();
    move |cause| RegistryError::Io { doing, path, cause: Arc::new(cause) }
}
