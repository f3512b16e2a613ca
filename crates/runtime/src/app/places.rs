//! Creates folders that must exist before agents start: the kernel's path rules need existing
//! paths.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use crate::config::Config;

/// Creates the output folders of builds; logs a warning for each failure.
pub(super) fn make_for_builds(config: &Config) {
    let own = config.agents.iter().map(|agent| &*agent.zone.spec.workspace);
    let places: BTreeSet<&Path> = own.chain([&*config.team.workspace]).collect();
    let all = places.iter().flat_map(|place| config.zones.build.iter().map(move |it| (place, it)));
    for (place, folder) in all {
        if let Err(error) = make_inside(place, Path::new(folder)) {
            tracing::warn!(
                folder,
                %error,
                "cannot create a folder of `[zones] build`: programs built in it may not run"
            );
        }
    }
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
