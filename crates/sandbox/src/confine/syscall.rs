//! One stopped system call: its accesses, whether the bounds allow them, and how it is performed.

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

use super::calling_process::CallingProcess;
use super::identity::Identity;
use super::place::Unresolved;
use super::raw;
use super::resolve::{PathArg, Resolved, Slot};
use super::{Confinement, FileCall, PathMeaning};
use crate::model::{Action, SET_ID, is_of_machine, wire_real};
use crate::zone::{Bounds, Denied, Grant};

/// The result of handling a call.
pub(super) enum SyscallReply {
    /// The kernel performs it under the wall, even if the caller has changed the arguments.
    Continue,
    /// The call was performed here.
    Done,
    AddFd {
        file: OwnedFd,
        close_on_exec: bool,
    },
    /// The call may block. A thread of its own performs it, and is interrupted if the caller is gone.
    Later(Later),
}

/// A call that is performed on a thread of its own. It does not return `Later`.
pub(super) type Later = Box<dyn FnOnce() -> Result<SyscallReply, Errno> + Send>;

/// Why a call is not performed.
pub(super) enum Stop {
    Fails(Errno),
    /// The call needs an access outside the bounds.
    Outside {
        denied: Denied,
        real: PathBuf,
        /// The path as the caller gave it.
        arg: PathBuf,
        meaning: PathMeaning,
        /// The call connects to a socket of the zone whose server the zone does not hold.
        to_server: bool,
    },
    /// Its file is not at this path, which its link reports.
    Elsewhere(PathBuf),
    /// The call must be performed with these rights instead of ours.
    Rights(Identity),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Fails(errno)
    }
}

impl From<Unresolved> for Stop {
    fn from(unresolved: Unresolved) -> Self {
        match unresolved {
            Unresolved::Fails(errno) => Self::Fails(errno),
            Unresolved::Elsewhere(link) => Self::Elsewhere(link),
        }
    }
}

pub(super) type SyscallResult<T> = Result<T, Stop>;

pub(super) struct Syscall<'a> {
    caller: CallingProcess<'a>,
    bounds: Arc<Bounds>,
    confinement: &'a Confinement,
    /// The denied accesses that were granted to this call.
    granted: &'a [Denied],
    /// This thread has taken on the caller's rights.
    has_rights: bool,
    identity: OnceCell<Identity>,
}

/// The folder of relative paths for calls without a folder argument.
const HERE: u64 = libc::AT_FDCWD.cast_unsigned() as u64;

impl<'a> Syscall<'a> {
    pub(super) fn new(
        caller: CallingProcess<'a>,
        confinement: &'a Confinement,
        granted: &'a [Denied],
    ) -> Self {
        let bounds = confinement.keeper().bounds();
        Self { caller, bounds, confinement, granted, has_rights: false, identity: OnceCell::new() }
    }

    /// Performs the call, or returns why not. It may be repeated with more granted.
    pub(super) fn handle(&mut self) -> SyscallResult<SyscallReply> {
        let done = match self.dispatch() {
            Err(Stop::Rights(identity)) => {
                let rights = raw::borrow_rights(&identity)?;
                self.has_rights = true;
                let done = self.dispatch();
                drop(rights);
                done
            }
            done => done,
        };
        match done {
            Err(Stop::Elsewhere(link)) => Err(self.refused(link)),
            done => done,
        }
    }

