//! Confines a child process between fork and exec, and reports the result to its parent.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};

use super::{SetupStep, filter};

/// Capabilities that programs in a zone need: for files, which the wall and the doorbell protect,
/// for their own processes, and for low ports. All others, of this kernel and later ones, would get
/// around the wall, read the traffic of others, or change the machine. An ordinary user has none.
const KEPT: &[u32] = &[
    0,  // CAP_CHOWN
    1,  // CAP_DAC_OVERRIDE
    3,  // CAP_FOWNER
    5,  // CAP_KILL
    6,  // CAP_SETGID
    7,  // CAP_SETUID
    10, // CAP_NET_BIND_SERVICE
];

/// More than any kernel has.
const RIGHTS_MAX: u32 = 64;

/// The means of a child to confine itself, prepared before the fork.
#[derive(Debug)]
pub struct Entrance {
    ruleset: OwnedFd,
    canary: CString,
    program: Vec<libc::sock_filter>,
}

impl Entrance {
    /// Prepares to enter `ruleset`. `canary` is a file outside of all its grants.
    pub fn new(ruleset: OwnedFd, canary: &Path) -> Result<Self, (SetupStep, Errno)> {
        let canary = CString::new(canary.as_os_str().as_bytes());
        let canary = canary.map_err(|_| (SetupStep::Bait, Errno::EINVAL))?;
        let native = filter::NATIVE.ok_or((SetupStep::Doorbell, Errno::ENOSYS))?;
        let entrance = Self { ruleset, canary, program: filter::program(native) };
        // Otherwise a failure behind the wall would prove nothing.
        for access in CANARY {
            entrance.open_canary(access).map_err(|errno| (SetupStep::Bait, errno))?;
        }
        Ok(entrance)
    }

    /// Confines this single-threaded process and its descendants; over `socket` it reports the step
    /// that failed, or sends the listener. From then on most of its file operations wait for
    /// answers.
    ///
    /// For a child between fork and exec: async-signal-safe, and allocates nothing.
    pub fn enter(&self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        let socket = socket.as_raw_fd();
        self.try_to_enter(socket).map_err(|(step, errno)| {
            let [a, b, c, d] = (errno as i32).to_le_bytes();
            // A parent that misses the report sees the socket closed.
            let _ = send(socket, [step.code(), a, b, c, d], None);
            errno
        })
    }

    fn try_to_enter(&self, socket: RawFd) -> Result<(), (SetupStep, Errno)> {
        give_up_rights().map_err(|errno| (SetupStep::Rights, errno))?;
        self.enter_wall().map_err(|errno| (SetupStep::Wall, errno))?;
        for access in CANARY {
            match self.open_canary(access) {
                Err(Errno::EACCES) => {}
                Err(errno) => return Err((SetupStep::Canary, errno)),
                Ok(()) => return Err((SetupStep::Canary, Errno::UnknownErrno)),
            }
        }
        let listener = self.enter_filter().map_err(|errno| (SetupStep::Doorbell, errno))?;
        let sent = send(socket, [LISTENER, 0, 0, 0, 0], Some(listener));
        // It is close-on-exec, too: a remaining copy would keep callers waiting.
        unsafe { libc::close(listener) };
        sent.map_err(|errno| (SetupStep::Doorbell, errno))
    }

