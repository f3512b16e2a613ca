//! The system calls that create, move and remove names. In the workspace the wall grants none of
//! them: those that the bounds allow are performed here, on the folders that were judged.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, RenameFlags, renameat2};
use nix::libc;
use nix::sys::stat::{Mode, SFlag, mkdirat, mknodat};
use nix::unistd::{UnlinkatFlags, linkat, symlinkat, unlinkat};

use super::open::TERMINALS;
use super::{Stop, Syscall, SyscallReply, SyscallResult, spare_rights};
use crate::confine::lookup::LookupFlags;
use crate::confine::resolve::{PathArg, Resolved, Slot};
use crate::confine::still::moving;
use crate::confine::{FileCall, PathMeaning};
use crate::model::{Action, wire_real};
use crate::zone::Denied;

/// Fails for a device, which the whole machine shares. A terminal belongs to its user.
pub(super) fn spare_device(found: &Resolved) -> Result<(), Errno> {
    let is_device = matches!(found.kind(), SFlag::S_IFCHR | SFlag::S_IFBLK);
    let is_terminal = found.real.starts_with(TERMINALS);
    if is_device && !is_terminal { Err(Errno::EPERM) } else { Ok(()) }
}

/// Entries of a moved folder that are checked; a folder with more is refused.
const MOVED_MAX: usize = 200_000;

