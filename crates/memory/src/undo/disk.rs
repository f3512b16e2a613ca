//! Reads and changes the files of an undo: beneath the workspace, by descriptors of their folders,
//! without following any symlink. Blocks on the disk.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{
    FchmodatFlags, FileStat, Mode, SFlag, fchmod, fchmodat, fstat, fstatat, mkdirat,
};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, symlinkat, unlinkat};

use super::path::FilePath;
use crate::changes::{FileKind, FileState, Tree, same};
use crate::journal::hash_of;
use crate::zone::{FOLDER, open_beneath};

/// The largest file that is read as a whole.
pub(super) const MOST_READ: u64 = 256 << 20;

/// Zeros of this length become a hole.
const BLOCK: usize = 4096;

/// The workspace, and the root folder for paths outside of it.
#[derive(Debug)]
pub(super) struct Disk {
    inside: OwnedFd,
    outside: OwnedFd,
}

/// The entry that was found at a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    Nothing,
    Known(FileState),
    /// A pipe, socket or device.
    Special,
}

/// A file by its device and inode.
pub(super) type Inode = (u64, u64);

/// A path's folder, held open, and the path's last name.
pub(super) struct Spot {
    pub(super) folder: OwnedFd,
    pub(super) name: PathBuf,
}

impl Disk {
    pub(super) fn open(workspace: &Path) -> io::Result<Self> {
        let open = |path: &Path| nix::fcntl::open(path, FOLDER, Mode::empty());
        Ok(Self { inside: open(workspace)?, outside: open(Path::new("/"))? })
    }

    fn start<'a>(&self, path: &'a Path) -> (BorrowedFd<'_>, &'a Path) {
        match path.strip_prefix("/") {
            Ok(names) => (self.outside.as_fd(), names),
            Err(_) => (self.inside.as_fd(), path),
        }
    }

    pub(super) fn folder(&self, path: &Path) -> io::Result<OwnedFd> {
        let (root, path) = self.start(path);
        open_beneath(root, path, FOLDER).map_err(explain)
    }

    /// The mount that a folder is on, between whose folders files can be moved; None if that is not
    /// known, or if new entries of the folder are not like those of others.
    #[cfg(target_os = "linux")]
    pub(super) fn mount(&self, path: &Path) -> Option<u64> {
        use rustix::fs::{AtFlags, StatxFlags, statx};
        const SET_GROUP: u16 = 0o2000;
        let folder = self.folder(path).ok()?;
        let wanted = StatxFlags::MNT_ID | StatxFlags::MODE;
        let found = statx(&folder, "", AtFlags::EMPTY_PATH, wanted).ok()?;
        let is_known = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
        (is_known && found.stx_mode & SET_GROUP == 0).then_some(found.stx_mnt_id)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn mount(&self, _: &Path) -> Option<u64> {
        None
    }

    pub(super) fn spot(&self, path: &FilePath) -> io::Result<Spot> {
        let path = path.as_path();
        let name = path.file_name().map_or(path, Path::new).to_owned();
        let folder = self.folder(path.parent().unwrap_or(Path::new("")))?;
        Ok(Spot { folder, name })
    }

    /// Looks at a path, and reads the file there as a whole. Finds nothing behind a symlink in
    /// place of a folder.
    pub(super) fn look(&self, path: &FilePath) -> io::Result<Standing> {
        match self.spot(path) {
            Ok(spot) => spot.look(),
            Err(error) if is_out_of_reach(&error) => Ok(Standing::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Whether the path is a folder; None if nothing is there.
    pub(super) fn is_folder(&self, path: &FilePath) -> io::Result<Option<bool>> {
        match self.spot(path).and_then(|spot| Ok(spot.stat()?)) {
            Ok(stat) => Ok(Some(kind(&stat) == SFlag::S_IFDIR)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            // A file or a symlink is in the place of a folder above.
            Err(error) if is_out_of_reach(&error) => Ok(Some(false)),
            Err(error) => Err(error),
        }
    }

    /// The inode of the file at a path.
    pub(super) fn id(&self, path: &FilePath) -> Option<Inode> {
        let stat = self.spot(path).ok()?.stat().ok()?;
        #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
        let id = (stat.st_dev as u64, stat.st_ino as u64);
        (kind(&stat) == SFlag::S_IFREG).then_some(id)
    }

    /// The bytes of a file, or the target of a symlink, if it has at most `most`.
    pub(super) fn read(&self, path: &FilePath, most: u64) -> io::Result<Option<Vec<u8>>> {
        let spot = self.spot(path)?;
        if kind(&spot.stat()?) == SFlag::S_IFLNK {
            return spot.target().map(Some);
        }
        let mut bytes = Vec::new();
        spot.open()?.take(most + 1).read_to_end(&mut bytes)?;
        Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= most))
    }

    /// The names in a folder.
    pub(super) fn names(&self, path: &FilePath) -> io::Result<Vec<FilePath>> {
        let (root, below) = self.start(path.as_path());
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let folder = open_beneath(root, below, flags).map_err(explain)?;
        let mut names = Vec::new();
        for entry in nix::dir::Dir::from_fd(folder)?.iter() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                let name = std::ffi::OsStr::from_bytes(name);
                names.extend(FilePath::new(path.as_path().join(name)));
            }
        }
        Ok(names)
    }
}