    fn enter_wall(&self) -> Result<(), Errno> {
        let ruleset = self.ruleset.as_raw_fd();
        // SAFETY: the call takes a descriptor and flags by value.
        let entered = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) };
        Errno::result(entered).map(drop)
    }

    fn open_canary(&self, access: libc::c_int) -> Result<(), Errno> {
        open_and_close(&self.canary, access)
    }

    fn enter_filter(&self) -> Result<RawFd, Errno> {
        #[expect(clippy::cast_possible_truncation, reason = "programs have 4096 steps at most")]
        let length = self.program.len() as libc::c_ushort;
        let program = libc::sock_fprog { len: length, filter: self.program.as_ptr().cast_mut() };
        let enter = |flags: libc::c_ulong| {
            let mode = libc::SECCOMP_SET_MODE_FILTER;
            // SAFETY: `program` points to `length` steps, which live as long as `self`.
            let listener =
                unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) };
            #[expect(clippy::cast_possible_truncation, reason = "descriptors are ints")]
            Errno::result(listener).map(|listener| listener as RawFd)
        };
        let listen = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        // Kernels before 5.19 lack it: any signal then restarts a waiting call.
        match enter(listen | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
            Err(Errno::EINVAL) => enter(listen),
            entered => entered,
        }
    }
}

/// The ways in which opening the canary is tried.
const CANARY: [libc::c_int; 2] = [libc::O_WRONLY, libc::O_RDONLY];

/// Drops the capabilities that would get around a wall, for this process and its descendants.
fn give_up_rights() -> Result<(), Errno> {
    for right in (0..RIGHTS_MAX).filter(|right| !KEPT.contains(right)) {
        // SAFETY: the call takes numbers. Without the right to drop rights there are none to drop;
        // a number that this kernel does not know fails as well.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, right, 0, 0, 0) };
    }
    drop_own_rights()?;
    nix::sys::prctl::set_no_new_privs()
}

/// Inheritable capabilities would survive the bounding set.
fn drop_own_rights() -> Result<(), Errno> {
    const VERSION_3: u32 = 0x2008_0522;
    #[repr(C)]
    struct Header {
        version: u32,
        pid: libc::c_int,
    }
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Rights {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut rights = [Rights { effective: 0, permitted: 0, inheritable: 0 }; 2];
    // SAFETY: version 3 has two sets of rights; both pointers are valid for the calls' length.
    Errno::result(unsafe {
        libc::syscall(libc::SYS_capget, &raw mut header, rights.as_mut_ptr())
    })?;
    for (word, rights) in (0..).zip(&mut rights) {
        let mut kept = 0;
        for right in KEPT.iter().filter(|&right| right / 32 == word) {
            kept |= 1 << (right % 32);
        }
        rights.effective &= kept;
        rights.permitted &= kept;
        rights.inheritable &= kept;
    }
    // SAFETY: as above.
    let set = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, rights.as_ptr()) };
    Errno::result(set).map(drop)
}

fn open_and_close(path: &CStr, access: libc::c_int) -> Result<(), Errno> {
    let flags = access | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: `path` ends in NUL, and the descriptor is this function's own.
    unsafe {
        let fd = Errno::result(libc::open(path.as_ptr(), flags))?;
        libc::close(fd);
    }
    Ok(())
}

/// The size of a child's report: a step and an error number.
const REPORT: usize = 5;

/// In the place of a step: the report carries the listener.
const LISTENER: u8 = b'L';

/// Sends a report, with a descriptor if there is one, from buffers on the stack.
fn send(socket: RawFd, report: [u8; REPORT], fd: Option<RawFd>) -> Result<(), Errno> {
    #[repr(C)]
    struct Control {
        header: libc::cmsghdr,
        fd: RawFd,
    }
    let mut data = libc::iovec { iov_base: report.as_ptr().cast_mut().cast(), iov_len: REPORT };
    // SAFETY: zeroes are valid in both; their fields are set below.
    let (mut control, mut message): (Control, libc::msghdr) = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut data;
    message.msg_iovlen = 1;
    if let Some(fd) = fd {
        control.header.cmsg_level = libc::SOL_SOCKET;
        control.header.cmsg_type = libc::SCM_RIGHTS;
        control.fd = fd;
        // C libraries differ in the types of both lengths.
        #[allow(clippy::useless_conversion, clippy::cast_possible_truncation)]
        {
            // SAFETY: it only adds numbers up.
            let length = unsafe { libc::CMSG_LEN(size_of::<RawFd>() as libc::c_uint) };
            control.header.cmsg_len = length.try_into().unwrap_or_default();
            message.msg_controllen = size_of::<Control>().try_into().unwrap_or_default();
        }
        message.msg_control = (&raw mut control).cast();
    }
    // SAFETY: the message points to data that lives until the call is over.
    let sent = unsafe { libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) };
    Errno::result(sent).map(drop)
}

