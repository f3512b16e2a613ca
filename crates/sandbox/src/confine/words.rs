//! Words for whoever reads the errors of a program: a line on its standard error, beside the error that its call gets.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::libc::STDERR_FILENO;
use nix::sys::socket::{MsgFlags, send};
use nix::sys::stat::{Mode, SFlag, fstat};
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

/// Writes a line to the caller's standard error, if the caller may write there and nothing has to be waited for.
pub(super) fn tell(caller: CallingProcess<'_>, line: &str) {
    if let Err(error) = try_tell(caller, line) {
        tracing::debug!(%error, "a caller is not told");
    }
}

fn try_tell(caller: CallingProcess<'_>, line: &str) -> Result<(), Errno> {
    let process = || caller.identity().map(|identity| identity.process);
    let error = raw::descriptor_of(caller.notice.tid, process, STDERR_FILENO)?;
    let flags = OFlag::from_bits_retain(fcntl(&error, FcntlArg::F_GETFL)?);
    let is_written = matches!(flags & OFlag::O_ACCMODE, OFlag::O_WRONLY | OFlag::O_RDWR);
    if !is_written || flags.contains(OFlag::O_PATH) {
        return Err(Errno::EBADF);
    }
    let line = line.as_bytes();
    let kind = SFlag::from_bits_truncate(fstat(&error)?.st_mode) & SFlag::S_IFMT;
    if kind == SFlag::S_IFSOCK {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        return send(error.as_raw_fd(), line, flags).map(drop);
    }
    if kind == SFlag::S_IFREG && PLAIN.contains(&fstatfs(&error)?.filesystem_type()) {
        // Its place in the file is the caller's.
        return write(&error, line).map(drop);
    }
    if kind == SFlag::S_IFIFO || is_terminal_of_others(&error) {
        // Opened anew, so that it waits for no reader; the caller's own descriptor stays as it is.
        let path = format!("/proc/self/fd/{}", error.as_raw_fd());
        let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        return write(open(path.as_str(), flags, Mode::empty())?, line).map(drop);
    }
    Err(Errno::ENOTSUP)
}

/// Whether this is a terminal, and not the one that could stop this process for writing to it.
fn is_terminal_of_others(file: &OwnedFd) -> bool {
    isatty(file).unwrap_or(false) && tcgetsid(file.as_fd()).ok() != getsid(None).ok()
}
