//! One call that waits in the kernel: what it asks for, whether the bounds allow that, and how it
//! is done.

mod attributes;
mod connect;
mod drafts;
mod names;
mod open;

use std::cell::OnceCell;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::libc;
use nix::unistd::{getegid, geteuid};

use super::Confinement;
use super::caller::Caller;
use super::identity::Identity;
use super::raw;
use super::resolve::{PathArg, Resolved, Slot};
use crate::model::{Action, wire_real};
use crate::zone::{Bounds, Denied, Grant};

/// What becomes of a call.
pub(super) enum SyscallReply {
    /// The kernel does it as the caller asks: the wall holds, whatever the caller asks by then.
    Continue,
    /// It was done here.
    Done,
    AddFd {
        file: OwnedFd,
        close_on_exec: bool,
    },
    /// It may take its time: it is done on a thread of its own, which is interrupted when nobody
    /// waits for it any more.
    Later(Later),
}

/// What is done on a thread of its own; what comes of it is not another.
pub(super) type Later = Box<dyn FnOnce() -> Result<SyscallReply, Errno> + Send>;

/// Why a call is not done.
pub(super) enum Stop {
    Fails(Errno),
    /// It needs an access outside the bounds.
    Outside {
        denied: Denied,
        real: PathBuf,
        /// The caller's word for it.
        spoken: PathBuf,
        /// It is to be made, and its name does not say of which file it is a draft.
        draft: bool,
    },
    /// It is to be done with other rights than ours, all of it.
    Rights(Identity),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Fails(errno)
    }
}

pub(super) type SyscallResult<T> = Result<T, Stop>;

pub(super) struct Syscall<'a> {
    caller: Caller<'a>,
    bounds: Arc<Bounds>,
    confinement: &'a Confinement,
    /// What was let through for this call.
    granted: &'a [Denied],
    /// The rights of this thread are the caller's.
    has_rights: bool,
    identity: OnceCell<Identity>,
}

const MACHINE: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A relative path's start where a call has no descriptor for it.
const HERE: u64 = libc::AT_FDCWD.cast_unsigned() as u64;

impl<'a> Syscall<'a> {
    pub(super) fn new(
        caller: Caller<'a>,
        confinement: &'a Confinement,
        granted: &'a [Denied],
    ) -> Self {
        let bounds = confinement.keeper().bounds();
        Self { caller, bounds, confinement, granted, has_rights: false, identity: OnceCell::new() }
    }

    /// Does the call, or says why not. It may be tried again with more granted.
    pub(super) fn handle(&mut self) -> SyscallResult<SyscallReply> {
        match self.dispatch() {
            Err(Stop::Rights(identity)) => {
                let rights = raw::borrow_rights(&identity)?;
                self.has_rights = true;
                let done = self.dispatch();
                drop(rights);
                done
            }
            done => done,
        }
    }

    #[expect(clippy::many_single_char_names, reason = "registers have no better names")]
    fn dispatch(&self) -> SyscallResult<SyscallReply> {
        let [a, b, c, d, e, _] = self.caller.notice.args;
        match self.caller.notice.call {
            libc::SYS_openat => self.open(&self.path_arg(a, b)?, c, d),
            libc::SYS_openat2 => self.open_how(&self.path_arg(a, b)?, c, d),
            libc::SYS_mkdirat => self.make_folder(&self.path_arg(a, b)?, c),
            libc::SYS_mknodat => self.make_node(&self.path_arg(a, b)?, c, d),
            libc::SYS_symlinkat => self.make_link(a, &self.path_arg(b, c)?),
            libc::SYS_linkat => self.link(a, b, &self.path_arg(c, d)?, e),
            libc::SYS_unlinkat => self.remove(&self.path_arg(a, b)?, c),
            libc::SYS_renameat => self.rename(&self.path_arg(a, b)?, &self.path_arg(c, d)?, 0),
            libc::SYS_renameat2 => self.rename(&self.path_arg(a, b)?, &self.path_arg(c, d)?, e),
            libc::SYS_connect => self.connect(a, b, c),
            libc::SYS_bind => self.bind(a, b, c),
            _ => self.handle_attributes().unwrap_or_else(|| self.handle_old()),
        }
    }