impl Tree for &Disk {
    fn state(&mut self, path: &Path) -> io::Result<Option<FileState>> {
        match self.look(&known(path)?)? {
            Standing::Nothing => Ok(None),
            Standing::Known(state) => Ok(Some(state)),
            Standing::Special => Err(io::Error::other("it is a pipe, a socket or a device")),
        }
    }

    fn content(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let content = self.read(&known(path)?, MOST_READ)?;
        content.ok_or_else(|| io::Error::from(ErrorKind::FileTooLarge))
    }
}

fn known(path: &Path) -> io::Result<FilePath> {
    FilePath::new(path.to_owned()).ok_or_else(|| io::Error::from(ErrorKind::InvalidFilename))
}

impl Spot {
    pub(super) fn stat(&self) -> nix::Result<FileStat> {
        fstatat(&self.folder, self.name.as_path(), AtFlags::AT_SYMLINK_NOFOLLOW)
    }

    pub(super) fn look(&self) -> io::Result<Standing> {
        let stat = match self.stat() {
            Err(Errno::ENOENT) => return Ok(Standing::Nothing),
            stat => stat?,
        };
        let state = |kind, hash, size, stat: &FileStat| {
            Standing::Known(FileState { kind, hash, size, mode: mode(stat), stored: false })
        };
        Ok(match kind(&stat) {
            SFlag::S_IFDIR => state(FileKind::Folder, None, 0, &stat),
            SFlag::S_IFLNK => {
                let target = self.target()?;
                let size = u64::try_from(target.len()).unwrap_or(u64::MAX);
                state(FileKind::Symlink, Some(hash_of(&target)), size, &stat)
            }
            SFlag::S_IFREG => {
                let file = self.open()?;
                let stat = fstat(&file)?;
                let mut hasher = blake3::Hasher::new();
                hasher.update_reader(&file)?;
                let hash = hasher.finalize().to_hex().to_string();
                state(FileKind::File, Some(hash), hasher.count(), &stat)
            }
            _ => Standing::Special,
        })
    }

    /// Whether the file here has this state.
    pub(super) fn holds(&self, state: &FileState) -> io::Result<bool> {
        Ok(matches!(self.look()?, Standing::Known(found) if same(Some(&found), Some(state))))
    }

    pub(super) fn mode(&self) -> nix::Result<u32> {
        Ok(mode(&self.stat()?))
    }

    /// A place beside it for the middle of an exchange.
    pub(super) fn aside(&self) -> io::Result<Self> {
        let mut name = self.name.clone().into_os_string();
        name.push("~");
        Ok(Self { folder: self.folder.try_clone()?, name: name.into() })
    }

