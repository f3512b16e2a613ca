//! Opens and replaces judged files. A permit's path was free of links when it was judged; here it
//! is opened without following any, so that a link swapped in since is never followed.
//!
//! Everything here blocks on the disk: asynchronous callers go through `spawn_blocking`.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstat, fstatat, mkdirat};
use nix::unistd::{AccessFlags, Gid, Uid, UnlinkatFlags, faccessat, fchown, unlinkat};

use super::Permit;
use crate::model::Action;

/// The workspace's folder, held open so that permits open files in the folder for which the zone
/// was compiled.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    /// `None` if the folder was missing: its paths are then opened from `/`.
    folder: Option<OwnedFd>,
}

/// Opens folders only for traversal, where the system can: that needs no right to list them.
#[cfg(target_os = "linux")]
const PASS: OFlag = OFlag::O_PATH;
#[cfg(not(target_os = "linux"))]
const PASS: OFlag = OFlag::O_RDONLY;

/// Opens a folder to pass through it.
pub(crate) const FOLDER: OFlag = PASS.union(OFlag::O_DIRECTORY).union(CLOSED);
/// The flags of every open.
const CLOSED: OFlag = OFlag::O_NOFOLLOW.union(OFlag::O_CLOEXEC);

impl Permit {
    /// Opens the file for reading, if it is a regular one. Blocks on the disk.
    ///
    /// Fails with `PermissionDenied` if the permit is one to write, or if a link has taken the
    /// place of a folder or of the file since it was judged.
    pub fn open_read(&self) -> io::Result<File> {
        self.demand(Action::Read)?;
        let (root, path) = self.start()?;
        // Opening a pipe or a device must not wait for its other end.
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | CLOSED;
        let file = match open_beneath(root.as_fd(), path, flags) {
            Err(Errno::ENXIO) => return Err(irregular()),
            opened => opened.map_err(explain)?,
        };
        demand_regular(&fstat(&file)?)?;
        Ok(File::from(file))
    }

    /// Puts `content` in the file's place in one step, with the folders above that are missing.
    /// Blocks on the disk.
    ///
    /// The file keeps its mode, and its owner as far as the system lets it; a new one is made as
    /// the umask says. Links to its inode by other names keep the old content. There is no fsync:
    /// a reader sees all or nothing, a power cut may still cost the new content.
    ///
    /// Fails with `PermissionDenied` if the permit is one to read, if the file is write-protected,
    /// or if a link has taken a place since it was judged; then, and on any other failure, the old
    /// file stays as it was.
    pub fn replace(&self, content: &[u8]) -> io::Result<()> {
        self.demand(Action::Write)?;
        let (root, path) = self.start()?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(folder());
        };
        let parent = make_folder(root.as_fd(), parent).map_err(explain)?;
        let name = Path::new(name);
        let old = match fstatat(&parent, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(old) => {
                demand_regular(&old)?;
                // A rename checks only the folder; a write-protected file must stay.
                faccessat(&parent, name, AccessFlags::W_OK, AtFlags::empty())?;
                Some(old)
            }
            Err(Errno::ENOENT) => None,
            Err(errno) => return Err(errno.into()),
        };
        place(parent.as_fd(), name, content, old.as_ref())
    }

    /// The content that a write replaces, if it has at most `most` bytes; None if there is no
    /// file. Blocks on the disk.
    pub fn present(&self, most: u64) -> io::Result<Option<Vec<u8>>> {
        self.demand(Action::Write)?;
        let (root, path) = self.start()?;
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | CLOSED;
        let file = match open_beneath(root.as_fd(), path, flags) {
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ENXIO) => return Err(irregular()),
            opened => opened.map_err(explain)?,
        };
        demand_regular(&fstat(&file)?)?;
        let mut content = Vec::new();
        File::from(file).take(most + 1).read_to_end(&mut content)?;
        if content.len() as u64 > most {
            return Err(io::Error::from(ErrorKind::FileTooLarge));
        }
        Ok(Some(content))
    }

    fn demand(&self, action: Action) -> io::Result<()> {
        if self.action == action {
            return Ok(());
        }
        let message = format!("this is a permit to {}, not to {action}", self.action);
        Err(io::Error::new(ErrorKind::PermissionDenied, message))
    }

    /// The folder to start from, and the path from there.
    fn start(&self) -> io::Result<(OwnedFd, &Path)> {
        if let Some(folder) = &self.root.folder
            && let Ok(path) = self.real.strip_prefix(&self.root.path)
        {
            return Ok((folder.try_clone()?, path));
        }
        let root = nix::fcntl::open("/", FOLDER, Mode::empty())?;
        Ok((root, self.real.strip_prefix("/").unwrap_or(&self.real)))
    }
}

