//! `connect` and `bind`. Connecting is always performed here, with a copy of the address: the
//! caller could otherwise replace a harmless address with a container engine's socket after the
//! check.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::sys::socket::{self, UnixAddr};
use nix::sys::stat::{Mode, SFlag, umask};
use nix::unistd::{chdir, fchdir};

use super::{HERE, Stop, Syscall, SyscallReply, SyscallResult};
use crate::confine::lookup::LookupFlags;
use crate::confine::raw;
use crate::confine::resolve::{PathArg, Resolved, Slot};
use crate::model::{Action, wire_real};
use crate::zone::{Denied, Grant};

/// The longest address.
const ADDRESS_MAX: u64 = 128;
/// The size of the address family, which every address begins with.
const FAMILY: usize = size_of::<libc::sa_family_t>();

impl Syscall<'_> {
    pub(super) fn connect(
        &self,
        socket: u64,
        address: u64,
        length: u64,
    ) -> SyscallResult<SyscallReply> {
        let address = self.address(address, length)?;
        let (family, rest) = address.split_at(FAMILY);
        let number = super::low(socket);
        if !is_unix(family) {
            let socket = self.socket(number)?;
            return self.connected(socket, address, None);
        }
        let (Some(&first), path) = (rest.first(), until_nul(rest)) else {
            return Err(Errno::EINVAL.into());
        };
        // An abstract name: no path shows its owner.
        if first == 0 {
            return Err(Errno::EACCES.into());
        }
        let arg = PathArg { folder: HERE, path: PathBuf::from(OsStr::from_bytes(path)) };
        let found = arg.find_present(&self.caller, LookupFlags::FOLLOW)?;
        if found.kind() != SFlag::S_IFSOCK {
            return Err(Errno::ECONNREFUSED.into());
        }
        self.demand_socket(&found, &arg)?;
        self.take_rights()?;
        let mut address = family.to_vec();
        address.extend_from_slice(found.path().as_bytes());
        address.push(0);
        self.connected(self.socket(number)?, address, Some(found))
    }

    /// Connects, at once if that cannot block. `found` is kept until then.
    fn connected(
        &self,
        socket: OwnedFd,
        address: Vec<u8>,
        found: Option<Resolved>,
    ) -> SyscallResult<SyscallReply> {
        let flags = OFlag::from_bits_retain(fcntl(&socket, FcntlArg::F_GETFL)?);
        let identity = if self.has_rights { Some(self.identity()?.clone()) } else { None };
        let connect = move || {
            let rights = identity.as_ref().map(raw::borrow_rights).transpose()?;
            let connected = raw::connect(&socket, &address);
            drop((rights, found));
            connected.map(|()| SyscallReply::Done)
        };
        if flags.contains(OFlag::O_NONBLOCK) {
            return Ok(connect()?);
        }
        Ok(SyscallReply::Later(Box::new(connect)))
    }

    /// Binds a socket to a name where no rule of the wall allows one. The socket's address is then
    /// the bare name, since resolving more of the path again could lead elsewhere.
    pub(super) fn bind(
        &self,
        socket: u64,
        address: u64,
        length: u64,
    ) -> SyscallResult<SyscallReply> {
        let address = self.address(address, length)?;
        let (family, rest) = address.split_at(FAMILY);
        // Ports and abstract names lie in no folder.
        if !is_unix(family) || rest.first().is_none_or(|&first| first == 0) {
            return Ok(SyscallReply::Continue);
        }
        let path = PathBuf::from(OsStr::from_bytes(until_nul(rest)));
        let arg = PathArg { folder: HERE, path };
        let Some(slot) = arg.slot(&self.caller)? else { return Err(Errno::EADDRINUSE.into()) };
        if slot.occupant().is_ok() {
            return Err(Errno::EADDRINUSE.into());
        }
        self.demand_name(&slot, &arg)?;
        self.demand_kind(SFlag::S_IFSOCK, &slot, &arg)?;
        let Resolved { real, .. } = &slot.folder;
        let by_rule = self.confinement.covers(real, Grant::Write, slot.folder.identity());
        if self.granted.is_empty() && by_rule {
            return Ok(SyscallReply::Continue);
        }
        self.take_rights()?;
        let (socket, mask) = (self.socket(super::low(socket))?, self.identity()?.umask);
        bind(&socket, &slot, Mode::from_bits_truncate(mask))?;
        Ok(SyscallReply::Done)
    }

    fn address(&self, address: u64, length: u64) -> Result<Vec<u8>, Errno> {
        let length = u64::from(super::low_unsigned(length));
        if length > ADDRESS_MAX || length < FAMILY as u64 {
            return Err(Errno::EINVAL);
        }
        let length = usize::try_from(length).map_err(|_| Errno::EINVAL)?;
        let address = self.caller.memory(address, length)?;
        if address.len() == length { Ok(address) } else { Err(Errno::EFAULT) }
    }

    /// Fails unless the caller may connect to a socket: in the workspace one that it may write,
    /// outside one that is listed.
    fn demand_socket(&self, found: &Resolved, arg: &PathArg) -> SyscallResult<()> {
        self.demand(&found.real, Action::Write, arg)?;
        if self.bounds.is_inside(&found.real)
            || found.real.starts_with(&self.bounds.reach().private)
            || self.bounds.may_connect(&found.real)
        {
            return Ok(());
        }
        let workspace = self.bounds.zone().workspace();
        let path = wire_real(workspace, &found.real).into();
        let denied = Denied { path, action: Action::Write, grantable: true };
        if self.granted.contains(&denied) {
            return Ok(());
        }
        let (real, arg) = (found.real.clone(), arg.path.clone());
        Err(Stop::Outside { denied, real, arg, draft: false })
    }

    fn socket(&self, number: i32) -> Result<OwnedFd, Errno> {
        let process = || Ok(self.identity()?.process);
        let socket = raw::descriptor_of(self.caller.notice.tid, process, number);
        // The ids may have been reused meanwhile.
        if self.caller.listener.waits(self.caller.notice.id) { socket } else { Err(Errno::ESRCH) }
    }
}

/// Binds a socket to a name in the judged folder. This thread has its own working directory and
/// umask.
fn bind(socket: &OwnedFd, slot: &Slot, mask: Mode) -> Result<(), Errno> {
    let address = UnixAddr::new(&*slot.name)?;
    fchdir(&slot.folder.handle)?;
    let own = umask(mask);
    let bound = socket::bind(socket.as_raw_fd(), &address);
    umask(own);
    chdir("/")?;
    bound
}

fn is_unix(family: &[u8]) -> bool {
    libc::sa_family_t::try_from(libc::AF_UNIX).is_ok_and(|unix| *family == unix.to_ne_bytes())
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    &bytes[..end]
}
