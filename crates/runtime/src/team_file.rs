//! Owns what a team is started from: its file with what was laid over it, the file of a run, and the plugins that it
//! names, each tried before anything starts.

pub(crate) mod hints;
pub(crate) mod load;
pub(crate) mod mode;
pub(crate) mod of_run;
pub(crate) mod plugins;
pub(crate) mod without_file;

pub use hints::hints;
pub use load::{load, read, shared_config};
pub use mode::TeamMode;
pub use of_run::RunOptions;
pub use plugins::{check_plugin, describe_plugin};
pub use without_file::{WithoutFile, kept_config, nobody_installed, without_file};
