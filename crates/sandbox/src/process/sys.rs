//! Safe wrappers of the system calls that need `unsafe`.

#![allow(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigHandler, Signal};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

use super::{Exit, descriptors, oom};
use crate::confine::Entrance;

/// The child's standard input, output and error.
pub(super) type ChildEnds = [OwnedFd; 3];

/// Closes all inherited descriptors except the standard ones. Only for a process that has just
/// started, before it opens any.
pub(super) fn close_inherited() -> io::Result<()> {
    let mut inherited: Vec<RawFd> = Vec::new();
    for entry in std::fs::read_dir("/dev/fd")? {
        inherited.extend(entry?.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()));
    }
    for fd in inherited.into_iter().filter(|&fd| fd > 2) {
        // SAFETY: nothing in this process owns a descriptor yet, by this function's contract;
        // that of the listing itself is closed already, and closing it again only fails.
        unsafe { libc::close(fd) };
    }
    Ok(())
}

/// Sends `head` together with descriptors, which the receiver gets duplicates of.
pub(super) fn send_with(
    socket: impl AsFd,
    head: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let fds: Vec<_> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&fds)];
    let head = [IoSlice::new(head)];
    sendmsg::<()>(socket.as_fd().as_raw_fd(), &head, &rights, MsgFlags::empty(), None)?;
    Ok(())
}

/// Receives bytes and the descriptors that [`send_with`] sent with them; returns the byte count.
pub(super) fn receive_with(
    socket: impl AsFd,
    head: &mut [u8],
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = nix::cmsg_space!([RawFd; DESCRIPTORS_MAX]);
    let mut head = [IoSliceMut::new(head)];
    let fd = socket.as_fd().as_raw_fd();
    let message = recvmsg::<()>(fd, &mut head, Some(&mut space), CLOSE_ON_EXEC)?;
    let mut received = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(fds) = control {
            // SAFETY: the kernel has just made these descriptors for this process.
            received.extend(fds.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    // A clone has the close-on-exec flag, which some systems can't set on receipt.
    if CLOSE_ON_EXEC.is_empty() {
        received = received.iter().map(OwnedFd::try_clone).collect::<io::Result<_>>()?;
    }
    Ok((message.bytes, received))
}

/// Three standard descriptors, and the ruleset of a confined command.
const DESCRIPTORS_MAX: usize = 4;

#[cfg(target_os = "linux")]
const CLOSE_ON_EXEC: MsgFlags = MsgFlags::MSG_CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const CLOSE_ON_EXEC: MsgFlags = MsgFlags::empty();

/// Makes the child confine itself, as the last step before exec, and report it over `socket`.
pub(super) fn confine_child(
    command: &mut std::process::Command,
    entrance: Entrance,
    socket: UnixStream,
) {
    // SAFETY: the closure only calls `enter`, which is safe between fork and exec.
    unsafe { command.pre_exec(move || Ok(entrance.enter(socket.as_fd())?)) };
}

/// Makes the child die with this thread, and start with default signal handlers, an OOM score and
/// the given limit of descriptors.
pub(super) fn guard_child(command: &mut std::process::Command, limit: Option<u64>) {
    let warden = nix::unistd::getpid();
    let oom_score = oom::score_of_command();
    let between_fork_and_exec = move || {
        for signal in 1..=64 {
            // SAFETY: `signal` is async-signal-safe and SIG_DFL a valid disposition. Numbers that
            // are no signal, or can't be changed, only fail.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        if let Some(limit) = limit {
            descriptors::set(limit)?;
        }
        if let Some(score) = &oom_score {
            oom::set(score);
        }
        #[cfg(target_os = "linux")]
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        // A warden that died before the line above sends no signal.
        if nix::unistd::getppid() != warden {
            return Err(Errno::ESRCH.into());
        }
        Ok(())
    };
    // SAFETY: the closure only makes async-signal-safe system calls, and allocates nothing.
    unsafe { command.pre_exec(between_fork_and_exec) };
}

/// Makes the calling thread not preempt others when it wakes.
pub(super) fn run_in_batches() {
    #[cfg(target_os = "linux")]
    {
        let no_priority = libc::sched_param { sched_priority: 0 };
        // SAFETY: the parameter is valid for reading for the length of the call. A sandbox may
        // forbid the call; the error is ignored.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const no_priority) };
    }
}

/// Whether two processes share their memory; false if unknown.
#[cfg(target_os = "linux")]
pub(super) fn share_memory(one: i32, other: i32) -> bool {
    const KCMP_VM: libc::c_long = 1;
    // SAFETY: the call takes numbers, and reads and writes no memory of this process.
    unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0, 0) == 0 }
}

/// Ignores a signal, or resets it to its default.
pub(super) fn set_handler(signal: Signal, handler: SigHandler) -> io::Result<()> {
    // SAFETY: no code of this process runs as a handler; callers pass no function.
    unsafe { nix::sys::signal::signal(signal, handler) }?;
    Ok(())
}

/// Reaps one child that has ended: `pid`, or any for -1. None if no child has ended; ECHILD without
/// children. (nix's wrapper loses a child killed by a realtime signal.)
pub(super) fn reap(pid: i32) -> Result<Option<(i32, Exit)>, Errno> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is valid for writing for the length of the call.
        let reaped = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        match Errno::result(reaped) {
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
            Ok(0) => return Ok(None),
            Ok(pid) if libc::WIFSIGNALED(status) => {
                return Ok(Some((pid, Exit::Signal(libc::WTERMSIG(status)))));
            }
            Ok(pid) => return Ok(Some((pid, Exit::Code(libc::WEXITSTATUS(status))))),
        }
    }
}
