//! Confines one run of an agent: its wall, its doorkeeper and its private temporary folder.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eisen_base::task;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::doorkeeper::{AgentDoorkeeper, DoorkeeperConfig};
use super::{AgentSettings, Surroundings};
use crate::capture::RunFiles;
use crate::confine::Confinement;
use crate::kept::make_folder;
use crate::process::{self, Launcher, remove_folder};
use crate::proxy::{LiveCalls, Rules, Vitals};
use crate::zone::Reach;

/// How an agent's zone is enforced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneEnforcement {
    /// The kernel confines the agent and its child processes.
    pub by_kernel: bool,
    /// Kernel features that are missing for full enforcement.
    pub lacks: Arc<[String]>,
    /// The agent is observed, and stopped only where it is denied or asked for.
    pub observes: bool,
}

/// The private TMPDIR of a run. Dropping it removes the folder, which blocks.
#[derive(Debug)]
pub(super) struct Private(PathBuf);

/// The running tool calls of a run, its liveness, and the capture of its files: all of its guards have them.
#[derive(Clone)]
pub(super) struct RunParts {
    pub(super) running: Arc<LiveCalls>,
    pub(super) vitals: Arc<Vitals>,
    pub(super) files: Option<RunFiles>,
}

impl AgentSettings {
    /// The rules by which the agent is judged.
    pub(super) fn rules(&self) -> Rules {
        let Self { zone, bounds, orchestrator_permits, on_violation, on_loop, host, .. } = self;
        Rules {
            zone: zone.clone(),
            bounds: bounds.clone(),
            orchestrator_permits: *orchestrator_permits,
            has_tools: host.tools.is_some(),
            on_violation: *on_violation,
            on_loop: *on_loop,
        }
    }

    /// The rules from the start of a run on.
    pub(super) fn begin(&self, rules: &watch::Sender<Rules>) -> watch::Receiver<Rules> {
        rules.send_replace(self.rules());
        rules.subscribe()
    }

    /// The rules that replace others. A run that is not observed begins to be with its next start.
    pub(super) fn rules_after(&self, runs: bool, before: &watch::Sender<Rules>) -> Rules {
        let rules = self.rules();
        let Some(written) = self.zone.written().filter(|_| runs) else { return rules };
        let before = before.borrow();
        if before.zone.written().is_some() {
            return rules;
        }
        let bounds = match rules.bounds.as_ref().map(|bounds| bounds.written()) {
            None => None,
            Some(Some(Ok(bounds))) => Some(Arc::new(bounds)),
            // The bounds of the open zone would stop nothing.
            Some(Some(Err(_)) | None) => return before.clone(),
        };
        Rules { zone: Arc::clone(written), bounds, ..rules }
    }

    pub(super) fn enforcement(&self) -> ZoneEnforcement {
        ZoneEnforcement {
            by_kernel: self.bounds.is_some(),
            lacks: self.kernel_lacks.clone(),
            observes: self.zone.written().is_some(),
        }
    }
}

/// Returns the launcher of a run's processes, confined if the settings require it, and the
/// temporary folder to keep for the run; the error is the reason why the agent cannot start.
///
/// The wall is compiled at each start, for the files that exist then.
pub(super) async fn confine(
    launcher: Launcher,
    settings: &AgentSettings,
    team: &Surroundings,
    rules: watch::Receiver<Rules>,
    parts: RunParts,
) -> Result<(Launcher, Option<Private>), String> {
    let Some(bounds) = settings.bounds.clone() else { return Ok((launcher, None)) };
    let RunParts { running, vitals, files } = parts;
    let doorkeeper = AgentDoorkeeper::new(DoorkeeperConfig {
        agent: settings.id.clone(),
        bounds: bounds.clone(),
        rules,
        routing: team.routing.clone(),
        tracker: team.tracker.clone(),
        running,
        vitals,
        workspace: team.workspace.clone(),
        observe_files: settings.observe_files,
        patience: settings.patience,
        files,
        conflicts: team.conflicts.as_ref().map(|it| it.of_agent(settings.id.clone())),
        tally: team.tally.clone(),
        age: process::age_of,
        handle: Handle::current(),
    });
    let outside = team.ungranted.clone();
    let built = task::spawn_blocking(move || {
        if let Some(moved) = bounds.moved() {
            return Err(moved.to_string());
        }
        let private = Private::create(&bounds.reach().private).map_err(|error| {
            let folder = bounds.reach().private.display();
            format!("cannot make its temporary folder `{folder}`: {error}")
        })?;
        make_folders(bounds.reach());
        let confinement = Confinement::build(&bounds, &outside, doorkeeper);
        let confinement = confinement.map_err(|error| format!("cannot confine it: {error}"))?;
        Ok((launcher.confined(Arc::new(confinement)), Some(private)))
    });
    built.await.unwrap_or_else(|error| Err(format!("cannot confine it: {error}")))
}

/// Creates the writable folders of an agent's profile outside the workspace. A strictly confined
/// agent could not create their parents; for any other one, programs in a folder that is made later
/// can't be executed. Then the sealed folders in them that it would make itself, and may not. A folder that
/// cannot be created is missing for the agent too.
fn make_folders(reach: &Reach) {
    let folders = reach.writable.iter().filter(|place| place.is_folder()).chain(&reach.made);
    for folder in folders.filter(|place| place.real.symlink_metadata().is_err()) {
        if let Err(error) = folder.make() {
            let folder = folder.real.display();
            tracing::debug!(%folder, %error, "cannot make a folder of an agent's profile");
        }
    }
}

/// Whether it is an empty folder for its owner alone.
fn is_as_made(folder: &Path) -> bool {
    let is_private = fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && found.permissions().mode() & 0o7777 == 0o700);
    is_private && fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

impl Private {
    fn create(folder: &Path) -> io::Result<Self> {
        if is_as_made(folder) {
            return Ok(Self(folder.to_owned()));
        }
        // A run that was killed with its supervisor may have left the folder.
        match remove_folder(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        make_folder(folder)?;
        Ok(Self(folder.to_owned()))
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if let Err(error) = remove_folder(&self.0) {
            let folder = self.0.display();
            tracing::warn!(%folder, %error, "cannot remove an agent's temporary folder");
        }
    }
}
