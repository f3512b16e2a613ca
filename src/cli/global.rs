//! The options of every command.

use std::path::{Path, PathBuf};

use clap::Args;

/// The options of every command. `options` says in whose help each is shown.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of every command")]
pub(super) struct Global {
    /// The team [default: `EISEN_TEAM`, the team of this folder, or the only running one]
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) team: Option<String>,
    /// Working directory
    #[arg(long, global = true, value_name = "PATH")]
    pub(super) cwd: Option<PathBuf>,
    /// TCP port to listen on (0: any free port) [default: 17320, or the configuration's]; for
    /// commands to a running team, the port of that team
    #[arg(long, global = true, hide = true, value_name = "N")]
    pub(super) port: Option<u16>,
    /// Id of the observed agent [default: the command's file name]
    #[arg(long, global = true, hide = true, value_name = "ID")]
    pub(super) agent_id: Option<String>,
    /// Session id to show on the port until the observed agent opens a session
    #[arg(long, global = true, hide = true, value_name = "ID")]
    pub(super) session_id: Option<String>,
}

/// A file of the folder that `--cwd` names, or of this one.
pub(super) fn in_folder(folder: Option<PathBuf>, file: &Path) -> PathBuf {
    folder.map_or_else(|| file.to_owned(), |folder| folder.join(file))
}
