//! The process that made a call, as `/proc` and its memory show it. Each read ends with a check
//! that the call still waits: only then was it the caller's own data.

use std::ffi::OsString;
use std::fs;
use std::io::{IoSliceMut, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::sys::stat::Mode;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use super::identity::Identity;
use super::listener::{Listener, Notice};
use super::raw;
use crate::model::within;

/// The kernel's limit to a path, with the final NUL.
const PATH_MAX: usize = 4096;
/// Enough for most paths.
const USUAL: usize = 256;
/// The smallest size of a page.
const PAGE: usize = 4096;

/// The kernel's suffix for unlinked files.
pub(super) const DELETED: &str = " (deleted)";

/// Bytes of a process's arguments that are read.
const ARGUMENTS: u64 = 128 * 1024;

#[derive(Clone, Copy)]
pub(super) struct CallingProcess<'a> {
    pub(super) notice: Notice,
    pub(super) listener: &'a Listener,
}

impl CallingProcess<'_> {
    /// The path at an address; the call fails with the error.
    pub(super) fn path(&self, address: u64) -> Result<PathBuf, Errno> {
        let mut text = self.memory(address, USUAL)?;
        let mut end = memchr::memchr(0, &text);
        if end.is_none() {
            text = self.memory(address, PATH_MAX)?;
            end = memchr::memchr(0, &text);
        }
        text.truncate(end.ok_or(Errno::ENAMETOOLONG)?);
        Ok(OsString::from_vec(text).into())
    }

    /// The bytes at an address: `length` of them, or fewer if the memory ends.
    pub(super) fn memory(&self, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let base = usize::try_from(address).map_err(|_| Errno::EFAULT)?;
        let mut bytes = vec![0; length];
        // Page by page, since a partly unmapped piece is not read at all.
        let mut pieces = Vec::with_capacity(length / PAGE + 2);
        let mut at = 0;
        while at < length {
            let start = base.checked_add(at).ok_or(Errno::EFAULT)?;
            let len = (PAGE - start % PAGE).min(length - at);
            pieces.push(RemoteIoVec { base: start, len });
            at += len;
        }
        let mut local = [IoSliceMut::new(&mut bytes)];
        let read = match process_vm_readv(Pid::from_raw(self.notice.tid), &mut local, &pieces) {
            Ok(read) if read > 0 => read,
            Ok(_) | Err(Errno::EFAULT) => return Err(Errno::EFAULT),
            Err(_) => return Err(Errno::EACCES),
        };
        bytes.truncate(read);
        self.confirm(bytes)
    }

    /// Exactly `N` bytes at an address.
    pub(super) fn bytes<const N: usize>(&self, address: u64) -> Result<[u8; N], Errno> {
        self.memory(address, N)?.try_into().map_err(|_| Errno::EFAULT)
    }

    /// The folder that relative paths start from: the working directory, or that of a descriptor.
    pub(super) fn base(&self, descriptor: u64) -> Result<OwnedFd, Errno> {
        let tid = self.notice.tid;
        match descriptor_number(descriptor) {
            libc::AT_FDCWD => self.open(&format!("/proc/{tid}/cwd")),
            number if number < 0 => Err(Errno::EBADF),
            number => self.descriptor(number),
        }
    }

    /// The path of [`CallingProcess::base`]; `None` if it is not certain.
    pub(super) fn base_path(&self, descriptor: u64) -> Result<Option<PathBuf>, Errno> {
        let tid = self.notice.tid;
        let link = match descriptor_number(descriptor) {
            libc::AT_FDCWD => format!("/proc/{tid}/cwd"),
            number => format!("/proc/{tid}/fd/{number}"),
        };
        let Ok(place) = fs::read_link(&link) else { return Ok(None) };
        // In another mount namespace the link may lead elsewhere than here.
        let leads_there = place.has_root()
            && raw::standing_at(Path::new(&link))
                .is_ok_and(|standing| raw::standing_at(&place) == Ok(standing));
        self.confirm(leads_there.then_some(place))
    }

    /// The file of a descriptor.
    pub(super) fn descriptor(&self, number: i32) -> Result<OwnedFd, Errno> {
        let opened = self.open(&format!("/proc/{}/fd/{number}", self.notice.tid));
        opened.map_err(|errno| if errno == Errno::ENOENT { Errno::EBADF } else { errno })
    }

    pub(super) fn identity(&self) -> Result<Identity, Errno> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.notice.tid));
        let status = self.confirm(status.map_err(|_| Errno::EACCES)?)?;
        Identity::parse(&status).ok_or(Errno::EACCES)
    }

    /// Whether the caller has all the superuser's rights to files, in this group; false also if
    /// that is costly to find out.
    pub(super) fn is_superuser_of(&self, group: u32) -> Result<bool, Errno> {
        let rights = raw::file_rights(self.notice.tid);
        self.confirm(rights.is_ok_and(|rights| rights == (0, group)))
    }

    /// Whether the arguments of the caller's process name a path: `real`, or the path as it was
    /// given.
    pub(super) fn names(&self, real: &Path, arg: &Path) -> bool {
        self.argument(|word, path| word == arg || path == real).is_some()
    }

    /// The file beside `real` that the arguments of the caller's process name.
    pub(super) fn names_beside(&self, real: &Path) -> Option<PathBuf> {
        self.argument(|_, path| path.parent() == real.parent() && path.is_file())
    }

    /// The path below `real` that the arguments of the caller's process name.
    pub(super) fn names_below(&self, real: &Path) -> Option<PathBuf> {
        self.argument(|_, path| path != real && within(real, path).is_some())
    }

    /// The path of the first word of the process's arguments that is `wanted`.
    fn argument(&self, wanted: impl Fn(&Path, &Path) -> bool) -> Option<PathBuf> {
        let tid = self.notice.tid;
        let mut text = Vec::new();
        let file = fs::File::open(format!("/proc/{tid}/cmdline")).ok()?;
        file.take(ARGUMENTS).read_to_end(&mut text).ok()?;
        let cwd = fs::read_link(format!("/proc/{tid}/cwd")).unwrap_or_default();
        // The first is the program.
        text.split(|&byte| byte == 0).skip(1).flat_map(words).find_map(|word| {
            let word = Path::new(std::ffi::OsStr::from_bytes(word));
            let path = crate::model::fold(&cwd.join(word));
            wanted(word, &path).then_some(path)
        })
    }

    fn open(&self, path: &str) -> Result<OwnedFd, Errno> {
        let opened = open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty());
        // The process is gone, or may not be inspected.
        let opened =
            opened.map_err(|errno| if errno == Errno::EPERM { Errno::EACCES } else { errno })?;
        self.confirm(opened)
    }

    fn confirm<T>(&self, read: T) -> Result<T, Errno> {
        if self.listener.waits(self.notice.id) { Ok(read) } else { Err(Errno::ESRCH) }
    }
}

/// A descriptor's number in a register.
#[expect(clippy::cast_possible_truncation, reason = "as the kernel does")]
pub(super) fn descriptor_number(register: u64) -> i32 {
    register as i32
}

/// The parts of an argument that may be paths: the words of a shell line, the value of an option.
fn words(argument: &[u8]) -> impl Iterator<Item = &[u8]> {
    let breaks = |byte: &u8| byte.is_ascii_whitespace() || b"'\"=:;|&<>()`,".contains(byte);
    std::iter::once(argument)
        .chain(argument.split(breaks as fn(&u8) -> bool))
        .filter(|word| !word.is_empty())
}
