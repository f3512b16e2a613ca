//! After a kill: what the disk has and the journal lacks becomes events of unknown cause.

use std::path::Path;

use crate::app::rooms::Wiring;
use crate::capture::KnownStates;
use crate::changes::{self, select_where};
use crate::journal::{Store, first_run};
use crate::model::{FileKind, FileState};
use eisen_base::task;

/// Has turns numbered behind those of earlier runs; returns when the last run was killed, if it was.
pub(super) async fn go_on(wiring: &Wiring) -> Option<u64> {
    wiring.go_on_behind_turns().await;
    killed_at(wiring).await
}

/// When the last run was killed: in milliseconds since 1970, and rather early than late.
async fn killed_at(wiring: &Wiring) -> Option<u64> {
    let journal = wiring.journal.clone().filter(|journal| !journal.is_new())?;
    let _ = journal.opened().await;
    let read = move || Store::open(&journal.settings().path).and_then(|store| store.killed_at());
    task::spawn_blocking(read).await.ok()?.ok()?
}

/// Records what a killed run had written and not recorded. Call it before agents start.
pub(super) async fn catch_up(wiring: &Wiring, workspace: &Path, killed_at: Option<u64>) {
    let (Some(capture), Some(journal), Some(since)) =
        (wiring.capture.clone(), wiring.journal.clone(), killed_at)
    else {
        return;
    };
    let workspace = workspace.to_owned();
    let catching =
        task::spawn_blocking(move || match known(&journal.settings().path, &workspace) {
            Ok(known) => capture.catch_up(known, since),
            Err(error) => tracing::warn!(%error, "what the killed run wrote last is not recorded"),
        });
    let _ = catching.await;
}

/// The states that the journal knows of files in the workspace.
fn known(journal: &Path, workspace: &Path) -> Result<KnownStates, changes::SelectError> {
    let store = Store::open(journal)?;
    let mut known = KnownStates::new();
    for change in select_where(&store, &first_run(), &|_| true)?.all {
        if let Some(from) = change.from {
            known.insert(workspace.join(from), None);
        }
        known.insert(workspace.join(change.path), change.after.and_then(state));
    }
    known.retain(|path, _| path.starts_with(workspace));
    Ok(known)
}

fn state(state: changes::FileState) -> Option<FileState> {
    let kind = match state.kind {
        changes::FileKind::File => FileKind::File,
        changes::FileKind::Symlink => FileKind::Symlink,
        changes::FileKind::Folder => FileKind::Folder,
        changes::FileKind::Other => return None,
    };
    let changes::FileState { hash, size, mode, stored, .. } = state;
    Some(FileState { kind, mode, size, hash: hash.map(Into::into), stored })
}
