//! Path lookup by `openat2`: the kernel resolves a path to a descriptor.

use std::os::fd::OwnedFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};

pub(super) const HANDLE: OFlag = OFlag::O_PATH.union(OFlag::O_CLOEXEC);

/// The lookup options of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct LookupFlags {
    /// Follow a link at the end.
    pub(super) last: bool,
    /// The path must exist.
    pub(super) present: bool,
    /// The `resolve` flags of `openat2`.
    pub(super) resolve: ResolveFlag,
}

impl LookupFlags {
    pub(super) const FOLLOW: Self =
        Self { last: true, present: false, resolve: ResolveFlag::empty() };
    pub(super) const STAY: Self = Self { last: false, ..Self::FOLLOW };
}

/// Lets the kernel resolve a path, except through links of procfs, which differ for each process.
pub(super) fn openat2_path(
    base: Option<&OwnedFd>,
    path: &Path,
    lookup: LookupFlags,
) -> Result<OwnedFd, Errno> {
    let flags = if lookup.last { HANDLE } else { HANDLE | OFlag::O_NOFOLLOW };
    let resolve = lookup.resolve | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    let how = OpenHow::new().flags(flags).resolve(resolve);
    match base {
        Some(base) => openat2(base, path, how),
        None => openat2(AT_FDCWD, path, how),
    }
}
