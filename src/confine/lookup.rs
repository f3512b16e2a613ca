//! `openat2`: the kernel finds a path, and holds what it found by a descriptor.

use std::os::fd::OwnedFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};

pub(super) const HANDLE: OFlag = OFlag::O_PATH.union(OFlag::O_CLOEXEC);

/// How a path is followed, as far as the call has a say in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LookupFlags {
    /// A link at the end is followed.
    pub(super) last: bool,
    /// What is not there yet is of no use.
    pub(super) present: bool,
    /// Of `openat2`.
    pub(super) resolve: ResolveFlag,
}

impl LookupFlags {
    pub(super) const FOLLOW: Self =
        Self { last: true, present: false, resolve: ResolveFlag::empty() };
    pub(super) const STAY: Self = Self { last: false, ..Self::FOLLOW };
}

/// Lets the kernel find a path, all but what differs for each process that looks.
pub(super) fn openat2_path(
    base: Option<&OwnedFd>,
    path: &Path,
    ways: LookupFlags,
) -> Result<OwnedFd, Errno> {
    let flags = if ways.last { HANDLE } else { HANDLE | OFlag::O_NOFOLLOW };
    let resolve = ways.resolve | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    let how = OpenHow::new().flags(flags).resolve(resolve);
    match base {
        Some(base) => openat2(base, path, how),
        None => openat2(AT_FDCWD, path, how),
    }
}
