//! Removes a worktree's files, each only as it was accounted for.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::RecoveryError;
use super::objects::SavedRecovery;
use super::scan::{Marks, Scan, mount_of};
use crate::tree::Worktree;

/// Removes all files of a worktree, and its folder. What is not accounted for stops it before anything is removed;
/// what comes meanwhile stays, with the folders above it.
pub(crate) fn remove_files(tree: &Worktree, taken: &SavedRecovery) -> Result<(), RecoveryError> {
    let found = walk(tree, &taken.scan)?;
    for folder in found.folders.iter().chain(&taken.scan.build) {
        make_writable(&tree.path.join(folder));
    }
    for folder in &taken.scan.build {
        let place = tree.path.join(folder);
        for below in folders_below(&place) {
            make_writable(&below);
        }
        fs::remove_dir_all(&place).or_else(gone).map_err(RecoveryError::stays(place))?;
    }
    for path in &found.files {
        let place = tree.path.join(path);
        check(&taken.scan, path, &place)?;
        fs::remove_file(&place).or_else(gone).map_err(RecoveryError::stays(place))?;
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
                check(scan, &path, &entry.path())?;
                found.files.push(path);
            }
        }
    }
    // A folder stands behind those that lead to it.
    found.folders.sort();
    Ok(found)
}

/// Whether a file is as it was when it was accounted for.
fn check(scan: &Scan, path: &Path, place: &Path) -> Result<(), RecoveryError> {
    let marks = scan.kept.get(path).or_else(|| scan.known.get(path));
    let now = place.symlink_metadata().map_err(RecoveryError::at(place))?;
    if marks == Some(&Marks::of(&now)) {
        return Ok(());
    }
    Err(RecoveryError::Unaccounted(place.to_owned()))
}

fn gone(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Lets its owner remove what is in a folder, such as one of a package manager's cache.
fn make_writable(folder: &Path) {
    let Ok(found) = folder.symlink_metadata() else { return };
    let mode = found.mode() & 0o7777;
    if found.is_dir() && mode & 0o700 != 0o700 {
        let _ = fs::set_permissions(folder, Permissions::from_mode(mode | 0o700));
    }
}

/// The folders below a folder, those above before those below.
fn folders_below(top: &Path) -> Vec<PathBuf> {
    let (mut found, mut at) = (vec![top.to_owned()], 0);
    while let Some(folder) = found.get(at).cloned() {
        at += 1;
        make_writable(&folder);
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.push(entry.path());
            }
        }
    }
    found
}
