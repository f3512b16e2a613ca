//! Resolves the path arguments of a call to a file, in the caller's view. The result is held by a
//! descriptor, so that the file that is judged is the file that is used.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use memchr::memmem;
use nix::errno::Errno;
use nix::fcntl::{OFlag, ResolveFlag, open, openat, readlink, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use nix::sys::statfs::{PROC_SUPER_MAGIC, SYSFS_MAGIC, fstatfs};

use super::calling_process::CallingProcess;
use super::lookup::{HANDLE, LookupFlags, openat2_path};
use super::place::{Unresolved, by_handle, place};
use crate::model::{walk_first, within};

/// The file system in which `self` differs for each process.
const PROC: &str = "/proc";

/// The flags that restrict where links and `..` may lead.
const SCOPED: ResolveFlag = ResolveFlag::RESOLVE_BENEATH
    .union(ResolveFlag::RESOLVE_IN_ROOT)
    .union(ResolveFlag::RESOLVE_NO_SYMLINKS)
    .union(ResolveFlag::RESOLVE_NO_MAGICLINKS);
/// The kernel's limit to the links on one path.
const LINKS_MAX: usize = 40;

/// A file of any kind to which a path leads.
#[derive(Debug)]
pub(super) struct Resolved {
    /// Refers to it without opening it.
    pub(super) handle: OwnedFd,
    /// Its real path: absolute and free of links. Not a path if it lies in no folder (`pipe:[7]`).
    pub(super) real: PathBuf,
    pub(super) stat: FileStat,
    /// The path led through another process, which the caller may not be allowed to inspect: only the kernel
    /// may open it.
    pub(super) is_foreign: bool,
}

/// A folder and a name in it, which may not exist yet.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) folder: Resolved,
    pub(super) name: OsString,
}

#[derive(Debug)]
pub(super) enum Target {
    Found(Resolved),
    /// Only its folder exists.
    Missing(Slot),
}

/// The path argument of a call, with the descriptor of the folder for a relative one.
#[derive(Clone, Debug)]
pub(super) struct PathArg {
    pub(super) folder: u64,
    pub(super) path: PathBuf,
}

impl Resolved {
    /// Fails if the file's real path is unknown: see [`place`].
    pub(super) fn new(handle: OwnedFd) -> Result<Self, Unresolved> {
        let stat = fstat(&handle)?;
        let real = place(&handle)?;
        Ok(Self { handle, real, stat, is_foreign: false })
    }

    pub(super) fn kind(&self) -> SFlag {
        SFlag::from_bits_truncate(self.stat.st_mode & SFlag::S_IFMT.bits())
    }

    /// Its device and inode.
    pub(super) fn identity(&self) -> (u64, u64) {
        identity(&self.stat)
    }

    /// Whether it lies in no folder: a pipe, a socket, memory.
    pub(super) fn is_nowhere(&self) -> bool {
        !self.real.has_root()
    }

    /// Whether the kernel generates its contents for each opener.
    pub(super) fn is_the_kernels(&self) -> Result<bool, Errno> {
        let filesystem = fstatfs(&self.handle)?.filesystem_type();
        Ok(filesystem == PROC_SUPER_MAGIC || filesystem == SYSFS_MAGIC)
    }

    /// A path that leads to it even if it is renamed.
    pub(super) fn path(&self) -> String {
        by_handle(&self.handle)
    }
}

impl Slot {
    pub(super) fn real(&self) -> PathBuf {
        self.folder.real.join(&self.name)
    }

    /// The file with that name now; a link itself, not its target.
    pub(super) fn occupant(&self) -> Result<Resolved, Errno> {
        let handle =
            openat(&self.folder.handle, &*self.name, HANDLE | OFlag::O_NOFOLLOW, Mode::empty())?;
        let stat = fstat(&handle)?;
        Ok(Resolved { handle, real: self.real(), stat, is_foreign: self.folder.is_foreign })
    }
}

