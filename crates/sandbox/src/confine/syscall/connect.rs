//! `connect` and `bind`. Connecting is always performed here, with a copy of the address: the
//! caller could otherwise replace a harmless address with a container engine's socket after the
//! check.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, ResolveFlag, fcntl, open};
use nix::libc;
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, UnixAddr};
use nix::sys::stat::{Mode, SFlag, fstat, umask};
use nix::unistd::{chdir, fchdir};

use super::{HERE, Stop, Syscall, SyscallReply, SyscallResult};
use crate::confine::PathMeaning;
use crate::confine::lookup::{LookupFlags, openat2_path};
use crate::confine::own::is_socket_of_team;
use crate::confine::raw;
use crate::confine::resolve::{PathArg, Resolved, Slot};
use crate::confine::still::still;
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

    /// Binds a socket to a name. In the workspace that is done here, where the socket is noted: by it
    /// the server is known later. Elsewhere it is done here if no rule of the wall allows it.
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
        let is_noted = self.bounds.is_inside(real);
        if self.granted.is_empty() && by_rule && !is_noted {
            return Ok(SyscallReply::Continue);
        }
        self.take_rights()?;
        let (socket, mask) = (self.socket(super::low(socket))?, self.identity()?.umask);
        let mask = Mode::from_bits_truncate(mask);
        if !is_noted {
            bind(&socket, &slot.folder.handle, &slot.name, mask)?;
            return Ok(SyscallReply::Done);
        }
        let room = self.confinement.sockets().reserve()?;
        let base = if arg.path.has_root() { None } else { Some(self.caller.base(HERE)?) };
        let _still = still()?;
        match base_of(base.as_ref(), &arg, &slot) {
            Some(base) => bind(&socket, base, arg.path.as_os_str(), mask)?,
            None => bind(&socket, &slot.folder.handle, &slot.name, mask)?,
        }
        room.take(slot.occupant()?.handle)?;
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

    /// Fails unless the caller may connect to a socket: in the workspace one that it may write and
    /// that a process of the team bound, in its private folder any, elsewhere one that is listed. A
    /// server that the wall does not hold acts for whoever connects.
    fn demand_socket(&self, found: &Resolved, arg: &PathArg) -> SyscallResult<()> {
        self.demand(&found.real, Action::Write, arg)?;
        let is_inside = self.bounds.is_inside(&found.real);
        if self.bounds.may_connect(&found.real) || is_inside && is_socket_of_team(found.identity())
        {
            return Ok(());
        }
        let workspace = self.bounds.zone().workspace();
        let path = wire_real(workspace, &found.real).into();
        let denied = Denied { path, action: Action::Write, grantable: true };
        if self.granted.contains(&denied) {
            return Ok(());
        }
        if is_inside {
            self.demand_server(found)?;
        }
        let (real, arg) = (found.real.clone(), arg.path.clone());
        Err(Stop::Outside { denied, real, arg, meaning: PathMeaning::Itself, to_server: is_inside })
    }

    /// Fails as the caller's `connect` would if nobody has bound the socket. No server notices: none
    /// takes connections of another type, and a datagram socket sees no connection.
    fn demand_server(&self, found: &Resolved) -> SyscallResult<()> {
        self.take_rights()?;
        let flags = SockFlag::SOCK_CLOEXEC;
        let probe = socket::socket(AddressFamily::Unix, SockType::Datagram, flags, None)?;
        match socket::connect(probe.as_raw_fd(), &UnixAddr::new(found.path().as_str())?) {
            Ok(()) | Err(Errno::EPROTOTYPE) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn socket(&self, number: i32) -> Result<OwnedFd, Errno> {
        let process = || Ok(self.identity()?.process);
        let socket = raw::descriptor_of(self.caller.notice.tid, process, number);
        // The ids may have been reused meanwhile.
        if self.caller.listener.waits(self.caller.notice.id) { socket } else { Err(Errno::ESRCH) }
    }
}

/// The folder from which the path as the caller wrote it, without links, leads to the slot; `None` if
/// it does not. To be used while names are still.
fn base_of<'a>(base: Option<&'a OwnedFd>, arg: &PathArg, slot: &Slot) -> Option<&'a OwnedFd> {
    static ROOT: LazyLock<Option<OwnedFd>> =
        LazyLock::new(|| open("/", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).ok());
    let base = base.or(ROOT.as_ref())?;
    let above = match arg.path.parent()? {
        above if above.as_os_str().is_empty() => Path::new("."),
        above => above,
    };
    let lookup = LookupFlags { resolve: ResolveFlag::RESOLVE_NO_SYMLINKS, ..LookupFlags::FOLLOW };
    let folder = fstat(openat2_path(Some(base), above, lookup).ok()?).ok()?;
    let leads_there = (folder.st_dev, folder.st_ino) == slot.folder.identity();
    (leads_there && arg.path.file_name() == Some(slot.name.as_os_str())).then_some(base)
}

/// Binds a socket to a path from a folder. This thread has its own working directory and umask.
fn bind(socket: &OwnedFd, folder: &OwnedFd, path: &OsStr, mask: Mode) -> Result<(), Errno> {
    let address = UnixAddr::new(path)?;
    fchdir(folder)?;
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
