//! One file that is replaced as a whole: whoever reads it sees the old or the new content.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::marker::PhantomData;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::OFlag;
use serde::de::DeserializeOwned;

use super::disk::{self, folder_of};
use super::drafts;
use super::durability::Durability;
use super::lock::{self, HeldLock, LockAt};

/// A file with a bound, and with a [`Durability`]. Whoever changes what it has read locks it first.
#[derive(Clone, Debug)]
pub struct KeptFile<D> {
    path: PathBuf,
    most_bytes: u64,
    durability: PhantomData<D>,
}

impl<D: Durability> KeptFile<D> {
    /// Names the file at a path, and does not touch the disk. No content may have more than `most_bytes`.
    pub fn new(path: impl Into<PathBuf>, most_bytes: u64) -> Self {
        Self { path: path.into(), most_bytes, durability: PhantomData }
    }

    /// The path that [`KeptFile::new`] got.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the content; None without the file. A file past the bound is `FileTooLarge`, and what is no
    /// file `InvalidData`.
    pub fn read(&self) -> io::Result<Option<Vec<u8>>> {
        self.open()?.map(|file| self.read_from(file)).transpose()
    }

    /// As [`KeptFile::read`], of JSON. Content that can't be parsed is `InvalidData`.
    pub fn read_json<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        let Some(content) = self.read()? else { return Ok(None) };
        serde_json::from_slice(&content).map(Some).map_err(invalid)
    }

    /// As [`KeptFile::read`], of text. Content that is not UTF-8 is `InvalidData`.
    pub fn read_text(&self) -> io::Result<Option<String>> {
        let Some(content) = self.read()? else { return Ok(None) };
        String::from_utf8(content).map(Some).map_err(invalid)
    }

    /// Opens the file, to look at it before [`KeptFile::read_from`]; None without it.
    pub fn open(&self) -> io::Result<Option<File>> {
        // Opening a pipe would wait for its writer.
        let nonblocking = OFlag::O_NONBLOCK.bits();
        let file = match OpenOptions::new().read(true).custom_flags(nonblocking).open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(invalid("it is not a file")) }
    }

    /// Reads the rest of a file that [`KeptFile::open`] opened. A file past the bound is `FileTooLarge`.
    pub fn read_from(&self, file: File) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        file.take(self.most_bytes.saturating_add(1)).read_to_end(&mut content)?;
        self.check(&content)?;
        Ok(content)
    }

    /// Replaces the file, and makes its folder if need be. An error may come after the file was replaced:
    /// then the change may not outlast a power cut.
    pub fn replace(&self, content: &[u8]) -> io::Result<()> {
        self.put(content, true).map(drop)
    }

    /// As [`KeptFile::replace`], but a file that is there stays, with the error `AlreadyExists`.
    pub fn create(&self, content: &[u8]) -> io::Result<()> {
        self.put(content, false).map(drop)
    }

    /// As [`KeptFile::replace`], and returns the new file, which is locked until it is closed.
    pub fn replace_locked(&self, content: &[u8]) -> io::Result<File> {
        self.put(content, true)
    }

    /// Takes the lock of the file `name` beside it; see [`lock::lock`]. Makes their folder if need be.
    pub fn lock(&self, name: &str, patience: Duration) -> io::Result<HeldLock> {
        disk::make(folder_of(&self.path), D::SYNCS_FOLDER)?;
        lock::lock(LockAt::File(&self.path.with_file_name(name)), patience)
    }

    /// Removes the file; without it there is nothing to do.
    pub fn remove(&self) -> io::Result<()> {
        if disk::remove(&self.path)? && D::SYNCS_FOLDER {
            disk::sync_folder(folder_of(&self.path))?;
        }
        Ok(())
    }

    fn put(&self, content: &[u8], replaces: bool) -> io::Result<File> {
        self.check(content)?;
        let folder = folder_of(&self.path);
        disk::make(folder, D::SYNCS_FOLDER)?;
        let mut draft = drafts::begin(folder)?;
        disk::write(&mut draft, content)?;
        if D::SYNCS_FILE {
            disk::sync_file(&draft)?;
        }
        let file = disk::rename(draft, &self.path, replaces)?;
        if D::SYNCS_FOLDER {
            disk::sync_folder(folder)?;
        }
        Ok(file)
    }

    /// Refuses what is past the bound: it could not be read again.
    fn check(&self, content: &[u8]) -> io::Result<()> {
        if content.len() as u64 <= self.most_bytes {
            return Ok(());
        }
        let why = format!("it has more than {} bytes", self.most_bytes);
        Err(io::Error::new(ErrorKind::FileTooLarge, why))
    }
}

fn invalid(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}