impl PathArg {
    /// Resolves the argument.
    pub(super) fn find(
        &self,
        caller: &CallingProcess,
        lookup: LookupFlags,
    ) -> Result<Target, Unresolved> {
        if self.path.as_os_str().is_empty() {
            return Err(Errno::ENOENT.into());
        }
        if let Some(target) = self.resolve_directly(caller, lookup)? {
            return Ok(target);
        }
        // With `RESOLVE_IN_ROOT` an absolute path starts at the base, too.
        let is_absolute =
            self.path.has_root() && !lookup.resolve.contains(ResolveFlag::RESOLVE_IN_ROOT);
        let base = if is_absolute { None } else { Some(caller.base(self.folder)?) };
        match openat2_path(base.as_ref(), &self.path, lookup) {
            Ok(handle) => {
                let found = Resolved::new(handle)?;
                // `/proc/self` led to this process rather than the caller.
                if within(Path::new(PROC), &found.real).is_none() {
                    return Ok(Target::Found(found));
                }
            }
            Err(Errno::ENOENT) if lookup.resolve.intersects(SCOPED) => {
                return self.missing(base.as_ref(), lookup);
            }
            Err(Errno::ELOOP | Errno::ENOENT) if !lookup.resolve.intersects(SCOPED) => {}
            Err(errno) => return Err(errno.into()),
        }
        walk(caller, base, &self.path, lookup.last)
    }

    /// Resolves a path without links, whose text is its real path. Most paths are such, and this is
    /// the fastest way; `None` leaves others to the slower ones.
    fn resolve_directly(
        &self,
        caller: &CallingProcess,
        lookup: LookupFlags,
    ) -> Result<Option<Target>, Errno> {
        if !lookup.resolve.is_empty() {
            return Ok(None);
        }
        let mut spelled = PathBuf::new();
        if !self.path.has_root() {
            let Some(base) = caller.base_path(self.folder)? else { return Ok(None) };
            spelled = base;
        }
        spelled.push(&self.path);
        // The parent of a folder changes when the folder is moved.
        if memmem::find(bytes(&spelled), b"..").is_some() {
            return Ok(None);
        }
        let real: PathBuf = spelled.components().collect();
        // Its contents differ for each process.
        if within(Path::new(PROC), &real).is_some() {
            return Ok(None);
        }
        let found = |handle: OwnedFd, real: PathBuf| -> Result<Resolved, Errno> {
            let stat = fstat(&handle)?;
            Ok(Resolved { handle, real, stat, is_foreign: false })
        };
        let straight = LookupFlags { resolve: ResolveFlag::RESOLVE_NO_SYMLINKS, ..lookup };
        match openat2_path(None, &spelled, straight) {
            Ok(handle) => Ok(Some(Target::Found(found(handle, real)?))),
            Err(Errno::ENOENT) if lookup.present => Err(Errno::ENOENT),
            Err(Errno::ENOENT) => {
                let (Some(above), Some(name)) = (real.parent(), real.file_name()) else {
                    return Ok(None);
                };
                let Ok(handle) = openat2_path(None, above, LookupFlags { last: true, ..straight })
                else {
                    return Ok(None);
                };
                let folder = found(handle, above.to_owned())?;
                Ok(Some(Target::Missing(Slot { folder, name: name.to_owned() })))
            }
            Err(_) => Ok(None),
        }
    }

    /// Finds the slot of a missing file, with the kernel's lookup only.
    fn missing(&self, base: Option<&OwnedFd>, lookup: LookupFlags) -> Result<Target, Unresolved> {
        let (Some(above), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Err(Errno::ENOENT.into());
        };
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        let folder =
            Resolved::new(openat2_path(base, above, LookupFlags { last: true, ..lookup })?)?;
        let slot = Slot { folder, name: name.to_owned() };
        // A dangling link would need to be followed.
        if slot.occupant().is_ok() { Err(Errno::EXDEV.into()) } else { Ok(Target::Missing(slot)) }
    }

    /// Finds a file that must exist.
    pub(super) fn find_present(
        &self,
        caller: &CallingProcess,
        lookup: LookupFlags,
    ) -> Result<Resolved, Unresolved> {
        match self.find(caller, LookupFlags { present: true, ..lookup })? {
            Target::Found(found) if found.is_foreign => Err(Errno::EACCES.into()),
            Target::Found(found) => Ok(found),
            Target::Missing(_) => Err(Errno::ENOENT.into()),
        }
    }