impl Syscall<'_> {
    pub(super) fn make_folder(&self, arg: &PathArg, mode: u64) -> SyscallResult<SyscallReply> {
        let may_be = |real: &Path| self.bounds.is_above(real);
        let outcome = self.make_where(may_be, SFlag::S_IFDIR, arg, |slot, umask| {
            let mode = super::low_unsigned(mode) & !umask & 0o7777;
            mkdirat(&slot.folder.handle, &*slot.name, Mode::from_bits_truncate(mode))
        });
        outcome.map_err(|stop| match stop {
            Stop::Outside { denied, real, arg, to_server, .. } => {
                Stop::Outside { denied, real, arg, to_server, meaning: PathMeaning::NewFolder }
            }
            stop => stop,
        })
    }

    /// Creates a file, a pipe or a socket; agents may not create devices.
    pub(super) fn make_node(
        &self,
        arg: &PathArg,
        mode: u64,
        device: u64,
    ) -> SyscallResult<SyscallReply> {
        let mode = super::low_unsigned(mode);
        let kind = SFlag::from_bits_truncate(mode & SFlag::S_IFMT.bits());
        if matches!(kind, SFlag::S_IFBLK | SFlag::S_IFCHR) {
            return Err(Errno::EPERM.into());
        }
        // A mode without a kind is a regular file's.
        if matches!(kind, SFlag::S_IFREG) || kind.is_empty() {
            spare_rights(mode)?;
        }
        self.make(kind, arg, |slot, umask| {
            let mode = Mode::from_bits_truncate(mode & !umask & 0o7777);
            mknodat(&slot.folder.handle, &*slot.name, kind, mode, device)
        })
    }

    pub(super) fn make_link(&self, target: u64, arg: &PathArg) -> SyscallResult<SyscallReply> {
        let target = self.caller.path(target)?;
        self.make(SFlag::S_IFLNK, arg, |slot, _| {
            symlinkat(&*target, &slot.folder.handle, &*slot.name)
        })
    }

    pub(super) fn link(
        &self,
        folder: u64,
        path: u64,
        to: &PathArg,
        flags: u64,
    ) -> SyscallResult<SyscallReply> {
        let flags = AtFlags::from_bits_retain(super::low(flags));
        let from = self.path_arg(folder, path)?;
        let lookup = if flags.contains(AtFlags::AT_SYMLINK_FOLLOW) {
            LookupFlags::FOLLOW
        } else {
            LookupFlags::STAY
        };
        let source = self.target(&from, flags, lookup)?;
        if source.kind() == SFlag::S_IFDIR {
            return Err(Errno::EPERM.into());
        }
        let Some(slot) = to.slot(&self.caller)? else { return Err(Errno::EEXIST.into()) };
        if slot.occupant().is_ok() {
            return Err(Errno::EEXIST.into());
        }
        // A second name for a file gives full access to it.
        self.demand_write(&source, &from)?;
        self.demand_name(&slot, to)?;
        self.demand_kind(source.kind(), &slot, to)?;
        let real = slot.real();
        if source.kind() == SFlag::S_IFSOCK
            && self.bounds.is_private(&real)
            && !self.bounds.is_private(&source.real)
        {
            return Err(Errno::EACCES.into());
        }
        self.changes(FileCall::Link { of: &source.real, name: &real });
        // The wall ensures that no link widens its grants.
        if self.wall_leaves_names(&slot.folder) && !self.bounds.is_inside(&source.real) {
            return Ok(SyscallReply::Continue);
        }
        self.take_rights()?;
        let path = source.path();
        let follow = AtFlags::AT_SYMLINK_FOLLOW;
        let _moving = moving();
        linkat(AT_FDCWD, path.as_str(), &slot.folder.handle, &*slot.name, follow)?;
        self.report_named(&source, &slot);
        Ok(SyscallReply::Done)
    }

    pub(super) fn remove(&self, arg: &PathArg, flags: u64) -> SyscallResult<SyscallReply> {
        let Some(slot) = arg.slot(&self.caller)? else { return Ok(SyscallReply::Continue) };
        spare_device(&slot.occupant()?)?;
        if self.is_protected(&slot) {
            return Err(Errno::EBUSY.into());
        }
        self.demand_name(&slot, arg)?;
        self.changes(FileCall::Remove(&slot.real()));
        if self.wall_leaves_names(&slot.folder) {
            return Ok(SyscallReply::Continue);
        }
        self.take_rights()?;
        let folders = super::low(flags) & libc::AT_REMOVEDIR != 0;
        let ends_in_slash = arg.path.as_os_str().as_bytes().ends_with(b"/");
        if ends_in_slash && !folders {
            return Err(Errno::ENOTDIR.into());
        }
        let flags = if folders { UnlinkatFlags::RemoveDir } else { UnlinkatFlags::NoRemoveDir };
        unlinkat(&slot.folder.handle, &*slot.name, flags)?;
        Ok(SyscallReply::Done)
    }

    pub(super) fn rename(
        &self,
        old: &PathArg,
        new: &PathArg,
        flags: u64,
    ) -> SyscallResult<SyscallReply> {
        let flags = RenameFlags::from_bits(super::low_unsigned(flags)).ok_or(Errno::EINVAL)?;
        if flags.contains(RenameFlags::RENAME_WHITEOUT) {
            return Err(Errno::EPERM.into());
        }
        let (Some(from), Some(to)) = (old.slot(&self.caller)?, new.slot(&self.caller)?) else {
            return Err(Errno::EBUSY.into());
        };
        let moved = from.occupant()?;
        let exchanges = flags.contains(RenameFlags::RENAME_EXCHANGE);
        let replaced = to.occupant().ok();
        [Some(&moved), replaced.as_ref()].into_iter().flatten().try_for_each(spare_device)?;
        if exchanges && replaced.is_none() {
            return Err(Errno::ENOENT.into());
        }
        let is_busy = self.is_protected(&from)
            || self.bounds.is_held(&to.real())
            || exchanges && self.is_protected(&to);
        if is_busy {
            return Err(Errno::EBUSY.into());
        }
        self.demand_name(&from, old)?;
        // An editor may move the file that it will replace to a draft's name.
        let keeps = replaced.is_none() && self.demand_new(&to, new)?;
        if replaced.is_some() {
            self.demand_name(&to, new)?;
        }
        self.demand_kind(moved.kind(), &to, new)?;
        if let Some(replaced) = replaced.as_ref().filter(|_| exchanges) {
            self.demand_kind(replaced.kind(), &from, old)?;
        }
        let room = if keeps { Some(self.confinement.drafts().reserve()?) } else { None };
        let wall_leaves =
            self.wall_leaves_names(&from.folder) && self.wall_leaves_names(&to.folder);
        let renames = FileCall::Rename { from: &from.real(), to: &to.real(), exchanges };
        if wall_leaves && !keeps {
            self.changes(renames);
            return Ok(SyscallReply::Continue);
        }
        self.demand_move(&moved, &from, &to)?;
        if let Some(replaced) = replaced.as_ref().filter(|_| exchanges) {
            self.demand_move(replaced, &to, &from)?;
        }
        self.take_rights()?;
        let (old_name, new_name) = (with_slash(&from, old)?, with_slash(&to, new)?);
        let (old_folder, new_folder) = (&from.folder.handle, &to.folder.handle);
        self.changes(renames);
        let _moving = moving();
        renameat2(old_folder, &*old_name, new_folder, &*new_name, flags)?;
        self.report_named(&moved, &to);
        if let Some(replaced) = replaced.as_ref().filter(|_| exchanges) {
            self.report_named(replaced, &from);
        }
        if let Some(room) = room {
            room.take(&moved.handle)?;
        } else if !exchanges {
            // It is no longer a draft.
            self.confinement.drafts().remove(moved.identity());
        }
        Ok(SyscallReply::Done)
    }

    /// Whether this name must stay, since others rely on it.
    fn is_protected(&self, slot: &Slot) -> bool {
        let real = slot.real();
        self.bounds.is_held(&real) || self.bounds.is_pillar(&real)
    }

    /// Reports a file that got a new name.
    fn report_named(&self, file: &Resolved, to: &Slot) {
        if file.kind() == SFlag::S_IFREG {
            self.passed(&to.real(), Action::Write);
        }
    }

    /// Creates a new name.
    fn make(
        &self,
        kind: SFlag,
        arg: &PathArg,
        make: impl FnOnce(&Slot, u32) -> Result<(), Errno>,
    ) -> SyscallResult<SyscallReply> {
        self.make_where(|_| false, kind, arg, make)
    }

    /// Creates a new name that is free to all by `is_free`, or that the bounds allow.
    fn make_where(
        &self,
        is_free: impl FnOnce(&Path) -> bool,
        kind: SFlag,
        arg: &PathArg,
        make: impl FnOnce(&Slot, u32) -> Result<(), Errno>,
    ) -> SyscallResult<SyscallReply> {
        let Some(slot) = arg.slot(&self.caller)? else { return Err(Errno::EEXIST.into()) };
        if slot.occupant().is_ok() {
            return Err(Errno::EEXIST.into());
        }
        if !is_free(&slot.real()) {
            self.demand_name(&slot, arg)?;
        }
        self.demand_kind(kind, &slot, arg)?;
        let is_recorded = matches!(kind, SFlag::S_IFREG | SFlag::S_IFDIR | SFlag::S_IFLNK);
        let real = slot.real();
        let announce = || {
            if is_recorded {
                self.changes(FileCall::Name(&real));
            }
        };
        if self.wall_leaves_names(&slot.folder) {
            announce();
            return Ok(SyscallReply::Continue);
        }
        self.take_rights()?;
        announce();
        let umask = self.identity()?.umask;
        let _moving = moving();
        make(&slot, umask)?;
        Ok(SyscallReply::Done)
    }

    /// Fails for a name of another kind than others rely on. In a git folder that is a file or folder:
    /// git, run by its user, would write through a link, or block at a pipe. Above settings it is a
    /// folder.
    pub(super) fn demand_kind(&self, kind: SFlag, slot: &Slot, arg: &PathArg) -> SyscallResult<()> {
        let real = slot.real();
        let fits = match kind {
            SFlag::S_IFDIR => true,
            _ if self.bounds.is_above_setting(&real) => false,
            SFlag::S_IFREG => true,
            _ => !self.bounds.is_git(&real),
        };
        if fits {
            return Ok(());
        }
        let path = wire_real(self.bounds.zone().workspace(), &real).into();
        // A grant would cover this path, not the link's target.
        let denied = Denied { path, action: Action::Write, grantable: false };
        Err(Stop::Outside {
            denied,
            real,
            arg: arg.path.clone(),
            meaning: PathMeaning::Itself,
            to_server: false,
        })
    }

    /// Fails unless all contents of a folder may be written at the old and the new place, since a
    /// new name may be allowed where the old one was denied. No socket moves into the private
    /// folder, where the caller may connect to all.
    fn demand_move(&self, moved: &Resolved, from: &Slot, to: &Slot) -> SyscallResult<()> {
        let (from, to) = (from.real(), to.real());
        if self.bounds.is_private(&to)
            && !self.bounds.is_private(&from)
            && holds(moved, |kind| kind == SFlag::S_IFSOCK)?
        {
            return Err(Errno::EACCES.into());
        }
        let is_plain = |kind| matches!(kind, SFlag::S_IFREG | SFlag::S_IFDIR);
        if self.bounds.is_git(&to) && holds(moved, |kind| !is_plain(kind))? {
            return Err(Errno::EACCES.into());
        }
        if moved.kind() != SFlag::S_IFDIR {
            return Ok(());
        }
        let folder = moved.path();
        for at in [&from, &to] {
            self.bounds.judge_tree(Path::new(&folder), at, Action::Write).map_err(|denied| {
                // One grant cannot cover all its contents.
                let denied = Denied { grantable: false, ..denied };
                let (real, arg) = (from.clone(), from.clone());
                Stop::Outside { denied, real, arg, meaning: PathMeaning::Itself, to_server: false }
            })?;
        }
        Ok(())
    }

    /// The file that a path names, or the descriptor itself with `AT_EMPTY_PATH`.
    pub(super) fn target(
        &self,
        arg: &PathArg,
        flags: AtFlags,
        lookup: LookupFlags,
    ) -> SyscallResult<Resolved> {
        if arg.path.as_os_str().is_empty() && flags.contains(AtFlags::AT_EMPTY_PATH) {
            return Ok(Resolved::new(self.caller.base(arg.folder)?)?);
        }
        Ok(arg.find_present(&self.caller, lookup)?)
    }
}

