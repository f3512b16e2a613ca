//! Loads a team's configuration: its file, and the agents added and removed over the port.

use std::path::Path;

use super::Failure;
use crate::config::{LayerError, Layered, TryOut};

/// Loads a configuration together with the agents added and removed over the port, and tests its
/// plugins.
pub fn load(file: &Path, eisen_dir: &Path) -> Result<Layered, Failure> {
    layered(file, eisen_dir, super::plugins::try_out(eisen_dir))
}

/// Like [`load`], without testing plugins.
pub fn read(file: &Path, eisen_dir: &Path) -> Result<Layered, Failure> {
    layered(file, eisen_dir, Box::new(|_| Ok(true)))
}

fn layered(file: &Path, eisen_dir: &Path, try_out: Box<TryOut>) -> Result<Layered, Failure> {
    Layered::load(file, eisen_dir, try_out).map_err(|error| match error {
        LayerError::File(errors) => super::config_errors(errors),
        error => Failure::Usage(error.into()),
    })
}
