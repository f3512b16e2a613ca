//! Resolves paths to real paths. Reads the disk, and knows no zone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use nix::errno::Errno;
#[cfg(target_os = "linux")]
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};

use crate::model::{fold, goes_up, walk_first};

/// The kernel's limits, in bytes with the final NUL, and in links on one path. Past either it
/// opens nothing, so nothing can be judged.
pub(super) const PATH_MAX: usize = 4096;
const LINKS_MAX: usize = 40;

/// The file at the end of the path walked so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Here {
    Folder,
    Leaf,
    Missing,
}

/// Reads an absolute path as the kernel does: component by component, each link where it is met,
/// `..` from where that led. Missing names are taken as they are, so that a new file, or one that a
/// write through a dangling link would make, is found where it would land.
///
/// Returns None where the kernel would find nothing, or something else for each process that
/// looks: loops, `..` behind what is no folder, folders that may not be searched, links of procfs.
pub(super) fn real(path: &Path) -> Option<PathBuf> {
    without_links(path).or_else(|| walk(path))
}

/// Resolves a path with one call instead of one for each component. `None` if that is not possible:
/// the path has a link or `..`, or the system lacks the call.
pub(super) fn without_links(path: &Path) -> Option<PathBuf> {
    let named = (path.has_root() && !goes_up(path)).then(|| fold(path))?;
    (named.as_os_str().len() < PATH_MAX && meets_no_link(&named)).then_some(named)
}

#[cfg(target_os = "linux")]
fn meets_no_link(path: &Path) -> bool {
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC);
    let opened = openat2(AT_FDCWD, path, how.resolve(ResolveFlag::RESOLVE_NO_SYMLINKS));
    // No path leads on from a missing entry, or from one that is no folder.
    matches!(opened, Ok(_) | Err(Errno::ENOENT | Errno::ENOTDIR))
}

#[cfg(not(target_os = "linux"))]
fn meets_no_link(_path: &Path) -> bool {
    false
}

pub(super) fn walk(path: &Path) -> Option<PathBuf> {
    walk_by(path, &mut |_| {})
}

/// All names that decide where a path leads: the path as it is spelled, each link on it, and
/// the real path.
pub(super) fn names(path: &Path) -> Vec<PathBuf> {
    let mut names = vec![fold(path)];
    let real = walk_by(path, &mut |link| names.push(link.to_owned()));
    names.extend(real);
    names.sort();
    names.dedup();
    names
}

/// Calls `link` with the real path of each link.
fn walk_by(path: &Path, link: &mut dyn FnMut(&Path)) -> Option<PathBuf> {
    let mut real = PathBuf::from("/");
    let mut here = Here::Folder;
    let mut links = 0;
    let mut ahead = Vec::new();
    walk_first(path, &mut ahead);
    while let Some(name) = ahead.pop() {
        if name == ".." {
            if here != Here::Folder {
                return None;
            }
            real.pop();
            continue;
        }
        real.push(name);
        if here != Here::Folder {
            here = Here::Missing;
            continue;
        }
        match fs::symlink_metadata(&real) {
            Ok(found) if found.is_symlink() => {
                links += 1;
                if links > LINKS_MAX || real.starts_with("/proc") {
                    return None;
                }
                link(&real);
                let target = fs::read_link(&real).ok()?;
                real.pop();
                if target.has_root() {
                    real.push("/");
                }
                walk_first(&target, &mut ahead);
            }
            Ok(found) => here = if found.is_dir() { Here::Folder } else { Here::Leaf },
            Err(error) if error.kind() == io::ErrorKind::NotFound => here = Here::Missing,
            Err(_) => return None,
        }
    }
    (real.as_os_str().len() < PATH_MAX).then_some(real)
}
