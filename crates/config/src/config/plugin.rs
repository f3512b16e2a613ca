//! A plugin of the configuration.

use std::path::PathBuf;

use crate::model::named;

/// A library that translates the protocol of some agents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plugin {
    pub name: String,
    pub path: PathBuf,
    pub isolation: Isolation,
    /// A JSON object.
    pub config: String,
    /// The plugin can enforce a zone, according to its trial.
    pub gates: bool,
}

named! {
    /// Where a plugin runs.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub enum Isolation {
        /// In a confined child process, one for each run of an agent.
        #[default]
        Process = "process",
        /// In this process, if the user approved the library.
        InProcess = "in-process",
    }
}
