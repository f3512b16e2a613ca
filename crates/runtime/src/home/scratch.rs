//! Temporary folders of a run: the copy of the workspace, and the agents' private folders. Each is
//! recorded in the ledger, so that the next start removes it if this run is killed.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::TempDir;

use crate::config;
use crate::home::leftovers;
use crate::ignored::{Further, Ignored};
use crate::serve::Ledger;

/// Copies a workspace to a temporary folder, which is removed on drop. Copies files, folders and
/// symbolic links, without ignored files.
fn copy(workspace: &Path, ledger: &Ledger) -> anyhow::Result<TempDir> {
    let create = || {
        let path = new_path()?;
        ledger.add_folder(&path)?;
        create(&path)
    };
    let scratch =
        create().context("cannot create a temporary folder for the copy of the workspace")?;
    let ignored = Ignored::new(workspace, Further { above: true, of_user: true });
    let mut walk = ignore::WalkBuilder::new(workspace);
    walk.standard_filters(false).filter_entry(move |entry| !ignored.has(entry));
    for entry in walk.build() {
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

/// Returns the folder that the team works on, with the copy if it is one.
pub(crate) fn workspace(
    team: &config::Team,
    ledger: &Ledger,
) -> anyhow::Result<(Option<TempDir>, PathBuf)> {
    let scratch = team.scratch.then(|| copy(&team.workspace, ledger)).transpose()?;
    let workspace = scratch.as_ref().map_or(&*team.workspace, TempDir::path).to_owned();
    Ok((scratch, workspace))
}

/// Creates the parent of the agents' private temporary folders, which is removed on drop. `path` is
/// recorded already.
pub(crate) fn private(path: &Path) -> anyhow::Result<TempDir> {
    create(path).context("cannot create a folder for the temporary files of agents")
}

/// The path of a new temporary folder. It is recorded before it is made: the run may be killed at any
/// moment.
pub(crate) fn new_path() -> std::io::Result<PathBuf> {
    let name = format!("{}{:016x}", leftovers::PREFIX, fastrand::u64(..));
    Ok(std::path::absolute(std::env::temp_dir())?.join(name))
}

/// Whether a path is named like a copy that a team works on.
pub fn is_copy(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let number = name.and_then(|name| name.strip_prefix(leftovers::PREFIX));
    number.is_some_and(|it| it.len() == 16 && it.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Creates a temporary folder for its owner alone.
fn create(path: &Path) -> std::io::Result<TempDir> {
    let (parent, name) = (path.parent(), path.file_name());
    let owners = Permissions::from_mode(0o700);
    tempfile::Builder::new()
        .prefix(name.unwrap_or_default())
        .rand_bytes(0)
        .permissions(owners)
        .tempdir_in(parent.unwrap_or(path))
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