/// The name of a slot, with the trailing slash if the caller gave one: it must then be a folder.
fn with_slash(slot: &Slot, arg: &PathArg) -> Result<CString, Errno> {
    let mut name = slot.name.as_bytes().to_vec();
    if arg.path.as_os_str().as_bytes().ends_with(b"/") {
        name.push(b'/');
    }
    CString::new(name).map_err(|_| Errno::EINVAL)
}

/// Whether it is of a matching kind, or a folder that contains such a file, or has too many entries
/// to check.
fn holds(moved: &Resolved, is_such: impl Fn(SFlag) -> bool) -> Result<bool, Errno> {
    if moved.kind() != SFlag::S_IFDIR {
        return Ok(is_such(moved.kind()));
    }
    let mut folders = vec![PathBuf::from(moved.path())];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| errno(&error))? {
            let entry = entry.map_err(|error| errno(&error))?;
            let kind = kind(entry.file_type().map_err(|error| errno(&error))?);
            seen += 1;
            if is_such(kind) || seen > MOVED_MAX {
                return Ok(true);
            }
            if kind == SFlag::S_IFDIR {
                folders.push(entry.path());
            }
        }
    }
    Ok(false)
}

fn kind(of: fs::FileType) -> SFlag {
    match of {
        of if of.is_file() => SFlag::S_IFREG,
        of if of.is_dir() => SFlag::S_IFDIR,
        of if of.is_symlink() => SFlag::S_IFLNK,
        of if of.is_fifo() => SFlag::S_IFIFO,
        of if of.is_socket() => SFlag::S_IFSOCK,
        of if of.is_block_device() => SFlag::S_IFBLK,
        _ => SFlag::S_IFCHR,
    }
}

fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}
