//! Removes a worktree's files, each only as it was accounted for.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::libc::{O_NOFOLLOW, O_PATH};

use super::RecoveryError;
use super::objects::SavedRecovery;
use super::scan::{Marks, Scan, mount_of};
use crate::tree::{Worktree, make_removable};

/// Removes all files of a worktree, and its folder. What is not accounted for stops it before anything is removed;
/// what comes meanwhile stays, with the folders above it.
pub(crate) fn remove_files(tree: &Worktree, taken: &SavedRecovery) -> Result<(), RecoveryError> {
    let found = walk(tree, &taken.scan)?;
    make_removable(&tree.path);
    for folder in &taken.scan.build {
        let place = tree.path.join(folder);
        fs::remove_dir_all(&place).or_else(gone).map_err(RecoveryError::stays(place))?;
    }
    let mut links = HashMap::new();
    for path in &found.files {
        let place = tree.path.join(path);
        check(&taken.scan, path, &place, &links)?;
        remove_one(&place, &mut links).or_else(gone).map_err(RecoveryError::stays(place))?;
    }
    for folder in found.folders.iter().rev() {
        let place = tree.path.join(folder);
        fs::remove_dir(&place).map_err(|_| RecoveryError::Unaccounted(place))?;
    }
    let entry = tree.path.join(".git");
    fs::remove_file(&entry).or_else(gone).map_err(RecoveryError::stays(entry))?;
    let top = &tree.path;
    fs::remove_dir(top).map_err(|_| RecoveryError::Unaccounted(top.clone()))
}

/// Files and folders, those above before those below.
#[derive(Default)]
struct WalkedFiles {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

fn walk(tree: &Worktree, scan: &Scan) -> Result<WalkedFiles, RecoveryError> {
    let device = tree.path.symlink_metadata().map_err(RecoveryError::at(&tree.path))?.dev();
    let mount = mount_of(&tree.path);
    let (mut found, mut ahead) = (WalkedFiles::default(), vec![PathBuf::new()]);
    while let Some(folder) = ahead.pop() {
        let place = tree.path.join(&folder);
        for entry in fs::read_dir(&place).map_err(RecoveryError::at(&place))? {
            let entry = entry.map_err(RecoveryError::at(&place))?;
            let path = folder.join(entry.file_name());
            if path == Path::new(".git") || scan.build.contains(&path) {
                continue;
            }
            let kind = entry.path().symlink_metadata().map_err(RecoveryError::at(entry.path()))?;
            if kind.dev() != device || mount_of(&entry.path()) != mount {
                return Err(RecoveryError::Mounted(entry.path()));
            }
            if kind.is_dir() {
                found.folders.push(path.clone());
                ahead.push(path);
            } else {
                check(scan, &path, &entry.path(), &RemovedNames::new())?;
                found.files.push(path);
            }
        }
    }
    // A folder stands behind those that lead to it.
    found.folders.sort();
    Ok(found)
}

/// Files with further names, by device and number: their marks since one of the names was removed.
type RemovedNames = HashMap<(u64, u64), Marks>;

/// Removes a file. What that changes of its other names is no change of theirs.
fn remove_one(place: &Path, links: &mut RemovedNames) -> std::io::Result<()> {
    let found = place.symlink_metadata()?;
    if found.nlink() < 2 || !found.is_file() {
        return fs::remove_file(place);
    }
    let flags = O_PATH | O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(place)?;
    fs::remove_file(place)?;
    let now = file.metadata()?;
    links.insert((now.dev(), now.ino()), Marks::of(&now));
    Ok(())
}

/// Whether a file is as it was when it was accounted for.
fn check(
    scan: &Scan,
    path: &Path,
    place: &Path,
    links: &RemovedNames,
) -> Result<(), RecoveryError> {
    let marks = scan.kept.get(path).or_else(|| scan.known.get(path));
    let found = place.symlink_metadata().map_err(RecoveryError::at(place))?;
    let now = Marks::of(&found);
    let since = links.get(&(found.dev(), found.ino()));
    let is_as_kept = marks.is_some_and(|marks| match since {
        Some(since) => now == *since && now.is_but_for_names(marks),
        None => now == *marks,
    });
    if is_as_kept { Ok(()) } else { Err(RecoveryError::Unaccounted(place.to_owned())) }
}

fn gone(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
