//! The text of one configuration file, at the time it was read.

use std::path::{Path, PathBuf};

use super::errors::ConfigErrors;
use super::source::read;

/// The text of a configuration at the time it was read.
#[derive(Clone, Debug)]
pub struct Source {
    pub(super) file: PathBuf,
    pub(super) text: String,
}

impl Source {
    pub fn read(file: &Path) -> Result<Self, ConfigErrors> {
        match read(file) {
            Ok(text) => Ok(Self { file: file.to_owned(), text }),
            Err((text, fault)) => Err(ConfigErrors::new(file, text, vec![fault])),
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}
