//! Safe wrappers for system calls that no crate wraps.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::thread::JoinHandleExt;
use std::path::Path;
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::{Gid, Uid, geteuid, setfsgid, setfsuid};

use super::identity::Identity;

/// This thread's borrowed rights to files, until dropped.
pub(super) struct Borrowed {
    user: Uid,
    group: Gid,
    groups: Vec<u32>,
}

/// Takes on the file rights of an identity, on this thread only. Only for the superuser.
pub(super) fn borrow_rights(identity: &Identity) -> Result<Borrowed, Errno> {
    let groups = nix::unistd::getgroups()?.into_iter().map(Gid::as_raw).collect();
    set_groups(&identity.groups)?;
    Ok(Borrowed {
        group: setfsgid(Gid::from_raw(identity.group)),
        user: setfsuid(Uid::from_raw(identity.user)),
        groups,
    })
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        setfsuid(self.user);
        setfsgid(self.group);
        let _ = set_groups(&self.groups);
    }
}

/// Runs `act` with our own file rights, even if this thread has borrowed others.
pub(super) fn with_own_rights<T>(act: impl FnOnce() -> T) -> T {
    if !geteuid().is_root() {
        return act();
    }
    let user = setfsuid(geteuid());
    let done = act();
    setfsuid(user);
    done
}

/// Whether a thread is the first of its process, whose number is the process's.
pub(super) fn is_process(thread: i32) -> bool {
    // SAFETY: signal 0 is only checked, and no pointer is passed.
    unsafe { libc::syscall(libc::SYS_tgkill, thread, thread, 0) == 0 }
}

/// The raw call, since the C library's wrapper changes all threads.
fn set_groups(groups: &[u32]) -> Result<(), Errno> {
    // SAFETY: the pointer is valid for reading `groups.len()` ids for the length of the call.
    let done = unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
    Errno::result(done).map(drop)
}

pub(super) fn set_attribute(
    path: &str,
    name: &CString,
    value: &[u8],
    flags: i32,
) -> Result<(), Errno> {
    let path = CString::new(path).map_err(|_| Errno::EINVAL)?;
    // SAFETY: both strings end in NUL, and `value` is valid for reading its length.
    let done = unsafe {
        libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), flags)
    };
    Errno::result(done).map(drop)
}

pub(super) fn remove_attribute(path: &str, name: &CString) -> Result<(), Errno> {
    let path = CString::new(path).map_err(|_| Errno::EINVAL)?;
    // SAFETY: both strings end in NUL.
    Errno::result(unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) }).map(drop)
}

/// Identifies a file and the mount through which it was reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Standing {
    pub(super) mount: u64,
    device: (u32, u32),
    inode: u64,
}

/// The inode and mount of a descriptor.
pub(super) fn standing(handle: impl AsFd) -> Result<Standing, Errno> {
    stand(handle.as_fd().as_raw_fd(), c"", libc::AT_EMPTY_PATH)
}

/// The inode and mount at a path; a link at its end is followed.
pub(super) fn standing_at(path: &Path) -> Result<Standing, Errno> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)?;
    stand(libc::AT_FDCWD, &path, 0)
}

fn stand(folder: RawFd, path: &CStr, flags: libc::c_int) -> Result<Standing, Errno> {
    let mask = libc::STATX_INO | libc::STATX_MNT_ID;
    let flags = flags | libc::AT_STATX_DONT_SYNC | libc::AT_NO_AUTOMOUNT;
    // SAFETY: zeroes are a valid value; `path` ends in NUL, and the call writes the structure that it
    // is defined with.
    let found = unsafe {
        let mut found: libc::statx = std::mem::zeroed();
        let done = libc::statx(folder, path.as_ptr(), flags, mask, &raw mut found);
        Errno::result(done)?;
        found
    };
    // Every kernel with Landlock reports it.
    if found.stx_mask & libc::STATX_MNT_ID == 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let device = (found.stx_dev_major, found.stx_dev_minor);
    Ok(Standing { mount: found.stx_mnt_id, device, inode: found.stx_ino })
}

/// Duplicates a descriptor of another thread. Linux before 6.9 knows only the descriptors of a
/// process, which nearly all its threads share; `process` is the thread's process.
pub(super) fn descriptor_of(
    thread: i32,
    process: impl FnOnce() -> Result<u32, Errno>,
    number: i32,
) -> Result<OwnedFd, Errno> {
    let holder = match handle_of(thread, libc::PIDFD_THREAD) {
        Err(Errno::EINVAL) => handle_of(process()?.cast_signed(), 0)?,
        handle => handle?,
    };
    // SAFETY: the call takes numbers only, and a descriptor that it returns is new.
    unsafe {
        let copy = libc::syscall(libc::SYS_pidfd_getfd, holder.as_raw_fd(), number, 0);
        Ok(OwnedFd::from_raw_fd(descriptor(Errno::result(copy)?)?))
    }
}

/// A pidfd of a process or of one thread.
fn handle_of(id: i32, flags: libc::c_uint) -> Result<OwnedFd, Errno> {
    // SAFETY: the call takes numbers only, and a descriptor that it returns is new.
    unsafe {
        let handle = Errno::result(libc::syscall(libc::SYS_pidfd_open, id, flags))?;
        Ok(OwnedFd::from_raw_fd(descriptor(handle)?))
    }
}

/// The filesystem user and group of a thread, which Linux reports since 6.13.
pub(super) fn file_rights(thread: i32) -> Result<(u32, u32), Errno> {
    let thread = handle_of(thread, libc::PIDFD_THREAD)?;
    // SAFETY: zeroes are a valid value; the request writes the structure that it is defined with.
    unsafe {
        let mut info: libc::pidfd_info = std::mem::zeroed();
        let done = libc::ioctl(thread.as_raw_fd(), libc::PIDFD_GET_INFO, &raw mut info);
        Errno::result(done)?;
        Ok((info.fsuid, info.fsgid))
    }
}

/// Connects a socket to an address that was copied from its owner.
pub(super) fn connect(socket: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: `address` is valid for reading its length; the kernel takes it for bytes.
    let done = unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) };
    Errno::result(done).map(drop)
}

/// Interrupts a blocking call of one of our threads. Not sent otherwise.
const INTERRUPT: Signal = Signal::SIGURG;

/// Installs the handler that lets blocking calls be interrupted.
pub(super) fn may_be_interrupted() -> Result<(), Errno> {
    extern "C" fn nothing(_: libc::c_int) {}
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler does nothing, and takes the place of the default, which does nothing.
    unsafe { sigaction(INTERRUPT, &action) }.map(drop)
}

/// Interrupts the blocking call of a thread, if any.
pub(super) fn interrupt(thread: &JoinHandle<()>) {
    // SAFETY: the thread's id is valid as long as it was not joined or detached.
    unsafe { libc::pthread_kill(thread.as_pthread_t(), INTERRUPT as libc::c_int) };
}

/// The number of the terminal with this upper end.
pub(super) fn terminal_number(upper: &OwnedFd) -> Result<u32, Errno> {
    let mut number: libc::c_uint = 0;
    // SAFETY: the request writes one number.
    let done = unsafe { libc::ioctl(upper.as_raw_fd(), libc::TIOCGPTN, &raw mut number) };
    Errno::result(done).map(|_| number)
}

fn descriptor(number: libc::c_long) -> Result<i32, Errno> {
    i32::try_from(number).map_err(|_| Errno::EBADF)
}
