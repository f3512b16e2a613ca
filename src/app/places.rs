//! Creates folders that must exist before agents start: the kernel's path rules need existing
//! paths.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use crate::config::{Agent, Config, Confine};

/// Creates the output folders of builds; logs a warning for each failure.
pub(super) fn make_for_builds(config: &Config) {
    let workspace = &config.team.workspace;
    for folder in &config.zones.build {
        if let Err(error) = make_inside(workspace, Path::new(folder)) {
            tracing::warn!(
                folder,
                %error,
                "cannot create a folder of `[zones] build`: programs built in it may not run"
            );
        }
    }
}

/// Creates the writable folders of an agent's profile, so that `confine = "strict"` can grant them:
/// the confined agent could not create them itself.
pub(super) fn make_for_profile(agent: &Agent) {
    if agent.zone.confine != Confine::Strict {
        return;
    }
    for place in agent.confined.writable.iter().filter(|place| is_folder(place)) {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(place);
        if let Err(error) = made {
            tracing::info!(agent = %agent.id, place = %place.display(), %error, "cannot create a folder of the profile");
        }
    }
}

/// Whether a missing path should become a folder: paths with an extension (`.claude.json`) are
/// files.
fn is_folder(place: &Path) -> bool {
    place.symlink_metadata().is_err() && place.extension().is_none()
}

/// Makes a folder and those above it, never beyond a link that leads out of the workspace.
fn make_inside(workspace: &Path, folder: &Path) -> io::Result<()> {
    let mut place = workspace.canonicalize()?;
    let top = place.clone();
    for name in folder {
        place.push(name);
        match std::fs::create_dir(&place) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        place = place.canonicalize()?;
        if !place.is_dir() || !place.starts_with(&top) {
            return Err(io::Error::other("it is not a folder of the workspace"));
        }
    }
    Ok(())
}