    /// Calls that newer architectures do without.
    #[cfg(target_arch = "x86_64")]
    fn handle_old(&self) -> SyscallResult<SyscallReply> {
        const CREATE: u64 = (libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC).cast_unsigned() as u64;
        const FOLDER: u64 = libc::AT_REMOVEDIR.cast_unsigned() as u64;
        let [a, b, c, ..] = self.caller.notice.args;
        match self.caller.notice.call {
            libc::SYS_open => self.open(&self.path_arg(HERE, a)?, b, c),
            libc::SYS_creat => self.open(&self.path_arg(HERE, a)?, CREATE, b),
            libc::SYS_mkdir => self.make_folder(&self.path_arg(HERE, a)?, b),
            libc::SYS_mknod => self.make_node(&self.path_arg(HERE, a)?, b, c),
            libc::SYS_symlink => self.make_link(a, &self.path_arg(HERE, b)?),
            libc::SYS_link => self.link(HERE, a, &self.path_arg(HERE, b)?, 0),
            libc::SYS_unlink => self.remove(&self.path_arg(HERE, a)?, 0),
            libc::SYS_rmdir => self.remove(&self.path_arg(HERE, a)?, FOLDER),
            libc::SYS_rename => self.rename(&self.path_arg(HERE, a)?, &self.path_arg(HERE, b)?, 0),
            _ => Err(Errno::ENOSYS.into()),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn handle_old(&self) -> SyscallResult<SyscallReply> {
        Err(Errno::ENOSYS.into())
    }

    fn path_arg(&self, folder: u64, path: u64) -> Result<PathArg, Errno> {
        Ok(PathArg { folder, path: self.caller.path(path)? })
    }

    /// Demands an access to what is at a real path.
    fn demand(&self, real: &Path, action: Action, spoken: &PathArg) -> SyscallResult<()> {
        let judged = self.bounds.judge(real, action).and_then(|()| {
            let withheld = self.confinement.keeper().withholds(real, action);
            let path = || wire_real(self.bounds.zone().workspace(), real).into();
            if withheld { Err(Denied { path: path(), action, grantable: true }) } else { Ok(()) }
        });
        match judged {
            Err(denied) if self.granted.contains(&denied) => Ok(()),
            // The machine's own, which programs try by habit: nobody's to grant, or to hear of.
            Err(_) if MACHINE.iter().any(|folder| real.starts_with(folder)) => {
                Err(Errno::EACCES.into())
            }
            Err(denied) => {
                let (real, spoken) = (real.to_owned(), spoken.path.clone());
                Err(Stop::Outside { denied, real, spoken, draft: false })
            }
            Ok(()) => Ok(()),
        }
    }

    /// Demands to write what was found, or the draft that it is.
    fn demand_write(&self, found: &Resolved, spoken: &PathArg) -> SyscallResult<()> {
        if self.confinement.drafts().holds(found.identity()) {
            return Ok(());
        }
        self.demand(&found.real, Action::Write, spoken)
    }

    /// Demands to make, replace or remove a name.
    fn demand_name(&self, slot: &Slot, spoken: &PathArg) -> SyscallResult<()> {
        let occupant = slot.occupant().ok();
        if occupant.is_some_and(|found| self.confinement.drafts().holds(found.identity())) {
            return Ok(());
        }
        self.demand(&slot.real(), Action::Write, spoken)
    }

    /// Whether the wall lets names in this folder be made, moved and removed, which it does
    /// nowhere in the workspace.
    fn wall_leaves_names(&self, folder: &Resolved) -> bool {
        self.granted.is_empty()
            && self.confinement.covers(&folder.real, Grant::Whole, folder.identity())
    }

    /// Makes sure that what follows is done with the caller's rights.
    fn take_rights(&self) -> SyscallResult<()> {
        if self.has_rights || !geteuid().is_root() {
            return Ok(());
        }
        let group = getegid().as_raw();
        if self.identity.get().is_none() && self.caller.is_superuser_of(group)? {
            return Ok(());
        }
        let identity = self.identity()?;
        if identity.user == 0 && identity.group == group {
            return Ok(());
        }
        Err(Stop::Rights(identity.clone()))
    }

    fn identity(&self) -> Result<&Identity, Errno> {
        if let Some(identity) = self.identity.get() {
            return Ok(identity);
        }
        let identity = self.caller.identity()?;
        Ok(self.identity.get_or_init(|| identity))
    }

    /// Tells of a file of the workspace that is opened, or comes to its name, by the zone's leave.
    /// What is written as a draft is told of under the name that it is moved to.
    fn passed(&self, real: &Path, action: Action) {
        if self.is_shown(real, action) {
            let workspace = self.bounds.zone().workspace();
            let path = wire_real(workspace, real).into();
            self.confinement.keeper().passed(path, action);
        }
    }

    /// Whether anybody is told of such an access.
    fn is_shown(&self, real: &Path, action: Action) -> bool {
        let is_final = action == Action::Read || !drafts::looks_like_draft(real);
        is_final && self.granted.is_empty() && self.bounds.is_inside(real)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "as the kernel does")]
fn low(register: u64) -> i32 {
    register as i32
}

#[expect(clippy::cast_possible_truncation, reason = "as the kernel does")]
fn low_unsigned(register: u64) -> u32 {
    register as u32
}
