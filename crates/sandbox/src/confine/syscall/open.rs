//! The system calls that open files.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, FcntlArg, OFlag, ResolveFlag, fcntl, open, openat};
use nix::libc;
use nix::sys::stat::{Mode, SFlag, makedev};
use nix::unistd::{AccessFlags, faccessat};

use super::drafts::UNNAMED;
use super::{Syscall, SyscallReply, SyscallResult, spare_rights};
use crate::confine::FileCall;
use crate::confine::lookup::LookupFlags;
use crate::confine::place::by_handle;
use crate::confine::raw;
use crate::confine::resolve::{PathArg, Resolved, Slot, Target};
use crate::model::Action;
use crate::zone::Grant;

/// Flags of the caller that are already applied when the file is opened here.
const APPLIED: OFlag =
    OFlag::O_CREAT.union(OFlag::O_EXCL).union(OFlag::O_NOFOLLOW).union(OFlag::O_DIRECTORY);

/// The folder of the terminals' lower ends.
pub(super) const TERMINALS: &str = "/dev/pts";

/// How often a file may appear and vanish between lookup and open.
const TRIES: usize = 4;

impl Syscall<'_> {
    pub(super) fn open(&self, arg: &PathArg, flags: u64, mode: u64) -> SyscallResult<SyscallReply> {
        let flags = OFlag::from_bits_retain(super::low(flags));
        self.open_resolving(arg, flags, super::low_unsigned(mode), ResolveFlag::empty())
    }

    /// `openat2`, whose flags and mode are in memory. None goes on: the kernel would read them again.
    /// A call that can't be done here fails as on an older kernel, for which programs have another way.
    pub(super) fn open_how(
        &self,
        arg: &PathArg,
        how: u64,
        size: u64,
    ) -> SyscallResult<SyscallReply> {
        const SIZE: usize = size_of::<libc::open_how>();
        if size < SIZE as u64 {
            return Err(Errno::EINVAL.into());
        }
        if size > SIZE as u64 {
            // A later kernel's fields: callers expect this error.
            return Err(Errno::E2BIG.into());
        }
        let bytes: [u8; SIZE] = self.caller.bytes(how)?;
        let field = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(number)
        };
        // Only cached lookups: callers expect this error.
        if field(16) & libc::RESOLVE_CACHED != 0 {
            return Err(Errno::EAGAIN.into());
        }
        let resolve = ResolveFlag::from_bits(field(16)).ok_or(Errno::EINVAL)?;
        let flags = i32::try_from(field(0)).map_err(|_| Errno::EINVAL)?;
        let mode = u32::try_from(field(8)).map_err(|_| Errno::EINVAL)?;
        match self.open_resolving(arg, OFlag::from_bits_retain(flags), mode, resolve)? {
            SyscallReply::Continue => Err(Errno::ENOSYS.into()),
            reply => Ok(reply),
        }
    }

    fn open_resolving(
        &self,
        arg: &PathArg,
        flags: OFlag,
        mode: u32,
        resolve: ResolveFlag,
    ) -> SyscallResult<SyscallReply> {
        // It only refers to the file; opening it through the descriptor is judged again.
        if flags.contains(OFlag::O_PATH) {
            return Ok(SyscallReply::Continue);
        }
        let creates = flags.contains(OFlag::O_CREAT);
        let unnamed = flags.contains(OFlag::O_TMPFILE);
        // Other calls leave the register as it was. None goes on with such a mode, wherever its path
        // leads: the kernel reads that again.
        if creates || unnamed {
            spare_rights(mode)?;
        }
        if unnamed {
            return self.open_unnamed(arg, flags, mode, resolve);
        }
        let exclusive = creates && flags.contains(OFlag::O_EXCL);
        let last = !exclusive && !flags.contains(OFlag::O_NOFOLLOW);
        let lookup = LookupFlags { last, present: !creates, resolve };
        for _ in 0..TRIES {
            match arg.find(&self.caller, lookup)? {
                Target::Found(_) if exclusive => return Err(Errno::EEXIST.into()),
                Target::Found(found) => return self.open_found(arg, &found, flags),
                Target::Missing(_) if !creates => return Err(Errno::ENOENT.into()),
                Target::Missing(slot) if slot.folder.is_foreign => {
                    self.demand(&slot.real(), Action::Write, arg)?;
                    self.changes(FileCall::Name(&slot.real()));
                    return Ok(SyscallReply::Continue);
                }
                Target::Missing(slot) => {
                    if let Some(outcome) = self.create(arg, &slot, flags, mode)? {
                        return Ok(outcome);
                    }
                }
            }
        }
        Err(Errno::EAGAIN.into())
    }

    fn open_found(
        &self,
        arg: &PathArg,
        found: &Resolved,
        flags: OFlag,
    ) -> SyscallResult<SyscallReply> {
        let writes = flags.intersects(OFlag::O_ACCMODE.union(OFlag::O_TRUNC));
        match found.kind() {
            SFlag::S_IFLNK => return Err(Errno::ELOOP.into()),
            SFlag::S_IFDIR if writes || flags.contains(OFlag::O_CREAT) => {
                return Err(Errno::EISDIR.into());
            }
            // Listing a folder is always allowed.
            SFlag::S_IFDIR if self.is_read_again() => {
                self.take_rights()?;
                let flags_now = (flags - APPLIED) | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
                return Ok(add_fd(open(&*found.path(), flags_now, Mode::empty())?, flags));
            }
            SFlag::S_IFDIR => return Ok(SyscallReply::Continue),
            _ if flags.contains(OFlag::O_DIRECTORY) => return Err(Errno::ENOTDIR.into()),
            // A disk holds the contents of all its files.
            SFlag::S_IFBLK => return Err(Errno::EACCES.into()),
            _ => {}
        }
        if found.is_nowhere() {
            return Ok(SyscallReply::Continue);
        }
        if let Some(outcome) = self.open_thread_name(found, flags)? {
            return Ok(outcome);
        }
        let action = if writes { Action::Write } else { Action::Read };
        if !self.confinement.drafts().holds(found.identity()) {
            self.demand(&found.real, action, arg)?;
        }
        if found.is_foreign {
            if writes && found.kind() == SFlag::S_IFREG {
                self.changes(FileCall::Write(&found.real, &found.stat));
            }
            return Ok(SyscallReply::Continue);
        }
        if found.kind() == SFlag::S_IFCHR
            && let Some(outcome) = self.open_terminal(found, flags)?
        {
            return Ok(outcome);
        }
        let is_regular = found.kind() == SFlag::S_IFREG;
        let grant = if writes { Grant::Write } else { Grant::Read };
        let may_go_on = self.granted.is_empty() && !self.is_read_again();
        if may_go_on && self.confinement.covers(&found.real, grant, found.identity()) {
            if is_regular && self.is_shown(&found.real, action) && self.may_open(found, flags)? {
                self.passed(&found.real, action);
            }
            if is_regular && writes {
                self.changes(FileCall::Write(&found.real, &found.stat));
            }
            return Ok(SyscallReply::Continue);
        }
        if found.kind() == SFlag::S_IFIFO {
            return self.open_pipe(found, flags);
        }
        // The kernel checks process files itself; a device may block the opener.
        if !is_regular || found.is_the_kernels()? {
            return Ok(SyscallReply::Continue);
        }
        self.take_rights()?;
        if writes {
            self.changes(FileCall::Write(&found.real, &found.stat));
        }
        // A lease would block the doorbell, and with it all calls.
        let flags_now = (flags - APPLIED) | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let file = open(&*found.path(), flags_now, Mode::empty())?;
        if !flags.contains(OFlag::O_NONBLOCK) {
            fcntl(&file, FcntlArg::F_SETFL(flags_now - OFlag::O_NONBLOCK))?;
        }
        self.passed(&found.real, action);
        Ok(add_fd(file, flags))
    }

    /// Whether the file's owner and mode let the caller open it. The outcome of a continued call is
    /// not reported.
    fn may_open(&self, found: &Resolved, flags: OFlag) -> SyscallResult<bool> {
        /// Readable by all.
        const READABLE: u32 = 0o444;
        let access = match flags & OFlag::O_ACCMODE {
            OFlag::O_WRONLY => AccessFlags::W_OK,
            OFlag::O_RDWR => AccessFlags::R_OK | AccessFlags::W_OK,
            _ if flags.contains(OFlag::O_TRUNC) => AccessFlags::R_OK | AccessFlags::W_OK,
            _ if found.stat.st_mode & READABLE == READABLE => return Ok(true),
            _ => AccessFlags::R_OK,
        };
        self.take_rights()?;
        Ok(faccessat(AT_FDCWD, &*found.path(), access, AtFlags::AT_EACCESS).is_ok())
    }

    /// Opens a new terminal, or the lower end of one that the caller opened; any other terminal may
    /// belong to another user. `None` for any other device.
    fn open_terminal(&self, found: &Resolved, flags: OFlag) -> SyscallResult<Option<SyscallReply>> {
        let is_new = found.stat.st_rdev == makedev(5, 2);
        if !is_new && !found.real.starts_with(TERMINALS) {
            return Ok(None);
        }
        if !is_new && !self.confinement.terminals().holds(found.identity()) {
            return Err(Errno::EACCES.into());
        }
        self.take_rights()?;
        let ours = OFlag::O_CLOEXEC | OFlag::O_NOCTTY | OFlag::O_NONBLOCK;
        let file = open(&*found.path(), (flags - APPLIED) | ours, Mode::empty())?;
        if !flags.contains(OFlag::O_NONBLOCK) {
            let now = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
            fcntl(&file, FcntlArg::F_SETFL(now - OFlag::O_NONBLOCK))?;
        }
        if is_new {
            let other = format!("{TERMINALS}/{}", raw::terminal_number(&file)?);
            let handle = OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
            let room = self.confinement.terminals().reserve()?;
            room.take(open(&*other, handle, Mode::empty())?)?;
        }
        Ok(Some(add_fd(file, flags)))
    }

    /// Opens the name of a thread of the caller's process for writing, as `pthread_setname_np`
    /// does; only the process itself can write it. `None` for any other file.
    fn open_thread_name(
        &self,
        found: &Resolved,
        flags: OFlag,
    ) -> SyscallResult<Option<SyscallReply>> {
        let writes = flags.intersects(OFlag::O_ACCMODE);
        if !writes || !found.real.starts_with("/proc") || !found.real.ends_with("comm") {
            return Ok(None);
        }
        let own = PathBuf::from(format!("/proc/{}/task", self.identity()?.process));
        let Ok(within) = found.real.strip_prefix(own) else { return Ok(None) };
        if within.components().count() != 2 {
            return Ok(None);
        }
        self.take_rights()?;
        let file = open(&*found.path(), (flags - APPLIED) | OFlag::O_CLOEXEC, Mode::empty())?;
        Ok(Some(add_fd(file, flags)))
    }

    /// Opens a named pipe that no rule grants. Opening one end blocks until the other is opened.
    fn open_pipe(&self, found: &Resolved, flags: OFlag) -> SyscallResult<SyscallReply> {
        self.take_rights()?;
        let handle = found.handle.try_clone().map_err(|_| Errno::EMFILE)?;
        let identity = if self.has_rights { Some(self.identity()?.clone()) } else { None };
        let open = move || {
            let rights = identity.as_ref().map(raw::borrow_rights).transpose()?;
            let flags_now = (flags - APPLIED) | OFlag::O_CLOEXEC;
            let file = open(&*by_handle(&handle), flags_now, Mode::empty());
            drop(rights);
            Ok(add_fd(file?, flags))
        };
        let is_one_end = flags & OFlag::O_ACCMODE != OFlag::O_RDWR;
        if is_one_end && !flags.contains(OFlag::O_NONBLOCK) {
            return Ok(SyscallReply::Later(Box::new(open)));
        }
        Ok(open()?)
    }

    /// Creates a file; `None` if another process created it meanwhile.
    fn create(
        &self,
        arg: &PathArg,
        slot: &Slot,
        flags: OFlag,
        mode: u32,
    ) -> SyscallResult<Option<SyscallReply>> {
        use std::os::unix::ffi::OsStrExt;
        if arg.path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(Errno::EISDIR.into());
        }
        if flags.contains(OFlag::O_DIRECTORY) {
            return Err(Errno::EINVAL.into());
        }
        let real = slot.real();
        let is_draft = self.demand_new(slot, arg)?;
        let room = if is_draft { Some(self.confinement.drafts().reserve()?) } else { None };
        if !is_draft && self.wall_leaves_names(&slot.folder) {
            self.changes(FileCall::Name(&real));
            return Ok(Some(SyscallReply::Continue));
        }
        self.take_rights()?;
        self.changes(FileCall::Name(&real));
        let umask = self.identity()?.umask;
        let exclusive = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(mode & !umask & 0o7777);
        let file =
            match openat(&slot.folder.handle, &*slot.name, (flags - APPLIED) | exclusive, mode) {
                Err(Errno::EEXIST) if !flags.contains(OFlag::O_EXCL) => return Ok(None),
                opened => opened?,
            };
        match room {
            Some(room) => room.take(&file)?,
            None => self.passed(&real, Action::Write),
        }
        Ok(Some(add_fd(file, flags)))
    }

    /// `O_TMPFILE`: a file without a name. Linking it to a name is judged again.
    fn open_unnamed(
        &self,
        arg: &PathArg,
        flags: OFlag,
        mode: u32,
        resolve: ResolveFlag,
    ) -> SyscallResult<SyscallReply> {
        let folder =
            arg.find_present(&self.caller, LookupFlags { last: true, present: true, resolve })?;
        if folder.kind() != SFlag::S_IFDIR {
            return Err(Errno::ENOTDIR.into());
        }
        self.demand(&folder.real.join(UNNAMED), Action::Write, arg)?;
        if self.wall_leaves_names(&folder) {
            return Ok(SyscallReply::Continue);
        }
        self.take_rights()?;
        let mode = Mode::from_bits_truncate(mode & !self.identity()?.umask & 0o7777);
        let flags_now = (flags - OFlag::O_NOFOLLOW) | OFlag::O_CLOEXEC;
        Ok(add_fd(open(&*folder.path(), flags_now, mode)?, flags))
    }
}

/// Whether a file that is opened with these flags is only read.
pub(super) fn only_reads(flags: u64) -> bool {
    let writes = OFlag::O_ACCMODE | OFlag::O_TRUNC | OFlag::O_CREAT;
    !OFlag::from_bits_retain(super::low(flags)).intersects(writes)
}

fn add_fd(file: OwnedFd, flags: OFlag) -> SyscallReply {
    SyscallReply::AddFd { file, close_on_exec: flags.contains(OFlag::O_CLOEXEC) }
}
