//! Owns how an agent's plugin makes its instances, one per run.

use std::path::PathBuf;

use super::approval::Approval;
use super::child::Child;
use super::child_process::ChildSpec;
use super::library::Library;
use super::reader::{RecordReader, Watched};
use crate::process::Launcher;

/// An agent's plugin.
#[derive(Clone, Debug)]
pub struct PluginSource {
    /// The name in the configuration.
    pub name: String,
    /// The configuration, a JSON object.
    pub config: String,
    pub place: Hosting,
}

/// Where the plugin runs.
#[derive(Clone, Debug)]
pub enum Hosting {
    InProcess(Box<Library>),
    /// In a child; the library is not loaded in this process. It needs an approval where the system
    /// lacks confinement.
    Child(PathBuf, Option<Approval>),
}

impl PluginSource {
    /// Makes an instance. A child is started by its first call, with the launcher.
    pub fn instance(&self, launcher: Launcher) -> Result<Box<dyn RecordReader>, String> {
        Ok(match &self.place {
            Hosting::InProcess(library) => {
                Box::new(Watched::new(library, &self.name, &self.config)?)
            }
            Hosting::Child(library, approval) => {
                let (name, config) = (self.name.clone(), self.config.clone());
                let (library, approval) = (library.clone(), *approval);
                Box::new(Child::new(launcher, ChildSpec { name, library, config, approval }))
            }
        })
    }
}
