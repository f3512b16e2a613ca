//! Finds the real path of a descriptor's file, and checks it.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use nix::errno::Errno;
use nix::fcntl::{ResolveFlag, readlink};
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::calling_process::DELETED;
use super::lookup::{LookupFlags, openat2_path};
use super::raw::{self, Standing};

/// Why a path or a descriptor leads to no file that could be judged.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Unresolved {
    Fails(Errno),
    /// The file is not at this path, which its link reports.
    Elsewhere(PathBuf),
}

impl From<Errno> for Unresolved {
    fn from(errno: Errno) -> Self {
        Self::Fails(errno)
    }
}

/// How often a file may be moved between reading its link and checking its path.
const LOOKS: usize = 3;

/// The path of a descriptor's link, if it leads back to the same file. It does not if the file was
/// opened in another mount namespace, where paths begin at another root; such a descriptor is
/// refused.
///
/// The kernel marks a file that is no longer at its path, though it may have other names; it is
/// judged by the old path, if that is on one of our mounts. A file in no folder, such as memory,
/// has no root.
pub(super) fn place(handle: &OwnedFd) -> Result<PathBuf, Unresolved> {
    let mut link = PathBuf::new();
    for _ in 0..LOOKS {
        link = PathBuf::from(readlink(&*by_handle(handle))?);
        if !link.has_root() {
            return Ok(link);
        }
        let standing = raw::standing(handle)?;
        if stands(&link) == Ok(standing) {
            return Ok(link);
        }
        if Some(standing.mount) == *MEMORY {
            return Ok(link.strip_prefix("/").unwrap_or(&link).to_owned());
        }
        let Some(place) = link.as_os_str().as_bytes().strip_suffix(DELETED.as_bytes()) else {
            // It may have been moved meanwhile.
            continue;
        };
        let place = Path::new(OsStr::from_bytes(place));
        let around = place.ancestors().skip(1).find_map(|folder| stands(folder).ok());
        if around.is_some_and(|around| around.mount == standing.mount) {
            return Ok(place.to_owned());
        }
    }
    Err(Unresolved::Elsewhere(link))
}

/// The inode and mount at a real path.
fn stands(real: &Path) -> Result<Standing, Errno> {
    let ways = LookupFlags { resolve: ResolveFlag::RESOLVE_NO_SYMLINKS, ..LookupFlags::STAY };
    let handle = match openat2_path(None, real, ways) {
        // The user may lack search permission above, and have inherited the descriptor.
        Err(Errno::EACCES) => raw::with_own_rights(|| openat2_path(None, real, ways)),
        handle => handle,
    };
    raw::standing(handle?)
}

/// The mount of memory files, which no path reaches.
static MEMORY: LazyLock<Option<u64>> = LazyLock::new(|| {
    let memory = memfd_create(c"", MFdFlags::MFD_CLOEXEC).ok()?;
    raw::standing(memory).ok().map(|standing| standing.mount)
});

/// A path that leads to a descriptor's file.
pub(super) fn by_handle(handle: impl AsFd) -> String {
    format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;
    use std::io::Read;
    use std::process::{Child, Command, Stdio};

    use nix::fcntl::{OFlag, open};
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use nix::sys::stat::Mode;

    use super::*;

    const HANDLE: OFlag = OFlag::O_PATH.union(OFlag::O_CLOEXEC);

    #[test]
    fn what_was_replaced_is_judged_by_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        let held = |name: &str| open(&at(name), HANDLE, Mode::empty()).unwrap();
        fs::write(at(".env"), "secret").unwrap();
        let handle = held(".env");
        // It still has another name, which the kernel does not report.
        fs::hard_link(at(".env"), at("kept")).unwrap();
        fs::write(at("new"), "").unwrap();
        fs::rename(at("new"), at(".env")).unwrap();
        assert_eq!(place(&handle).unwrap(), at(".env"));

        fs::write(at("odd (deleted)"), "").unwrap();
        assert_eq!(place(&held("odd (deleted)")).unwrap(), at("odd (deleted)"));
        let handle = held("odd (deleted)");
        fs::remove_file(at("odd (deleted)")).unwrap();
        assert_eq!(place(&handle).unwrap(), at("odd (deleted)"));
    }

    /// A process with a world of mounts of its own, in which it has the mounts of ours.
    fn elsewhere() -> Option<Child> {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", "echo; exec cat"]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        // Some kernels and some machines forbid it.
        if child.stdout.as_mut()?.read(&mut [0]).ok()? == 0 {
            let _ = child.wait();
            return None;
        }
        Some(child)
    }

    #[test]
    fn what_was_opened_among_other_mounts_is_not_believed() {
        let Some(mut child) = elsewhere() else { return };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().canonicalize().unwrap().join("file");
        fs::write(&file, "").unwrap();
        let theirs = format!("/proc/{}/root{}", child.id(), file.display());
        let handle = open(&*theirs, HANDLE, Mode::empty());
        let living = handle.as_ref().map(place);
        let deleted = fs::remove_file(&file).map(|()| handle.as_ref().map(place));
        child.kill().unwrap();
        child.wait().unwrap();
        let ended = handle.as_ref().map(place);
        for found in [living, deleted.unwrap(), ended] {
            let found = found.unwrap();
            assert!(matches!(found, Err(Unresolved::Elsewhere(_))), "{found:?}");
        }
    }

    #[test]
    fn what_lies_in_no_folder_has_no_root() {
        let memory = memfd_create(c"here", MFdFlags::MFD_CLOEXEC).unwrap();
        let path = by_handle(&memory);
        let handle = open(&*path, HANDLE, Mode::empty()).unwrap();
        assert_eq!(place(&handle).unwrap(), Path::new("memfd:here (deleted)"));
        let (pipe, _other) = nix::unistd::pipe().unwrap();
        assert!(!place(&pipe).unwrap().has_root());
    }
}
