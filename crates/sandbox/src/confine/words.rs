//! Words for whoever reads the errors of a program: a line on its standard error, beside the error that its call gets.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::libc::STDERR_FILENO;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::sys::socket::{AddressFamily, MsgFlags, SockaddrLike, SockaddrStorage, getsockname, send};
use nix::sys::stat::{Mode, SFlag, fstat, major};
use nix::sys::statfs::{
    BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, FsType, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC,
    XFS_SUPER_MAGIC, fstatfs,
};
use nix::sys::termios::tcgetsid;
use nix::unistd::{getsid, isatty, write};

use super::calling_process::CallingProcess;
use super::raw;

/// File systems whose files are contents, and nothing that a write commands.
const PLAIN: [FsType; 5] =
    [BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC];

/// The major numbers of the lower ends of terminals that programs open.
const TERMINALS: std::ops::RangeInclusive<u64> = 136..=143;

/// Writes a line to the caller's standard error, if the caller may write there and no reader has to be waited for. Blocks
/// while the file system of a file does.
pub(super) fn tell(caller: CallingProcess<'_>, line: &str) {
    if let Err(error) = try_tell(caller, line.as_bytes()) {
        tracing::debug!(%error, "a caller is not told");
    }
}

fn try_tell(caller: CallingProcess<'_>, line: &[u8]) -> Result<(), Errno> {
    let process = || caller.identity().map(|identity| identity.process);
    let error = raw::descriptor_of(caller.notice.tid, process, STDERR_FILENO)?;
    // The ids may have been reused meanwhile.
    if !caller.listener.waits(caller.notice.id) {
        return Err(Errno::ESRCH);
    }
    let flags = OFlag::from_bits_retain(fcntl(&error, FcntlArg::F_GETFL)?);
    let is_written = matches!(flags & OFlag::O_ACCMODE, OFlag::O_WRONLY | OFlag::O_RDWR);
    if !is_written || flags.contains(OFlag::O_PATH) {
        return Err(Errno::EBADF);
    }
    let kind = SFlag::from_bits_truncate(fstat(&error)?.st_mode) & SFlag::S_IFMT;
    let is_local = || {
        let address = getsockname::<SockaddrStorage>(error.as_raw_fd()).ok();
        address.is_some_and(|address| address.family() == Some(AddressFamily::Unix))
    };
    // This process would end by the signal of a limit to files.
    let is_unlimited =
        || getrlimit(Resource::RLIMIT_FSIZE).is_ok_and(|(soft, _)| soft == RLIM_INFINITY);
    if kind == SFlag::S_IFSOCK && is_local() {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        send(error.as_raw_fd(), line, flags).map(drop)
    } else if kind == SFlag::S_IFREG && is_plain(&error)? && is_unlimited() {
        // Its place in the file is the caller's.
        write(&error, line).map(drop)
    } else if kind == SFlag::S_IFIFO || is_foreign_terminal(&error) {
        // Opened anew, so that it waits for no reader; the caller's own descriptor stays as it is.
        let path = format!("/proc/self/fd/{}", error.as_raw_fd());
        let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let opened = open(path.as_str(), flags, Mode::empty())?;
        if kind != SFlag::S_IFIFO && !is_foreign_terminal(&opened) {
            return Err(Errno::ENOTSUP);
        }
        write(opened, line).map(drop)
    } else {
        Err(Errno::ENOTSUP)
    }
}

fn is_plain(file: &OwnedFd) -> Result<bool, Errno> {
    Ok(PLAIN.contains(&fstatfs(file)?.filesystem_type()))
}

/// Whether this is a terminal by its own name, and of another session: one's own could stop this process for writing to it.
fn is_foreign_terminal(file: &OwnedFd) -> bool {
    let is_named = fstat(file).is_ok_and(|found| TERMINALS.contains(&major(found.st_rdev)));
    is_named && isatty(file).unwrap_or(false) && tcgetsid(file).ok() != getsid(None).ok()
}
