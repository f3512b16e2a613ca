//! The system calls that change the length, mode, owner, times and extended attributes of files.
//! The wall controls few of them, so they are always performed here, outside the workspace too.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, open};
use nix::libc;
use nix::sys::stat::{FchmodatFlags, Mode, SFlag, UtimensatFlags, fchmodat, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid, fchownat, ftruncate};

use super::names::spare_device;
use super::{HERE, Syscall, SyscallReply, SyscallResult, low, low_unsigned};
use crate::confine::FileCall;
use crate::confine::lookup::LookupFlags;
use crate::confine::raw;
use crate::confine::resolve::{PathArg, Resolved};
use crate::model::{Action, SET_ID};
use crate::zone::Grant;

/// The kernel's limit for an extended attribute.
const VALUE_MAX: u64 = 64 * 1024;

/// Attributes that give programs rights, or that belong to the system.
const PRIVILEGED: [&[u8]; 2] = [b"trusted.", b"security."];

/// A file whose attributes a call changes.
struct AttributeTarget {
    found: Resolved,
    arg: PathArg,
}

impl Syscall<'_> {
    /// `None` if it is another kind of call.
    #[expect(clippy::many_single_char_names, reason = "registers have no better names")]
    pub(super) fn handle_attributes(&self) -> Option<SyscallResult<SyscallReply>> {
        let [a, b, c, d, e, _] = self.caller.notice.args;
        Some(match self.caller.notice.call {
            libc::SYS_truncate => self.truncate(a, b),
            libc::SYS_fchmod => self.by_descriptor(a).and_then(|file| self.chmod(&file, b)),
            libc::SYS_fchmodat => self.at(a, b, 0).and_then(|file| self.chmod(&file, c)),
            super::super::syscall_lists::SYS_FCHMODAT2 => {
                self.at(a, b, d).and_then(|file| self.chmod(&file, c))
            }
            libc::SYS_fchown => self.by_descriptor(a).and_then(|file| self.chown(&file, b, c)),
            libc::SYS_fchownat => self.at(a, b, e).and_then(|file| self.chown(&file, c, d)),
            libc::SYS_utimensat => self.utimensat(a, b, c, d),
            libc::SYS_setxattr => self.at(HERE, a, 0).and_then(|file| self.set(&file, b, c, d, e)),
            libc::SYS_lsetxattr => {
                self.at(HERE, a, STAY).and_then(|file| self.set(&file, b, c, d, e))
            }
            libc::SYS_fsetxattr => {
                self.by_descriptor(a).and_then(|file| self.set(&file, b, c, d, e))
            }
            libc::SYS_removexattr => self.at(HERE, a, 0).and_then(|file| self.unset(&file, b)),
            libc::SYS_lremovexattr => self.at(HERE, a, STAY).and_then(|file| self.unset(&file, b)),
            libc::SYS_fremovexattr => self.by_descriptor(a).and_then(|file| self.unset(&file, b)),
            _ => return self.handle_old_attributes(),
        })
    }

    #[cfg(target_arch = "x86_64")]
    fn handle_old_attributes(&self) -> Option<SyscallResult<SyscallReply>> {
        let [a, b, c, ..] = self.caller.notice.args;
        Some(match self.caller.notice.call {
            libc::SYS_chmod => self.at(HERE, a, 0).and_then(|file| self.chmod(&file, b)),
            libc::SYS_chown => self.at(HERE, a, 0).and_then(|file| self.chown(&file, b, c)),
            libc::SYS_lchown => self.at(HERE, a, STAY).and_then(|file| self.chown(&file, b, c)),
            libc::SYS_utime => self.seconds(b).and_then(|times| self.touch_at(HERE, a, times)),
            libc::SYS_utimes => self.micros(b).and_then(|times| self.touch_at(HERE, a, times)),
            libc::SYS_futimesat => self.micros(c).and_then(|times| self.touch_at(a, b, times)),
            _ => return None,
        })
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn handle_old_attributes(&self) -> Option<SyscallResult<SyscallReply>> {
        None
    }

    fn truncate(&self, path: u64, length: u64) -> SyscallResult<SyscallReply> {
        let arg = self.path_arg(HERE, path)?;
        let found = arg.find_present(&self.caller, LookupFlags::FOLLOW)?;
        match found.kind() {
            SFlag::S_IFREG => {}
            SFlag::S_IFDIR => return Err(Errno::EISDIR.into()),
            _ => return Err(Errno::EINVAL.into()),
        }
        self.demand_write(&found, &arg)?;
        self.passed(&found.real, Action::Write);
        self.changes(FileCall::Write(&found.real, &found.stat));
        if self.granted.is_empty()
            && self.confinement.covers(&found.real, Grant::Write, found.identity())
        {
            return Ok(SyscallReply::Continue);
        }
        self.take_rights()?;
        let flags = OFlag::O_WRONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        ftruncate(open(&*found.path(), flags, Mode::empty())?, length.cast_signed())?;
        Ok(SyscallReply::Done)
    }

    fn chmod(&self, file: &AttributeTarget, mode: u64) -> SyscallResult<SyscallReply> {
        self.change(file, |path| {
            if file.found.real.has_root() {
                self.changes(FileCall::Mode(&file.found.real, &file.found.stat));
            }
            let mode = low_unsigned(mode) & 0o7777;
            // Left out as the kernel leaves out a group's: package managers give up at an error.
            let is_file = file.found.kind() == SFlag::S_IFREG;
            let mode = if is_file { mode & !SET_ID } else { mode };
            let mode = Mode::from_bits_truncate(mode);
            fchmodat(AT_FDCWD, path, mode, FchmodatFlags::FollowSymlink)
        })
    }

    fn chown(&self, file: &AttributeTarget, user: u64, group: u64) -> SyscallResult<SyscallReply> {
        let id = |id: u64| Some(low_unsigned(id)).filter(|&id| id != u32::MAX);
        let (user, group) = (id(user).map(Uid::from_raw), id(group).map(Gid::from_raw));
        self.change(file, |path| fchownat(AT_FDCWD, path, user, group, AtFlags::empty()))
    }

    fn set(
        &self,
        file: &AttributeTarget,
        name: u64,
        value: u64,
        size: u64,
        flags: u64,
    ) -> SyscallResult<SyscallReply> {
        if size > VALUE_MAX {
            return Err(Errno::E2BIG.into());
        }
        let name = self.attribute(name)?;
        let size = usize::try_from(size).map_err(|_| Errno::E2BIG)?;
        let value = if size == 0 { Vec::new() } else { self.caller.memory(value, size)? };
        if value.len() != size {
            return Err(Errno::EFAULT.into());
        }
        self.change(file, |path| raw::set_attribute(path, &name, &value, low(flags)))
    }

    fn unset(&self, file: &AttributeTarget, name: u64) -> SyscallResult<SyscallReply> {
        let name = self.attribute(name)?;
        self.change(file, |path| raw::remove_attribute(path, &name))
    }

    fn utimensat(
        &self,
        folder: u64,
        path: u64,
        times: u64,
        flags: u64,
    ) -> SyscallResult<SyscallReply> {
        let times = match times {
            0 => [TimeSpec::UTIME_NOW; 2],
            address => {
                let [a, b, c, d] = self.numbers(address)?;
                [TimeSpec::new(a, b), TimeSpec::new(c, d)]
            }
        };
        if path == 0 {
            return self.touch(&self.by_descriptor(folder)?, times);
        }
        self.touch(&self.at(folder, path, flags)?, times)
    }

    #[cfg(target_arch = "x86_64")]
    fn touch_at(
        &self,
        folder: u64,
        path: u64,
        times: [TimeSpec; 2],
    ) -> SyscallResult<SyscallReply> {
        let file = if path == 0 { self.by_descriptor(folder)? } else { self.at(folder, path, 0)? };
        self.touch(&file, times)
    }

    fn touch(
        &self,
        file: &AttributeTarget,
        [access, change]: [TimeSpec; 2],
    ) -> SyscallResult<SyscallReply> {
        self.change(file, |path| {
            utimensat(AT_FDCWD, path, &access, &change, UtimensatFlags::FollowSymlink)
        })
    }

    /// Seconds, as `utime` takes them.
    #[cfg(target_arch = "x86_64")]
    fn seconds(&self, address: u64) -> SyscallResult<[TimeSpec; 2]> {
        if address == 0 {
            return Ok([TimeSpec::UTIME_NOW; 2]);
        }
        let [access, change] = self.numbers(address)?;
        Ok([TimeSpec::new(access, 0), TimeSpec::new(change, 0)])
    }

    /// Seconds and microseconds, as `utimes` takes them.
    #[cfg(target_arch = "x86_64")]
    fn micros(&self, address: u64) -> SyscallResult<[TimeSpec; 2]> {
        if address == 0 {
            return Ok([TimeSpec::UTIME_NOW; 2]);
        }
        let [a, b, c, d] = self.numbers(address)?;
        let time = |seconds, micros: i64| {
            let nanos = micros.checked_mul(1000).ok_or(Errno::EINVAL)?;
            Ok::<_, Errno>(TimeSpec::new(seconds, nanos))
        };
        Ok([time(a, b)?, time(c, d)?])
    }

    fn numbers<const N: usize>(&self, address: u64) -> Result<[i64; N], Errno> {
        let bytes = self.caller.memory(address, N * 8)?;
        let mut numbers = [0; N];
        for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
            *number = i64::from_ne_bytes(bytes.try_into().map_err(|_| Errno::EFAULT)?);
        }
        if bytes.len() == N * 8 { Ok(numbers) } else { Err(Errno::EFAULT) }
    }

    fn attribute(&self, name: u64) -> Result<CString, Errno> {
        let name = self.caller.path(name)?.into_os_string().into_vec();
        // These need capabilities that the caller dropped and we may still have.
        if PRIVILEGED.iter().any(|space| name.starts_with(space)) {
            return Err(Errno::EPERM);
        }
        CString::new(name).map_err(|_| Errno::EINVAL)
    }

    /// The file of a path; `flags` as in the `…at` calls.
    fn at(&self, folder: u64, path: u64, flags: u64) -> SyscallResult<AttributeTarget> {
        let flags = AtFlags::from_bits_retain(low(flags));
        let lookup = if flags.contains(AtFlags::AT_SYMLINK_NOFOLLOW) {
            LookupFlags::STAY
        } else {
            LookupFlags::FOLLOW
        };
        let arg = self.path_arg(folder, path)?;
        Ok(AttributeTarget { found: self.target(&arg, flags, lookup)?, arg })
    }

    fn by_descriptor(&self, number: u64) -> SyscallResult<AttributeTarget> {
        let handle: OwnedFd = self.caller.descriptor(low(number))?;
        let found = Resolved::new(handle)?;
        let arg = PathArg { folder: HERE, path: found.real.clone() };
        Ok(AttributeTarget { found, arg })
    }

    /// Changes a file through a path that refers to it alone.
    fn change(
        &self,
        file: &AttributeTarget,
        change: impl FnOnce(&str) -> Result<(), Errno>,
    ) -> SyscallResult<SyscallReply> {
        spare_device(&file.found)?;
        // A file in no folder (a pipe, memory) is the caller's own.
        if file.found.real.has_root() {
            self.demand_write(&file.found, &file.arg)?;
        }
        self.take_rights()?;
        change(&file.found.path())?;
        Ok(SyscallReply::Done)
    }
}

const STAY: u64 = libc::AT_SYMLINK_NOFOLLOW.cast_unsigned() as u64;