    /// Denies a file without a certain path. No grant opens it, since a grant is for a path.
    fn refused(&self, link: PathBuf) -> Stop {
        let path = wire_real(self.bounds.zone().workspace(), &link).into();
        let args = self.caller.notice.args;
        let reads = match self.caller.notice.call {
            libc::SYS_openat => open::only_reads(args[2]),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => open::only_reads(args[1]),
            _ => false,
        };
        let action = if reads { Action::Read } else { Action::Write };
        let denied = Denied { path, action, grantable: false };
        Stop::Outside {
            denied,
            real: link.clone(),
            arg: link,
            meaning: PathMeaning::Itself,
            to_server: false,
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

    /// Calls that newer architectures lack.
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

    /// Fails unless an access to a real path is allowed.
    fn demand(&self, real: &Path, action: Action, arg: &PathArg) -> SyscallResult<()> {
        let judged = self.bounds.judge(real, action).and_then(|()| {
            let withheld = self.confinement.keeper().withholds(real, action);
            let path = || wire_real(self.bounds.zone().workspace(), real).into();
            if withheld { Err(Denied { path: path(), action, grantable: true }) } else { Ok(()) }
        });
        match judged {
            Err(denied) if self.granted.contains(&denied) => Ok(()),
            // Programs try these system folders by habit: no grant, and no report.
            Err(_) if is_of_machine(self.bounds.zone().workspace(), real) => {
                Err(Errno::EACCES.into())
            }
            Err(denied) => {
                let (real, arg) = (real.to_owned(), arg.path.clone());
                Err(Stop::Outside {
                    denied,
                    real,
                    arg,
                    meaning: PathMeaning::Itself,
                    to_server: false,
                })
            }
            Ok(()) => {
                self.report_use(real, action, arg);
                Ok(())
            }
        }
    }

    /// Reports an allowed access of an agent that is observed. A draft stands for the file that it is of.
    fn report_use(&self, real: &Path, action: Action, arg: &PathArg) {
        let keeper = self.confinement.keeper();
        if !keeper.observes() || !self.bounds.is_inside(real) {
            return;
        }
        if let Some(meant) = drafts::meant_by(real, action) {
            keeper.used(self.process(), &meant, action, &|| self.caller.names(real, &arg.path));
        }
    }

    /// The process that made the call.
    fn process(&self) -> u32 {
        let thread = self.caller.notice.tid;
        if raw::is_process(thread) {
            return thread.cast_unsigned();
        }
        self.identity().map_or(thread.cast_unsigned(), |identity| identity.process)
    }

    /// Fails unless a file may be written, or is a draft.
    fn demand_write(&self, found: &Resolved, arg: &PathArg) -> SyscallResult<()> {
        if self.confinement.drafts().holds(found.identity()) {
            return Ok(());
        }
        self.demand(&found.real, Action::Write, arg)
    }

    /// Fails unless a name may be created, replaced or removed.
    fn demand_name(&self, slot: &Slot, arg: &PathArg) -> SyscallResult<()> {
        let occupant = slot.occupant().ok();
        if occupant.is_some_and(|found| self.confinement.drafts().holds(found.identity())) {
            return Ok(());
        }
        self.demand(&slot.real(), Action::Write, arg)
    }

    /// Whether the wall itself lets names in this folder change. It does so nowhere in the workspace,
    /// nor where a denied pattern may match something below; a wall that is older than the bounds
    /// does not know of all of these.
    fn wall_leaves_names(&self, folder: &Resolved) -> bool {
        self.granted.is_empty()
            && !self.is_read_again()
            && self.confinement.is_of(&self.bounds)
            && self.confinement.covers(&folder.real, Grant::Whole, folder.identity())
    }

    /// Whether the kernel would read more than the path again: flags and mode are in memory, too.
    fn is_read_again(&self) -> bool {
        self.caller.notice.call == libc::SYS_openat2
    }

    /// Makes sure that the rest is performed with the caller's rights.
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

    /// Announces a call that is about to go on and may change files.
    fn changes(&self, call: FileCall<'_>) {
        let process = self.process();
        // What it keeps of the file is the supervisor's.
        raw::with_own_rights(|| self.confinement.keeper().changes(process, call));
    }

    /// Reports an access to a file of the workspace that the zone allows. A draft is reported under
    /// the name to which it is renamed.
    fn passed(&self, real: &Path, action: Action) {
        if self.is_shown(real, action) {
            let workspace = self.bounds.zone().workspace();
            let path = wire_real(workspace, real).into();
            self.confinement.keeper().passed(path, action);
        }
    }

    /// Whether such an access is reported.
    fn is_shown(&self, real: &Path, action: Action) -> bool {
        let is_final = action == Action::Read || !drafts::looks_like_draft(real);
        is_final && self.granted.is_empty() && self.bounds.is_inside(real)
    }
}

/// Fails for the mode of a new file that would give others the caller's rights.
fn spare_rights(mode: u32) -> Result<(), Errno> {
    if mode & SET_ID == 0 { Ok(()) } else { Err(Errno::EPERM) }
}

#[expect(clippy::cast_possible_truncation, reason = "as the kernel does")]
fn low(register: u64) -> i32 {
    register as i32
}

#[expect(clippy::cast_possible_truncation, reason = "as the kernel does")]
fn low_unsigned(register: u64) -> u32 {
    register as u32
}