    /// Opens a regular file to be read.
    fn open(&self) -> io::Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file =
            openat(&self.folder, self.name.as_path(), flags, Mode::empty()).map_err(explain)?;
        if kind(&fstat(&file)?) != SFlag::S_IFREG {
            return Err(io::Error::new(ErrorKind::InvalidInput, "is not a regular file"));
        }
        Ok(File::from(file))
    }

    fn target(&self) -> io::Result<Vec<u8>> {
        Ok(readlinkat(&self.folder, self.name.as_path())?.into_vec())
    }

    /// Creates a file or symlink with this content; other users can't open it before it has its
    /// mode. It gets the owner of the file that it will replace, as far as the system allows.
    pub(super) fn create(
        &self,
        state: &FileState,
        content: &[u8],
        replaces: Option<&FileStat>,
    ) -> io::Result<()> {
        if state.kind == FileKind::Symlink {
            let target = PathBuf::from(std::ffi::OsString::from_vec(content.to_vec()));
            return Ok(symlinkat(&target, &self.folder, self.name.as_path())?);
        }
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let private = Mode::from_bits_truncate(0o600);
        let mut file = File::from(openat(&self.folder, self.name.as_path(), flags, private)?);
        if let Some(old) = replaces {
            let (user, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
            // Only root may give a file away, but its group is often the user's own too.
            let _ = fchown(&file, Some(user), Some(group))
                .or_else(|_| fchown(&file, None, Some(group)));
        }
        write_sparse(&mut file, content)?;
        Ok(fchmod(&file, bits(state.permissions()))?)
    }

    /// Makes it another name of a file.
    pub(super) fn link(&self, of: &Self) -> nix::Result<()> {
        let (from, to) = (of.name.as_path(), self.name.as_path());
        nix::unistd::linkat(&of.folder, from, &self.folder, to, AtFlags::empty())
    }

    pub(super) fn make_folder(&self, mode: u32) -> io::Result<()> {
        mkdirat(&self.folder, self.name.as_path(), bits(mode))?;
        // `mkdirat` applied the umask of this program.
        self.set_mode(mode)
    }

    pub(super) fn remove_folder(&self) -> nix::Result<()> {
        unlinkat(&self.folder, self.name.as_path(), UnlinkatFlags::RemoveDir)
    }

    pub(super) fn remove_file(&self) -> nix::Result<()> {
        unlinkat(&self.folder, self.name.as_path(), UnlinkatFlags::NoRemoveDir)
    }

    /// Sets the mode of a file or folder, and follows no symlink.
    pub(super) fn set_mode(&self, mode: u32) -> io::Result<()> {
        if cfg!(target_os = "linux") {
            // This kind of descriptor needs no right to read.
            let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let held = openat(&self.folder, self.name.as_path(), flags, Mode::empty())?;
            let kind = file_kind(&fstat(&held)?);
            if kind == Some(FileKind::Symlink) {
                return Err(swapped());
            }
            let mode = kind.map_or(mode, |kind| mode & kind.mode_bits());
            let held = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
            let follow = FchmodatFlags::FollowSymlink;
            return Ok(fchmodat(nix::fcntl::AT_FDCWD, &held, bits(mode), follow)?);
        }
        let flags = FchmodatFlags::NoFollowSymlink;
        Ok(fchmodat(&self.folder, self.name.as_path(), bits(mode), flags)?)
    }
}

/// Writes a content with holes in the place of long runs of zeros.
fn write_sparse(file: &mut File, content: &[u8]) -> io::Result<()> {
    for block in content.chunks(BLOCK) {
        if block.iter().all(|byte| *byte == 0) {
            file.seek(SeekFrom::Current(i64::try_from(block.len()).unwrap_or(0)))?;
        } else {
            file.write_all(block)?;
        }
    }
    file.set_len(u64::try_from(content.len()).unwrap_or(u64::MAX))
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits())
}

/// The recorded kind; None for a pipe, a socket or a device.
fn file_kind(stat: &FileStat) -> Option<FileKind> {
    match kind(stat) {
        SFlag::S_IFREG => Some(FileKind::File),
        SFlag::S_IFLNK => Some(FileKind::Symlink),
        SFlag::S_IFDIR => Some(FileKind::Folder),
        _ => None,
    }
}

#[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "16 bits on some systems")]
fn mode(stat: &FileStat) -> u32 {
    stat.st_mode as u32 & file_kind(stat).unwrap_or(FileKind::Other).mode_bits()
}

#[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "16 bits on some systems")]
fn bits(mode: u32) -> Mode {
    Mode::from_bits_truncate(mode as nix::libc::mode_t)
}

/// Whether a path has no file, since a folder above is missing or not a folder.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Whether a path can't be reached, since a folder above is missing or has become a symlink.
pub(super) fn is_out_of_reach(error: &io::Error) -> bool {
    let is_swapped = error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none();
    is_missing(error) || is_swapped
}

fn explain(errno: Errno) -> io::Error {
    match errno {
        Errno::ELOOP | Errno::EXDEV => swapped(),
        errno => errno.into(),
    }
}

fn swapped() -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, "a symbolic link is on its path")
}
