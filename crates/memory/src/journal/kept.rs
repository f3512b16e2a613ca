//! Contents that are files of their own, in the folder `journal.db.kept` beside the journal, each
//! under its hash: those that came faster than the journal can be written, or are too large for it.
//! A file that is about to lose its only name is kept by a second one, any other by a reflink where
//! the file system has that, else by a copy.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rusqlite::Connection;

use super::database::with_suffix;
use crate::kept::make_folder;

/// Bytes that are copied at a time.
const PIECE: usize = 1 << 20;

/// The length of a hash in hexadecimal digits.
const HASH: usize = 64;

/// The folder of the kept contents of one journal.
#[derive(Debug)]
pub struct KeptFolder {
    journal: PathBuf,
    path: PathBuf,
    reflinks: OnceLock<bool>,
}

/// A content that is kept until this is dropped, or for good once it is stored.
#[derive(Debug)]
pub struct HeldContent {
    folder: Arc<KeptFolder>,
    /// In the folder.
    name: String,
    hash: Arc<str>,
    size: u64,
}

impl KeptFolder {
    /// The folder beside a journal. It is made with the first content.
    pub fn beside(journal: &Path) -> Self {
        let (journal, path) = (journal.to_owned(), folder_of(journal));
        Self { journal, path, reflinks: OnceLock::new() }
    }

    /// Keeps the content of a file, which has this hash, by a second name. Nobody may be able to
    /// write the file any more once it has lost its other name.
    pub fn link(
        self: &Arc<Self>,
        file: impl AsFd,
        hash: &str,
        size: u64,
    ) -> io::Result<HeldContent> {
        use nix::fcntl::{AT_FDCWD, AtFlags};
        let source = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        let name = name(hash);
        let link = || {
            let to = self.path.join(&name);
            nix::unistd::linkat(
                AT_FDCWD,
                source.as_str(),
                AT_FDCWD,
                &to,
                AtFlags::AT_SYMLINK_FOLLOW,
            )
        };
        match link() {
            Err(nix::errno::Errno::ENOENT) => {
                self.make()?;
                link()?;
            }
            linked => linked?,
        }
        Ok(self.held(name, hash.into(), size))
    }

    /// Keeps the present content of a file; with `only_reflink`, fails where that takes room.
    pub fn copy(self: &Arc<Self>, mut file: File, only_reflink: bool) -> io::Result<HeldContent> {
        let (draft, mut copy) = self.draft()?;
        let mut draft = self.held(draft, Arc::default(), 0);
        let mut hasher = blake3::Hasher::new();
        if reflink(&copy, &file).is_ok() {
            hasher.update_reader(&mut copy)?;
        } else if only_reflink {
            return Err(io::ErrorKind::FileTooLarge.into());
        } else {
            let mut piece = vec![0; PIECE];
            loop {
                let read = file.read(&mut piece)?;
                if read == 0 {
                    break;
                }
                hasher.update(&piece[..read]);
                copy.write_all(&piece[..read])?;
            }
        }
        draft.size = hasher.count();
        draft.name_by(hasher.finalize().to_hex().as_str())?;
        Ok(draft)
    }

    /// Keeps a content that is in memory, which has this hash.
    pub fn write(self: &Arc<Self>, content: &[u8], hash: &str) -> io::Result<HeldContent> {
        let (draft, mut file) = self.draft()?;
        let mut draft = self.held(draft, Arc::default(), content.len() as u64);
        file.write_all(content)?;
        draft.name_by(hash)?;
        Ok(draft)
    }

    /// Whether files are copied without taking room.
    pub fn reflinks(self: &Arc<Self>) -> bool {
        let tried = || -> io::Result<()> {
            let (from, mut source) = self.draft()?;
            let _from = self.held(from, Arc::default(), 0);
            source.write_all(&[0; 4096])?;
            let (to, copy) = self.draft()?;
            let _to = self.held(to, Arc::default(), 0);
            reflink(&copy, &source)
        };
        *self.reflinks.get_or_init(|| tried().is_ok())
    }

    /// Bytes that the journal takes on the disk, with all that is kept beside it.
    pub fn used(&self) -> u64 {
        let log = with_suffix(&self.journal, "-wal");
        let sizes = [&self.journal, &log].map(|file| fs::metadata(file).map_or(0, |it| it.len()));
        sizes.iter().sum::<u64>() + self.bytes()
    }

