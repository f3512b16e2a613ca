//! Loads a team's configuration: its file, and the agents added and removed over the port.

use std::path::Path;

use super::{Failure, environment};
use crate::config::{LayerError, Layered, SharedConfig, TryOut};

/// Loads a configuration together with the agents added and removed over the port, and tests its
/// plugins.
pub fn load(file: &Path, eisen_dir: &Path) -> Result<Layered, Failure> {
    layered(file, eisen_dir, super::plugins::try_out(eisen_dir))
}

/// Like [`load`], without testing plugins.
pub fn read(file: &Path, eisen_dir: &Path) -> Result<Layered, Failure> {
    layered(file, eisen_dir, Box::new(|_| Ok(true)))
}

/// Reads what the user's teams and runs share, with the `eisen.toml` of a folder laid over it; without
/// one, with that of the git repository around the folder.
pub fn shared_config(folder: &Path) -> Result<SharedConfig, Failure> {
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let top = folder.ancestors().find(|folder| folder.join(".git").exists());
    let file = [Some(folder), top].into_iter().flatten().map(|folder| folder.join("eisen.toml"));
    let file = file.into_iter().find(|file| file.symlink_metadata().is_ok());
    SharedConfig::read(&eisen_dir, file.as_deref()).map_err(super::config_errors)
}

fn layered(file: &Path, eisen_dir: &Path, try_out: Box<TryOut>) -> Result<Layered, Failure> {
    Layered::load(file, eisen_dir, try_out).map_err(|error| match error {
        LayerError::File(errors) => super::config_errors(errors),
        error => Failure::Usage(error.into()),
    })
}
