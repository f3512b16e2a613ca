//! The supervisor's end of a filter: receives stopped calls, and answers them. `seccomp_unotify(2)`
//! is the reference.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::support::receiving_ends;

/// Threads of one listener: a call that none receives may be interrupted by a signal.
const RECEIVERS_MAX: usize = 4;

/// The listener of one filter, shared by all processes under it.
#[derive(Debug)]
pub(super) struct Listener {
    fd: OwnedFd,
    /// Whether receiving fails once no process is left.
    ends: bool,
}

/// A call that waits in the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notice {
    pub(super) id: u64,
    /// The thread that made the call.
    pub(super) tid: i32,
    pub(super) call: libc::c_long,
    pub(super) args: [u64; 6],
}

impl Listener {
    pub(super) fn new(listener: OwnedFd) -> Self {
        // `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP` is left out: it puts handler and caller on one
        // processor, where calls are received later, and so are interrupted more often.
        Self { fd: listener, ends: receiving_ends() }
    }

    /// How many threads may receive at once. Where receiving does not end with the last process, a
    /// second one would never.
    pub(super) fn receivers(&self) -> usize {
        if self.ends { RECEIVERS_MAX } else { 1 }
    }

    /// Waits for the next call; None when no process is left under the filter.
    pub(super) fn receive(&self) -> io::Result<Option<Notice>> {
        loop {
            if !self.ends && self.poll(PollTimeout::NONE) == PollFlags::POLLHUP {
                return Ok(None);
            }
            // SAFETY: zeroes are a valid value, and the kernel asks for them.
            let mut notice: libc::seccomp_notif = unsafe { std::mem::zeroed() };
            match self.control(libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notice) {
                Ok(_) => {}
                Err(Errno::ENOENT) if self.poll(PollTimeout::ZERO) == PollFlags::POLLHUP => {
                    return Ok(None);
                }
                // The caller was killed before its call was received.
                Err(Errno::ENOENT | Errno::EINTR) => continue,
                Err(errno) => return Err(errno.into()),
            }
            return Ok(Some(Notice {
                id: notice.id,
                tid: notice.pid.cast_signed(),
                call: libc::c_long::from(notice.data.nr),
                args: notice.data.args,
            }));
        }
    }

    /// Whether the call still waits. If so, data read from its thread belongs to this call.
    pub(super) fn waits(&self, id: u64) -> bool {
        let mut id = id;
        self.control(libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw mut id).is_ok()
    }

    /// Lets the kernel perform the call, with arguments that the caller may have changed since.
    pub(super) fn continue_syscall(&self, id: u64) {
        self.respond(id, 0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE);
    }

    /// Ends the call: it returns zero, or fails.
    pub(super) fn answer(&self, id: u64, result: Result<(), Errno>) {
        self.respond(id, 0, result.err().map_or(0, |errno| -(errno as i32)), 0);
    }

    /// Ends the call with a descriptor of the caller's own for `file`, which is closed here before the caller goes
    /// on: what anybody has open for writing can't be executed. A signal in between leaves the descriptor with the
    /// caller.
    pub(super) fn add_fd(&self, id: u64, file: OwnedFd, close_on_exec: bool) {
        let mut add = libc::seccomp_notif_addfd {
            id,
            flags: 0,
            srcfd: file.as_raw_fd().cast_unsigned(),
            newfd: 0,
            newfd_flags: if close_on_exec { libc::O_CLOEXEC.cast_unsigned() } else { 0 },
        };
        match self.control(libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw mut add) {
            Ok(fd) => {
                drop(file);
                self.respond(id, fd.into(), 0, 0);
            }
            // The caller is gone, or was interrupted and makes the call again.
            Err(Errno::ENOENT | Errno::EINPROGRESS) => {}
            Err(errno) => self.answer(id, Err(errno)),
        }
    }

    /// `POLLIN`: a call is there. `POLLHUP`: no process is left.
    fn poll(&self, timeout: PollTimeout) -> PollFlags {
        let mut waiting = [PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)];
        while poll(&mut waiting, timeout) == Err(Errno::EINTR) {}
        waiting[0].revents().unwrap_or(PollFlags::empty())
    }

    fn respond(&self, id: u64, val: i64, error: i32, flags: libc::c_ulong) {
        let mut response = libc::seccomp_notif_resp { id, val, error, flags: flag(flags) };
        // An error says that the caller is gone.
        let _ = self.control(libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response);
    }

    fn control<T>(&self, request: libc::Ioctl, argument: *mut T) -> nix::Result<libc::c_int> {
        // SAFETY: each request above is given a pointer to the structure that it is defined with,
        // valid for reading and writing for the length of the call.
        Errno::result(unsafe { libc::ioctl(self.fd.as_raw_fd(), request, argument) })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the flags are the lowest bits")]
fn flag(flag: libc::c_ulong) -> u32 {
    flag as u32
}