    /// Bytes of all files in it.
    fn bytes(&self) -> u64 {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).sum()
    }

    fn held(self: &Arc<Self>, name: String, hash: Arc<str>, size: u64) -> HeldContent {
        HeldContent { folder: Arc::clone(self), name, hash, size }
    }

    fn make(&self) -> io::Result<()> {
        make_folder(&self.path)
    }

    /// A new file, without a hash in its name.
    fn draft(&self) -> io::Result<(String, File)> {
        let name = name("");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let open = || options.open(self.path.join(&name));
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make()?;
                open()?
            }
            opened => opened?,
        };
        Ok((name, file))
    }
}

impl HeldContent {
    /// BLAKE3 of the content, in 64 lower-case hexadecimal digits.
    pub fn hash(&self) -> &Arc<str> {
        &self.hash
    }

    /// The size of the content in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Stores the content for good, under its hash.
    pub fn store(mut self) -> io::Result<()> {
        let from = self.path();
        if fs::metadata(&from)?.nlink() > 1 {
            // It got another name meanwhile, by which it may be written.
            return self.folder.copy(File::open(&from)?, false)?.store();
        }
        // It may have been a program, or writable for others.
        fs::set_permissions(&from, fs::Permissions::from_mode(0o400))?;
        fs::rename(&from, self.folder.path.join(&*self.hash))?;
        self.name.clear();
        Ok(())
    }

    fn path(&self) -> PathBuf {
        self.folder.path.join(&self.name)
    }

    fn name_by(&mut self, hash: &str) -> io::Result<()> {
        let from = self.path();
        let named = name(hash);
        fs::rename(from, self.folder.path.join(&named))?;
        self.name = named;
        self.hash = hash.into();
        Ok(())
    }
}

impl Drop for HeldContent {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            let _ = fs::remove_file(self.path());
        }
    }
}

/// The name of a content that is not stored yet.
fn name(hash: &str) -> String {
    format!("{hash}.{:016x}", fastrand::u64(..))
}

fn folder_of(journal: &Path) -> PathBuf {
    with_suffix(journal, ".kept")
}

/// The file of a stored content.
fn file_of(connection: &Connection, hash: &str) -> Option<PathBuf> {
    // The name becomes a path.
    let is_hash = hash.len() == HASH && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let journal = connection.path().filter(|path| is_hash && !path.is_empty())?;
    Some(folder_of(Path::new(journal)).join(hash))
}

/// A stored content; None if it is not there.
pub(super) fn read(connection: &Connection, hash: &str) -> Option<Vec<u8>> {
    fs::read(file_of(connection, hash)?).ok()
}

pub(super) fn is_there(connection: &Connection, hash: &str) -> bool {
    file_of(connection, hash).is_some_and(|file| file.is_file())
}

/// Removes a stored content.
pub(super) fn remove(connection: &Connection, hash: &str) {
    if let Some(file) = file_of(connection, hash)
        && let Err(error) = fs::remove_file(&file)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "cannot remove {}", file.display());
    }
}

/// Bytes of all contents that are kept beside a journal.
pub(super) fn bytes(connection: &Connection) -> u64 {
    let journal = connection.path().filter(|path| !path.is_empty());
    journal.map_or(0, |journal| KeptFolder::beside(Path::new(journal)).bytes())
}

/// Removes what a killed run left: contents that no event came to name. Nobody else may use the
/// journal.
pub(super) fn sweep(connection: &Connection) {
    let Some(journal) = connection.path().filter(|path| !path.is_empty()) else { return };
    let folder = folder_of(Path::new(journal));
    let Ok(mut known) = connection.prepare("SELECT 1 FROM contents WHERE hash = ?1") else {
        return;
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let hash = name.to_str().filter(|name| name.len() == HASH);
        // What can't be looked up may be known.
        let is_known = hash.is_some_and(|hash| known.exists([hash]).unwrap_or(true));
        if !is_known && let Err(error) = fs::remove_file(entry.path()) {
            tracing::warn!(%error, "cannot remove {}", entry.path().display());
        }
    }
}

#[cfg(target_os = "linux")]
fn reflink(to: &File, from: &File) -> io::Result<()> {
    Ok(rustix::fs::ioctl_ficlone(to, from)?)
}

#[cfg(not(target_os = "linux"))]
fn reflink(_: &File, _: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
