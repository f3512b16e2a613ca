//! Finds the git folders of a workspace as git does, and those of its submodules. Reads the disk.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::libc::O_NONBLOCK;
use nix::unistd::geteuid;

use super::MODULES;
use crate::zone::real::{PATH_MAX, real};

/// Folders that are looked at for submodules.
const MOST_MODULES: usize = 4096;

/// The `.git` that git finds from the workspace upwards, the git folder, and the one that it
/// shares with other worktrees.
///
/// Agents may read its target, so a pointer to a folder that is no repository, or one of another
/// user in a folder above, is not followed.
pub(super) fn repository(workspace: &Path) -> Option<Vec<PathBuf>> {
    let owners = [fs::metadata(workspace).ok()?.uid(), geteuid().as_raw()];
    for folder in workspace.ancestors() {
        let entry = folder.join(".git");
        let Ok(found) = fs::metadata(&entry) else { continue };
        let git = if found.is_dir() {
            real(&entry)?
        } else {
            real(&folder.join(pointer(&entry, "gitdir: ")?))?
        };
        let common = match pointer(&git.join("commondir"), "") {
            Some(common) => real(&git.join(common))?,
            None => git.clone(),
        };
        let owner = fs::symlink_metadata(&entry).ok()?.uid();
        if is_repository(&git, &common) && owners.contains(&owner) {
            return Some(vec![entry, git, common]);
        }
        if !found.is_dir() {
            return None;
        }
    }
    None
}

/// The git folders of submodules below the folders of a repository, and of those in them, each before
/// the one around it. Follows no link.
pub(super) fn submodules(own: &[PathBuf]) -> Vec<PathBuf> {
    let mut ahead: Vec<PathBuf> = own.iter().skip(1).map(|git| git.join(MODULES)).collect();
    let (mut modules, mut seen) = (Vec::new(), 0);
    while let Some(folder) = ahead.pop() {
        // Their names are folders of folders.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            seen += 1;
            if seen > MOST_MODULES {
                tracing::warn!(
                    folder = %folder.display(),
                    "too many folders of submodules: commits in some of them are denied"
                );
                return modules;
            }
            let path = entry.path();
            if is_repository(&path, &path) {
                ahead.push(path.join(MODULES));
                modules.push(path);
            } else {
                ahead.push(path);
            }
        }
    }
    modules.sort_unstable_by(|one, other| other.cmp(one));
    modules.dedup();
    modules
}

fn is_repository(git: &Path, common: &Path) -> bool {
    git.join("HEAD").symlink_metadata().is_ok()
        && common.join("objects").is_dir()
        && common.join("refs").is_dir()
}

/// The path in a file that points elsewhere.
fn pointer(file: &Path, key: &str) -> Option<String> {
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(file).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(2 * PATH_MAX as u64).read_to_string(&mut text).ok()?;
    Some(text.strip_prefix(key)?.trim_end_matches(['\n', '\r']).to_owned())
}
