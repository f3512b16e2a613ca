//! Where the instances of an agent's plugin come from, one for each run.

use std::path::PathBuf;

use super::approval::Approval;
use super::child::Child;
use super::library::Library;
use super::reader::{RecordReader, Watched};
use crate::process::Launcher;

/// An agent's plugin.
#[derive(Clone, Debug)]
pub struct Source {
    /// As the configuration names it.
    pub name: String,
    /// A JSON object.
    pub config: String,
    pub place: Hosting,
}

/// Where it runs.
#[derive(Clone, Debug)]
pub enum Hosting {
    InProcess(Box<Library>),
    /// In a child; the library is not loaded here. Where the system can confine nothing it has to
    /// be approved.
    Child(PathBuf, Option<Approval>),
}

impl Source {
    /// Makes an instance; a child starts with its first call, by the launcher.
    pub fn instance(&self, launcher: Launcher) -> Result<Box<dyn RecordReader>, String> {
        Ok(match &self.place {
            Hosting::InProcess(library) => {
                Box::new(Watched::new(library, &self.name, &self.config)?)
            }
            Hosting::Child(path, approval) => {
                let (name, config) = (self.name.clone(), self.config.clone());
                Box::new(Child::new(launcher, name, path.clone(), config, *approval))
            }
        })
    }
}