    /// Finds the slot of a name to create, move or remove. `None` if the path ends in no name (`.`,
    /// `..`, `/`).
    pub(super) fn slot(&self, caller: &CallingProcess) -> Result<Option<Slot>, Unresolved> {
        let bytes = self.path.as_os_str().as_bytes();
        let end = bytes.iter().rposition(|&byte| byte != b'/').map_or(0, |at| at + 1);
        let start = memchr::memrchr(b'/', &bytes[..end]).map_or(0, |at| at + 1);
        let name = &bytes[start..end];
        if bytes.is_empty() {
            return Err(Errno::ENOENT.into());
        }
        if matches!(name, b"" | b"." | b"..") {
            return Ok(None);
        }
        let above = match &bytes[..start] {
            b"" => Path::new("."),
            above => Path::new(OsStr::from_bytes(above)),
        };
        let folder = Self { folder: self.folder, path: above.to_owned() };
        let folder = folder.find_present(caller, LookupFlags::FOLLOW)?;
        if folder.kind() != SFlag::S_IFDIR {
            return Err(Errno::ENOTDIR.into());
        }
        Ok(Some(Slot { folder, name: OsStr::from_bytes(name).to_owned() }))
    }
}

/// Follows a path by components, as the kernel would for the caller.
fn walk(
    caller: &CallingProcess,
    base: Option<OwnedFd>,
    path: &Path,
    follow: bool,
) -> Result<Target, Unresolved> {
    let mut here = match base {
        Some(base) => base,
        None => root()?,
    };
    let mut ahead = Vec::new();
    walk_first(path, &mut ahead);
    // `link/` means the link's target, which must be a folder.
    let must_be_folder = bytes(path).ends_with(b"/");
    let (mut links, mut is_foreign) = (0, false);
    while let Some(name) = ahead.pop() {
        if name == ".." {
            here = openat(&here, "..", HANDLE | OFlag::O_DIRECTORY, Mode::empty())?;
            continue;
        }
        let next = match openat(&here, &*name, HANDLE | OFlag::O_NOFOLLOW, Mode::empty()) {
            Err(Errno::ENOENT) if ahead.is_empty() => {
                let folder = Resolved { is_foreign, ..Resolved::new(here)? };
                return Ok(Target::Missing(Slot { folder, name }));
            }
            next => next?,
        };
        let is_link = fstat(&next)?.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFLNK.bits();
        if !is_link || ahead.is_empty() && !follow && !must_be_folder {
            here = next;
            continue;
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(Errno::ELOOP.into());
        }
        if fstatfs(&here)?.filesystem_type() == PROC_SUPER_MAGIC {
            let folder = PathBuf::from(readlink(&*by_handle(&here))?);
            let notice = caller.notice;
            if folder != Path::new(PROC) {
                // A magic link, which leads to a file without a path.
                is_foreign |= !is_of(caller, &folder)?;
                here = openat(&here, &*name, HANDLE, Mode::empty())?;
                continue;
            }
            if name == "self" || name == "thread-self" {
                let process = caller.identity()?.process;
                if name == "thread-self" {
                    walk_first(Path::new(&format!("{process}/task/{}", notice.tid)), &mut ahead);
                } else {
                    walk_first(Path::new(&process.to_string()), &mut ahead);
                }
                continue;
            }
        }
        let target = PathBuf::from(readlinkat(&next, "")?);
        if target.has_root() {
            here = root()?;
        }
        walk_first(&target, &mut ahead);
    }
    let found = Resolved { is_foreign, ..Resolved::new(here)? };
    if must_be_folder && found.kind() != SFlag::S_IFDIR {
        return Err(Errno::ENOTDIR.into());
    }
    Ok(Target::Found(found))
}

/// Whether a folder below `/proc` belongs to the caller.
fn is_of(caller: &CallingProcess, folder: &Path) -> Result<bool, Errno> {
    let names = within(Path::new(PROC), folder).and_then(|names| names.iter().next()?.to_str());
    let Some(process) = names.and_then(|name| name.parse::<u32>().ok()) else { return Ok(false) };
    Ok(caller.notice.tid.cast_unsigned() == process || caller.identity()?.process == process)
}

fn root() -> Result<OwnedFd, Errno> {
    open("/", HANDLE | OFlag::O_DIRECTORY, Mode::empty())
}

fn identity(stat: &FileStat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}
