//! The open family.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, FcntlArg, OFlag, ResolveFlag, fcntl, open, openat};
use nix::libc;
use nix::sys::stat::{Mode, SFlag, makedev};
use nix::unistd::{AccessFlags, faccessat};

use super::{Syscall, SyscallReply, SyscallResult};
use crate::confine::lookup::LookupFlags;
use crate::confine::place::by_handle;
use crate::confine::raw;
use crate::confine::resolve::{PathArg, Resolved, Slot, Target};
use crate::model::Action;
use crate::zone::Grant;

/// Of what a caller asks for, what has had its say by then.
const SAID: OFlag =
    OFlag::O_CREAT.union(OFlag::O_EXCL).union(OFlag::O_NOFOLLOW).union(OFlag::O_DIRECTORY);

/// The other ends of all terminals.
pub(super) const TERMINALS: &str = "/dev/pts";

/// How often a file may come and go between a look and an open.
const TRIES: usize = 4;

impl Syscall<'_> {
    pub(super) fn open(
        &self,
        spoken: &PathArg,
        flags: u64,
        mode: u64,
    ) -> SyscallResult<SyscallReply> {
        let flags = OFlag::from_bits_retain(super::low(flags));
        self.open_resolving(spoken, flags, super::low_unsigned(mode), ResolveFlag::empty())
    }

    /// `openat2`: what the file is to be opened with is in memory.
    pub(super) fn open_how(
        &self,
        spoken: &PathArg,
        how: u64,
        size: u64,
    ) -> SyscallResult<SyscallReply> {
        const SIZE: usize = size_of::<libc::open_how>();
        if size < SIZE as u64 {
            return Err(Errno::EINVAL.into());
        }
        if size > SIZE as u64 {
            // Of a later kernel; whoever asks for it is ready for this answer.
            return Err(Errno::E2BIG.into());
        }
        let bytes: [u8; SIZE] = self.caller.bytes(how)?;
        let field = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(number)
        };
        // What is at hand without looking: whoever asks for that is ready to look.
        if field(16) & libc::RESOLVE_CACHED != 0 {
            return Err(Errno::EAGAIN.into());
        }
        let resolve = ResolveFlag::from_bits(field(16)).ok_or(Errno::EINVAL)?;
        let flags = i32::try_from(field(0)).map_err(|_| Errno::EINVAL)?;
        let mode = u32::try_from(field(8)).map_err(|_| Errno::EINVAL)?;
        self.open_resolving(spoken, OFlag::from_bits_retain(flags), mode, resolve)
    }

    fn open_resolving(
        &self,
        spoken: &PathArg,
        flags: OFlag,
        mode: u32,
        resolve: ResolveFlag,
    ) -> SyscallResult<SyscallReply> {
        // Such a descriptor stands for a file without opening it; to open it by that rings again.
        if flags.contains(OFlag::O_PATH) {
            return Ok(SyscallReply::Continue);
        }
        let creates = flags.contains(OFlag::O_CREAT);
        if flags.contains(OFlag::O_TMPFILE) {
            return self.open_unnamed(spoken, flags, mode, resolve);
        }
        let alone = creates && flags.contains(OFlag::O_EXCL);
        let last = !alone && !flags.contains(OFlag::O_NOFOLLOW);
        let ways = LookupFlags { last, present: !creates, resolve };
        for _ in 0..TRIES {
            match spoken.find(&self.caller, ways)? {
                Target::Found(_) if alone => return Err(Errno::EEXIST.into()),
                Target::Found(found) => return self.open_found(spoken, &found, flags),
                Target::Missing(_) if !creates => return Err(Errno::ENOENT.into()),
                Target::Missing(slot) if slot.folder.is_foreign => {
                    self.demand(&slot.real(), Action::Write, spoken)?;
                    return Ok(SyscallReply::Continue);
                }
                Target::Missing(slot) => {
                    if let Some(outcome) = self.create(spoken, &slot, flags, mode)? {
                        return Ok(outcome);
                    }
                }
            }
        }
        Err(Errno::EAGAIN.into())
    }

    fn open_found(
        &self,
        spoken: &PathArg,
        found: &Resolved,
        flags: OFlag,
    ) -> SyscallResult<SyscallReply> {
        let writes = flags.intersects(OFlag::O_ACCMODE.union(OFlag::O_TRUNC));
        match found.kind() {
            SFlag::S_IFLNK => return Err(Errno::ELOOP.into()),
            SFlag::S_IFDIR if writes || flags.contains(OFlag::O_CREAT) => {
                return Err(Errno::EISDIR.into());
            }
            // Names are not protected.
            SFlag::S_IFDIR => return Ok(SyscallReply::Continue),
            _ if flags.contains(OFlag::O_DIRECTORY) => return Err(Errno::ENOTDIR.into()),
            // A disk is all the files on it.
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
            self.demand(&found.real, action, spoken)?;
        }
        if found.is_foreign {
            return Ok(SyscallReply::Continue);
        }
        if found.kind() == SFlag::S_IFCHR
            && let Some(outcome) = self.open_terminal(found, flags)?
        {
            return Ok(outcome);
        }
        let is_regular = found.kind() == SFlag::S_IFREG;
        let grant = if writes { Grant::Write } else { Grant::Read };
        if self.granted.is_empty() && self.confinement.covers(&found.real, grant, found.identity())
        {
            if is_regular && self.is_shown(&found.real, action) && self.may_open(found, flags)? {
                self.passed(&found.real, action);
            }
            return Ok(SyscallReply::Continue);
        }
        if found.kind() == SFlag::S_IFIFO {
            return self.open_pipe(found, flags);
        }
        // The kernel knows whose process files are; a device may make the opener wait.
        if !is_regular || found.is_the_kernels()? {
            return Ok(SyscallReply::Continue);
        }
        self.take_rights()?;
        // Somebody's lease would make the doorbell wait, and with it all that rings.
        let flags_now = (flags - SAID) | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let file = open(&*found.path(), flags_now, Mode::empty())?;
        if !flags.contains(OFlag::O_NONBLOCK) {
            fcntl(&file, FcntlArg::F_SETFL(flags_now - OFlag::O_NONBLOCK))?;
        }
        self.passed(&found.real, action);
        Ok(add_fd(file, flags))
    }

    /// Whether the file's owner and mode let the caller open it, as far as that is known before the
    /// kernel tries: of a call that goes on, nobody reports how it ended.
    fn may_open(&self, found: &Resolved, flags: OFlag) -> SyscallResult<bool> {
        /// Whoever asks may read it.
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

    /// Opens an end of a terminal: a new one, or the other end of one that the caller opened. At
    /// all others somebody else types. None for what is no such device.
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
        let file = open(&*found.path(), (flags - SAID) | ours, Mode::empty())?;
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
    /// does; none but the process itself can write there. None for all else.
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
        let file = open(&*found.path(), (flags - SAID) | OFlag::O_CLOEXEC, Mode::empty())?;
        Ok(Some(add_fd(file, flags)))
    }

    /// Opens a pipe with a name that no rule grants. Whoever opens one end waits for the other.
    fn open_pipe(&self, found: &Resolved, flags: OFlag) -> SyscallResult<SyscallReply> {
        self.take_rights()?;
        let handle = found.handle.try_clone().map_err(|_| Errno::EMFILE)?;
        let identity = if self.has_rights { Some(self.identity()?.clone()) } else { None };
        let open = move || {
            let rights = identity.as_ref().map(raw::borrow_rights).transpose()?;
            let flags_now = (flags - SAID) | OFlag::O_CLOEXEC;
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

    /// Makes a file; None if somebody else did meanwhile.
    fn create(
        &self,
        spoken: &PathArg,
        slot: &Slot,
        flags: OFlag,
        mode: u32,
    ) -> SyscallResult<Option<SyscallReply>> {
        use std::os::unix::ffi::OsStrExt;
        if spoken.path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(Errno::EISDIR.into());
        }
        if flags.contains(OFlag::O_DIRECTORY) {
            return Err(Errno::EINVAL.into());
        }
        let real = slot.real();
        let is_draft = self.demand_new(slot, spoken)?;
        let room = if is_draft { Some(self.confinement.drafts().reserve()?) } else { None };
        if !is_draft && self.wall_leaves_names(&slot.folder) {
            return Ok(Some(SyscallReply::Continue));
        }
        self.take_rights()?;
        let umask = self.identity()?.umask;
        let alone = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(mode & !umask & 0o7777);
        let file = match openat(&slot.folder.handle, &*slot.name, (flags - SAID) | alone, mode) {
            Err(Errno::EEXIST) if !flags.contains(OFlag::O_EXCL) => return Ok(None),
            opened => opened?,
        };
        match room {
            Some(room) => room.take(&file)?,
            None => self.passed(&real, Action::Write),
        }
        Ok(Some(add_fd(file, flags)))
    }

    /// `O_TMPFILE`: a file without a name, which linking may give it; that rings again.
    fn open_unnamed(
        &self,
        spoken: &PathArg,
        flags: OFlag,
        mode: u32,
        resolve: ResolveFlag,
    ) -> SyscallResult<SyscallReply> {
        let folder = spoken
            .find_present(&self.caller, LookupFlags { last: true, present: true, resolve })?;
        if folder.kind() != SFlag::S_IFDIR {
            return Err(Errno::ENOTDIR.into());
        }
        self.demand(&folder.real.join("#unnamed"), Action::Write, spoken)?;
        if self.wall_leaves_names(&folder) {
            return Ok(SyscallReply::Continue);
        }
        self.take_rights()?;
        let mode = Mode::from_bits_truncate(mode & !self.identity()?.umask & 0o7777);
        let flags_now = (flags - OFlag::O_NOFOLLOW) | OFlag::O_CLOEXEC;
        Ok(add_fd(open(&*folder.path(), flags_now, mode)?, flags))
    }
}

fn add_fd(file: OwnedFd, flags: OFlag) -> SyscallReply {
    SyscallReply::AddFd { file, close_on_exec: flags.contains(OFlag::O_CLOEXEC) }
}