/// Receives what [`Entrance::enter`] sent: the listener, or the step that failed. None if the other
/// end was closed before.
pub fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<Result<OwnedFd, (SetupStep, Errno)>>> {
    let (mut report, mut space) = ([0; REPORT], nix::cmsg_space!(RawFd));
    let mut data = [IoSliceMut::new(&mut report)];
    let (socket, flags) = (socket.as_raw_fd(), MsgFlags::MSG_CMSG_CLOEXEC);
    let message = recvmsg::<()>(socket, &mut data, Some(&mut space), flags)?;
    let mut listener = None;
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(fds) = control {
            // SAFETY: the kernel has just made these descriptors for this process.
            let mut fds = fds.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
            listener = fds.next();
        }
    }
    if message.bytes == 0 {
        return Ok(None);
    }
    let [step, errno @ ..] = report;
    match (listener, SetupStep::from_code(step)) {
        (Some(listener), _) => Ok(Some(Ok(listener))),
        (None, Some(step)) => {
            let errno = Errno::from_raw(i32::from_le_bytes(errno));
            Ok(Some(Err((step, errno))))
        }
        (None, None) => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use super::*;
    use crate::confine::ruleset::Ruleset;
    use crate::zone::{Grant, Rule};

    /// Starts a command that confines itself; `canary` is the file by which its wall is tried.
    fn start(rules: &[Rule], canary: &Path) -> (io::Result<Child>, UnixStream) {
        let ruleset = Ruleset::new(rules).unwrap().fd().try_clone_to_owned().unwrap();
        let entrance = Entrance::new(ruleset, canary).unwrap();
        let (ours, childs) = UnixStream::pair().unwrap();
        let mut command = Command::new("cat");
        command.arg("/etc/passwd").stdout(std::process::Stdio::null());
        // SAFETY: it is made for this.
        unsafe { command.pre_exec(move || Ok(entrance.enter(childs.as_fd())?)) };
        (command.spawn(), ours)
    }

    fn outside() -> tempfile::NamedTempFile {
        tempfile::NamedTempFile::new().unwrap()
    }

    #[test]
    fn calls_that_nobody_will_answer_fail() {
        let canary = outside();
        let rules = ["/usr", "/bin", "/lib", "/lib64", "/etc"]
            .map(|path| Rule { path: Path::new(path).canonicalize().unwrap(), grant: Grant::Read });
        let (child, socket) = start(&rules, canary.path());
        let listener = receive(socket.as_fd()).unwrap().unwrap().unwrap();
        let mut child = child.unwrap();
        // Its loader has rung, or is about to.
        drop(listener);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_wall_that_does_not_hold_ends_the_start() {
        let canary = outside();
        let all = [Rule { path: "/".into(), grant: Grant::Whole }];
        let (child, socket) = start(&all, canary.path());
        assert!(child.is_err());
        let refused = receive(socket.as_fd()).unwrap().unwrap().unwrap_err();
        assert_eq!(refused, (SetupStep::Canary, Errno::UnknownErrno));
        assert!(receive(socket.as_fd()).unwrap().is_none());
    }

    #[test]
    fn what_is_not_there_tries_no_wall() {
        let ruleset = Ruleset::new(&[]).unwrap().fd().try_clone_to_owned().unwrap();
        let refused = Entrance::new(ruleset, Path::new("/nonexistent/canary")).unwrap_err();
        assert_eq!(refused, (SetupStep::Bait, Errno::ENOENT));
    }
}
