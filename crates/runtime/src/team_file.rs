//! Owns what a team is started from: its file with what was laid over it, the file of a run, and the plugins that it
//! names, each tried before anything starts.

pub(crate) mod load;
pub(crate) mod of_run;
pub(crate) mod plugins;

pub use load::{load, read, shared_config};
pub use of_run::RunOptions;
pub use plugins::{check_plugin, describe_plugin};
