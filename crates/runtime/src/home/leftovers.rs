//! Cleans up after killed runs: their remaining processes and temporary folders.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::process;
use crate::process::Launcher;
use crate::serve::{self, Remains, StaleRun};
use crate::zone::{DRAFTS, remove_recorded};
use std::time::Duration;

/// The prefix of our temporary folders; no other folder is ever removed.
pub(crate) const PREFIX: &str = "eisen-";

/// Cleans up after every killed run of this `$EISEN_DIR`. Blocks, possibly for seconds.
pub(crate) fn clean(eisen_dir: &Path) {
    match serve::stale_runs(eisen_dir) {
        Ok(runs) => runs.into_iter().for_each(clean_after),
        Err(error) => tracing::warn!(%error, "cannot look for leftovers of killed runs"),
    }
}

/// The remains to clean up if this run is killed, as far as they are known before it starts anything.
pub(crate) fn remains() -> Remains {
    Remains {
        started: process::start_of(std::process::id()).unwrap_or_default(),
        boot: process::boot().unwrap_or_default(),
        mark: process::marker().to_owned(),
        ..Remains::default()
    }
}

/// Ends the processes of a killed run, and removes its temporary folders and its run file.
pub(crate) fn clean_after(run: StaleRun) {
    let (team, pid) = (run.info.team.clone(), run.info.pid);
    let Remains { started, boot, mark, group, folders, workspace: _ } = &run.info.remains;
    let same_boot = process::boot().is_some_and(|now| now == *boot);
    if same_boot && process::start_of(pid) == Some(*started) {
        // Its lock was removed by hand.
        tracing::warn!(team, pid, "this run lost its lock but is still running: left alone");
        return;
    }
    let ended =
        if same_boot && !mark.is_empty() { process::end_run(mark, group.as_deref()) } else { 0 };
    let drafts = folders.iter().filter(|folder| folder.ends_with(DRAFTS));
    let drafts: usize = drafts.map(|folder| remove_recorded(folder)).sum();
    let removed = folders.iter().filter(|folder| remove(folder)).count();
    if ended > 0 || removed > 0 || drafts > 0 {
        tracing::warn!(
            team,
            pid,
            processes = ended,
            folders = removed,
            drafts,
            "cleaned up after a run that was killed"
        );
    }
    run.forget();
}

/// Removes one of our temporary folders; returns whether it existed.
fn remove(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    let is_ours = folder
        .symlink_metadata()
        .is_ok_and(|meta| meta.is_dir() && meta.uid() == nix::unistd::geteuid().as_raw());
    if !is_ours || !name.is_some_and(|name| name.starts_with(PREFIX)) {
        return false;
    }
    process::remove_folder(folder)
        .inspect_err(|error| {
            tracing::warn!(folder = %folder.display(), %error, "cannot remove a leftover folder");
        })
        .is_ok()
}

/// How long killed processes may take to end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Waits until all started processes have ended; returns whether they have.
pub(crate) async fn drained(launcher: &Launcher) -> bool {
    let drained = tokio::time::timeout(DRAIN_TIMEOUT, launcher.drained()).await.is_ok();
    if !drained {
        tracing::error!("killed processes have not ended yet");
    }
    drained
}
