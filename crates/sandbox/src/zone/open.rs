//! Opens and replaces judged files. A permit's path was free of links when it was judged; here it
//! is opened without following any, so that a link swapped in since is never followed.
//!
//! Everything here blocks on the disk: asynchronous callers go through `spawn_blocking`.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstat, fstatat, mkdirat};
use nix::unistd::{AccessFlags, Gid, Uid, faccessat, fchown};

use parking_lot::RwLock;

use super::drafts::FileDraft;
use super::{Permit, Zone};
use crate::model::Action;

/// The workspace's folder, held open so that permits open files in the folder for which the zone
/// was compiled.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    /// `None` if the folder was missing: its paths are then opened from `/`.
    folder: RwLock<Option<OwnedFd>>,
    /// The folder of drafts.
    drafts: Option<PathBuf>,
}

/// Opens folders only for traversal, where the system can: that needs no right to list them.
#[cfg(target_os = "linux")]
const PASS: OFlag = OFlag::O_PATH;
#[cfg(not(target_os = "linux"))]
const PASS: OFlag = OFlag::O_RDONLY;

/// Opens a folder to pass through it.
pub const FOLDER: OFlag = PASS.union(OFlag::O_DIRECTORY).union(CLOSED);
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
        let parent =
            make_folder(root.as_fd(), parent, Mode::from_bits_truncate(0o777)).map_err(explain)?;
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
        let at = self.real.parent().unwrap_or(Path::new("/"));
        let drafts = self.root.drafts.as_deref();
        place((parent.as_fd(), at), name, content, old.as_ref(), drafts)
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

    /// Why its workspace can't be used any more: another folder took its place, or it is gone.
    pub fn moved(&self) -> Option<String> {
        self.root.moved()
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
        if let Ok(path) = self.real.strip_prefix(&self.root.path)
            && let Some(folder) = self.root.folder()?
        {
            return Ok((folder, path));
        }
        let root = nix::fcntl::open("/", FOLDER, Mode::empty())?;
        Ok((root, self.real.strip_prefix("/").unwrap_or(&self.real)))
    }
}

impl Zone {
    /// Takes the folder that is the workspace now: an agent starts.
    pub fn take_workspace(&self) {
        self.root.take();
    }

    /// Why the workspace can't be used any more: another folder took its place, or it is gone.
    pub fn workspace_moved(&self) -> Option<String> {
        self.root.moved()
    }

    /// Keeps drafts of files in a folder, from where they are moved to their places.
    #[must_use]
    pub fn with_drafts_in(mut self, folder: PathBuf) -> Self {
        // Nobody else has it before the first permit.
        if let Some(root) = Arc::get_mut(&mut self.root) {
            root.keep_drafts_in(folder);
        }
        self
    }
}

impl Root {
    pub(super) fn open(path: &Path) -> Self {
        let folder = RwLock::new(nix::fcntl::open(path, FOLDER, Mode::empty()).ok());
        Self { path: path.to_owned(), folder, drafts: None }
    }

    /// The folder, if it is still the one at its path.
    fn folder(&self) -> io::Result<Option<OwnedFd>> {
        let folder = self.folder.read();
        let Some(folder) = &*folder else { return Ok(None) };
        if let Some(why) = self.problem(folder) {
            return Err(io::Error::other(why));
        }
        folder.try_clone().map(Some)
    }

    /// Takes the folder that is at the path now.
    pub(super) fn take(&self) {
        *self.folder.write() = nix::fcntl::open(&self.path, FOLDER, Mode::empty()).ok();
    }

    /// Why requests are refused: another folder is at the path, or none.
    pub(super) fn moved(&self) -> Option<String> {
        self.folder.read().as_ref().and_then(|folder| self.problem(folder))
    }

    fn problem(&self, folder: &OwnedFd) -> Option<String> {
        let identity = |stat: FileStat| (stat.st_dev, stat.st_ino);
        let held = fstat(folder).ok().map(identity);
        let found = nix::sys::stat::lstat(&self.path).ok().map(identity);
        let what = match found {
            Some(_) if found == held => return None,
            Some(_) => "was replaced by another folder",
            None => "was moved or removed",
        };
        let path = self.path.display();
        Some(format!(
            "the workspace {path} {what} while the agent runs, which has the old one: requests for \
             files are refused until it is restarted"
        ))
    }

    /// Keeps drafts in a folder.
    pub(super) fn keep_drafts_in(&mut self, folder: PathBuf) {
        self.drafts = Some(folder);
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
pub fn open_beneath(root: BorrowedFd, path: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
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
pub(super) fn make_folder(root: BorrowedFd, path: &Path, mode: Mode) -> nix::Result<OwnedFd> {
    match (open_beneath(root, path, FOLDER), path.parent(), path.file_name()) {
        (Err(Errno::ENOENT), Some(parent), Some(name)) => {
            let parent = make_folder(root, parent, mode)?;
            match mkdirat(&parent, name, mode) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(errno) => return Err(errno),
            }
            openat(&parent, name, FOLDER, Mode::empty())
        }
        (opened, ..) => opened,
    }
}

/// Writes a file, and then gives it the place of the old one.
pub(super) fn place(
    (parent, at): (BorrowedFd, &Path),
    name: &Path,
    content: &[u8],
    old: Option<&FileStat>,
    drafts: Option<&Path>,
) -> io::Result<()> {
    let mut draft = FileDraft::create((parent, at), drafts, old.is_some())?;
    fill(draft.file(), content, old)?;
    draft.place(name, old.is_none())
}

fn fill(file: &mut File, content: &[u8], old: Option<&FileStat>) -> io::Result<()> {
    if let Some(old) = old {
        let (user, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        // Only root may give a file away, but its group is often the user's own too.
        let _ =
            fchown(&*file, Some(user), Some(group)).or_else(|_| fchown(&*file, None, Some(group)));
        // Like any write, this one clears set-user-ID and set-group-ID.
        fchmod(&*file, Mode::from_bits_truncate(old.st_mode & 0o777))?;
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
