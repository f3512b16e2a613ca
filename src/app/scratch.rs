use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context;
use tempfile::TempDir;

use super::leftovers;
use crate::serve::Ledger;

/// Copies a workspace to a temporary folder that goes with the value, or with the next start if
/// this run is killed. Symbolic links are copied as
/// they are; ignored files are left behind, and so is what is neither file, folder nor link.
pub(super) fn copy(workspace: &Path, ledger: &Ledger) -> anyhow::Result<TempDir> {
    let scratch =
        noted(ledger).context("cannot make a temporary folder for the copy of the workspace")?;
    for entry in ignore::WalkBuilder::new(workspace).hidden(false).require_git(false).build() {
        let entry = entry.with_context(|| format!("cannot read {}", workspace.display()))?;
        let from = entry.path();
        let Ok(relative) = from.strip_prefix(workspace) else { continue };
        let to = scratch.path().join(relative);
        copy_entry(from, &to, entry.file_type())
            .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    }
    tracing::info!(folder = %scratch.path().display(), "the team works on a copy");
    Ok(scratch)
}

/// Makes the folder that holds the private temporary folders of agents, for its owner alone. It
/// goes with the value, or with the next start if this run is killed.
pub(super) fn private(ledger: &Ledger) -> anyhow::Result<TempDir> {
    noted(ledger).context("cannot make a folder for the temporary files of agents")
}

/// Makes a temporary folder for its owner alone, which is noted before: a run may be killed at any
/// moment.
fn noted(ledger: &Ledger) -> anyhow::Result<TempDir> {
    let name = format!("{}{:016x}", leftovers::PREFIX, fastrand::u64(..));
    let folder = std::path::absolute(std::env::temp_dir())?;
    ledger.add_folder(&folder.join(&name))?;
    let owners = Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new()
        .prefix(&name)
        .rand_bytes(0)
        .permissions(owners)
        .tempdir_in(folder)?;
    Ok(folder)
}

fn copy_entry(from: &Path, to: &Path, kind: Option<std::fs::FileType>) -> std::io::Result<()> {
    match kind {
        Some(kind) if kind.is_dir() => std::fs::create_dir_all(to),
        Some(kind) if kind.is_symlink() => {
            std::os::unix::fs::symlink(std::fs::read_link(from)?, to)
        }
        Some(kind) if kind.is_file() => std::fs::copy(from, to).map(|_| ()),
        _ => Ok(()),
    }
}
