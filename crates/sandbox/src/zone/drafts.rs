//! Drafts: files that are written before they take the place of others, so that a reader sees all or
//! nothing. They have no name while they are written, and then one in a folder of the program's own.
//! Where that is on another file system they get it beside their places, and that is recorded first:
//! what a kill leaves is removed at the next start.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, linkat, unlinkat};

use crate::kept::make_folder;
use crate::model::{KeptFiles, KeptForm};

/// Opens a folder to work in it, and not to list it.
const FOLDER: OFlag = OFlag::O_DIRECTORY.union(CLOSED);

/// The name of the folder; it is removed with the remains of a killed run.
pub const DRAFTS: &str = "eisen-drafts";

/// The drafts of a team.
pub const KEPT: [KeptFiles; 1] =
    [KeptFiles::new("draft of a file", KeptForm::Fixed, &["teams/*/eisen-drafts/*"])];

/// The ending of a record, whose content is the path of a draft.
const RECORD: &str = "path";

const CLOSED: OFlag = OFlag::O_NOFOLLOW.union(OFlag::O_CLOEXEC);

/// The name of a draft beside its place.
fn name() -> String {
    format!(".eisen-{:016x}.tmp", fastrand::u64(..))
}

/// A file that is being written.
pub(super) struct FileDraft<'a> {
    file: File,
    /// The folder of the file that it becomes, and the path of that folder.
    parent: BorrowedFd<'a>,
    at: &'a Path,
    /// The folder of drafts; None: there is none.
    folder: Option<&'a Path>,
    /// Its name in `parent`, with its record; None while it has none.
    named: Option<(String, Record)>,
}

/// A record of a draft beside its place, which is removed on drop.
struct Record(Option<PathBuf>);

impl<'a> FileDraft<'a> {
    /// Begins a file. A `private` one is accessible only to its owner until its mode is set.
    pub(super) fn create(
        (parent, at): (BorrowedFd<'a>, &'a Path),
        folder: Option<&'a Path>,
        private: bool,
    ) -> io::Result<Self> {
        let mode = Mode::from_bits_truncate(if private { 0o600 } else { 0o666 });
        #[cfg(target_os = "linux")]
        {
            let flags = OFlag::O_TMPFILE | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
            if let Ok(file) = openat(parent, ".", flags, mode) {
                return Ok(Self { file: file.into(), parent, at, folder, named: None });
            }
        }
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | CLOSED;
        loop {
            let name = name();
            let record = Record::of(folder, &at.join(&name));
            match openat(parent, &*name, flags, mode) {
                Ok(file) => {
                    let named = Some((name, record));
                    return Ok(Self { file: file.into(), parent, at, folder, named });
                }
                Err(Errno::EEXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives it its name, in the place of what has it. `is_new`: nothing had it.
    pub(super) fn place(mut self, name: &Path, is_new: bool) -> io::Result<()> {
        if self.named.is_none() {
            if is_new && self.link(self.parent, name).is_ok() {
                return Ok(());
            }
            if let Some(placed) = self.place_from_folder(name) {
                return placed;
            }
            let draft = self::name();
            let record = Record::of(self.folder, &self.at.join(&draft));
            self.link(self.parent, Path::new(&draft))?;
            self.named = Some((draft, record));
        }
        let Some((draft, record)) = self.named.take() else { return Ok(()) };
        let placed = renameat(self.parent, &*draft, self.parent, name);
        if placed.is_err() {
            // Report the first failure; this one leaves no more than a stray file.
            let _ = unlinkat(self.parent, &*draft, UnlinkatFlags::NoRemoveDir);
        }
        drop(record);
        Ok(placed?)
    }

    /// Places it by way of the folder of drafts; None if that is on another file system.
    fn place_from_folder(&self, name: &Path) -> Option<io::Result<()>> {
        let folder = open_folder(self.folder?).ok()?;
        let draft = self::name();
        self.link(folder.as_fd(), Path::new(&draft)).ok()?;
        let placed = renameat(&folder, &*draft, self.parent, name);
        if placed.is_err() {
            let _ = unlinkat(&folder, &*draft, UnlinkatFlags::NoRemoveDir);
        }
        match placed {
            Err(Errno::EXDEV) => None,
            placed => Some(placed.map_err(Into::into)),
        }
    }

    fn link(&self, folder: BorrowedFd<'_>, name: &Path) -> Result<(), Errno> {
        let source = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        linkat(AT_FDCWD, &*source, folder, name, AtFlags::AT_SYMLINK_FOLLOW)
    }
}

impl Drop for FileDraft<'_> {
    fn drop(&mut self) {
        if let Some((name, _)) = &self.named {
            let _ = unlinkat(self.parent, name.as_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}

impl Record {
    /// Records a draft before it is made. One that can't be recorded is made all the same.
    fn of(folder: Option<&Path>, draft: &Path) -> Self {
        let record = |folder: &Path| -> io::Result<PathBuf> {
            make_folder(folder)?;
            let path = folder.join(format!("{:016x}.{RECORD}", fastrand::u64(..)));
            let mut options = File::options();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(draft.as_os_str().as_bytes())?;
            Ok(path)
        };
        Self(folder.and_then(|folder| record(folder).ok()))
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

fn open_folder(folder: &Path) -> io::Result<OwnedFd> {
    let open = || nix::fcntl::open(folder, FOLDER, Mode::empty());
    match open() {
        Err(Errno::ENOENT) => {
            make_folder(folder)?;
            Ok(open()?)
        }
        opened => Ok(opened?),
    }
}

/// Removes the drafts beside their places that a killed run recorded in its folder; returns how many.
pub fn remove_recorded(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let records =
        entries.filter(|entry| Path::new(&entry.file_name()).extension() == Some(RECORD.as_ref()));
    let removed = records.filter(|record| {
        let Ok(path) = fs::read(record.path()) else { return false };
        let path = PathBuf::from(OsString::from_vec(path));
        let name = path.file_name().map(|name| name.as_bytes().to_vec()).unwrap_or_default();
        // A kill may have cut the record.
        let is_draft = name.starts_with(b".eisen-") && name.ends_with(b".tmp");
        let removed = if is_draft { fs::remove_file(&path) } else { Ok(()) };
        match removed {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(%error, "cannot remove the draft {}", path.display());
                false
            }
            removed => removed.is_ok() && is_draft,
        }
    });
    removed.count()
}