impl Root {
    pub(super) fn open(path: &Path) -> Self {
        let folder = nix::fcntl::open(path, FOLDER, Mode::empty()).ok();
        Self { path: path.to_owned(), folder }
    }
}

impl PartialEq for Root {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for Root {}

/// Opens `path` beneath `root` without following a link anywhere. `path` is relative and has no
/// `..`.
pub(crate) fn open_beneath(root: BorrowedFd, path: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    #[cfg(target_os = "linux")]
    {
        use nix::fcntl::{OpenHow, ResolveFlag, openat2};
        let beneath = ResolveFlag::RESOLVE_BENEATH
            | ResolveFlag::RESOLVE_NO_SYMLINKS
            | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        match openat2(root, path, OpenHow::new().flags(flags).resolve(beneath)) {
            // A kernel before 5.6, or a sandbox that does not know the call.
            Err(Errno::ENOSYS | Errno::EPERM) => {}
            opened => return opened,
        }
    }
    walk(root, path, flags)
}

/// Does the work of `openat2`, one folder at a time.
pub(super) fn walk(root: BorrowedFd, path: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
    let mut names = path.iter().peekable();
    let mut folder = None::<OwnedFd>;
    while let Some(name) = names.next() {
        let flags = if names.peek().is_some() { FOLDER } else { flags };
        let from = folder.as_ref().map_or(root, OwnedFd::as_fd);
        folder = Some(openat(from, name, flags, Mode::empty())?);
    }
    folder.ok_or(Errno::ENOENT)
}

/// Opens a folder beneath `root`, and creates missing ones.
fn make_folder(root: BorrowedFd, path: &Path) -> nix::Result<OwnedFd> {
    match (open_beneath(root, path, FOLDER), path.parent(), path.file_name()) {
        (Err(Errno::ENOENT), Some(parent), Some(name)) => {
            let parent = make_folder(root, parent)?;
            match mkdirat(&parent, name, Mode::from_bits_truncate(0o777)) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(errno) => return Err(errno),
            }
            openat(&parent, name, FOLDER, Mode::empty())
        }
        (opened, ..) => opened,
    }
}

/// Writes a file beside the old one, and renames it over that.
pub(super) fn place(
    parent: BorrowedFd,
    name: &Path,
    content: &[u8],
    old: Option<&FileStat>,
) -> io::Result<()> {
    let (draft, file) = create_draft(parent, old.is_some())?;
    let placed =
        fill(file, content, old).and_then(|()| Ok(renameat(parent, draft.as_str(), parent, name)?));
    if placed.is_err() {
        // Report the first failure; this one leaves no more than a stray file.
        let _ = unlinkat(parent, draft.as_str(), UnlinkatFlags::NoRemoveDir);
    }
    placed
}

/// Creates a hidden file beside the one that it will replace. A `private` one is accessible only to
/// its owner until it gets the mode of the old one.
fn create_draft(parent: BorrowedFd, private: bool) -> io::Result<(String, File)> {
    let mode = Mode::from_bits_truncate(if private { 0o600 } else { 0o666 });
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | CLOSED;
    loop {
        let name = format!(".eisen-{:016x}.tmp", fastrand::u64(..));
        match openat(parent, &*name, flags, mode) {
            Ok(file) => return Ok((name, File::from(file))),
            Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn fill(mut file: File, content: &[u8], old: Option<&FileStat>) -> io::Result<()> {
    if let Some(old) = old {
        let (user, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        // Only root may give a file away, but its group is often the user's own too.
        let _ =
            fchown(&file, Some(user), Some(group)).or_else(|_| fchown(&file, None, Some(group)));
        // Like any write, this one clears set-user-ID and set-group-ID.
        fchmod(&file, Mode::from_bits_truncate(old.st_mode & 0o777))?;
    }
    file.write_all(content)
}

fn demand_regular(found: &FileStat) -> io::Result<()> {
    match SFlag::from_bits_truncate(found.st_mode & SFlag::S_IFMT.bits()) {
        SFlag::S_IFREG => Ok(()),
        SFlag::S_IFDIR => Err(folder()),
        SFlag::S_IFLNK => Err(swapped()),
        _ => Err(irregular()),
    }
}

fn explain(errno: Errno) -> io::Error {
    match errno {
        Errno::ELOOP | Errno::EXDEV => swapped(),
        errno => errno.into(),
    }
}

fn swapped() -> io::Error {
    let message = "a symbolic link has taken a place on its path since it was judged";
    io::Error::new(ErrorKind::PermissionDenied, message)
}

fn folder() -> io::Error {
    io::Error::new(ErrorKind::IsADirectory, "is a folder")
}

fn irregular() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "is not a regular file")
}
