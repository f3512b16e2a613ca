//! `up`: runs a team, here or detached.

use std::path::PathBuf;

use clap::Args;

use super::output::{escape_controls, note, plain, print};
use super::{ConfigFile, Global, in_folder};
use crate::app::{self, Failure, UpOptions};

/// Run the team of a configuration until SIGINT or SIGTERM
///
/// With --detach it runs on in the background, also when the terminal is closed: the command
/// returns once the team listens, or with its error and exit code. What would be on the screen goes
/// to `$EISEN_DIR/logs/TEAM.console`, and `eisen-core down` stops the team.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core up                        the team of ./eisen.toml
  eisen-core up -c shop/eisen.toml --port 0
  eisen-core up -d                     in the background; then: eisen-core watch, eisen-core down

Says on standard error which port it listens on. A second Ctrl-C kills what still runs.

Exit codes: 0 stopped (with -d: it listens), 1 failed while running (the port is taken, the team
runs already), 2 wrong usage or configuration.")]
pub(super) struct Up {
    #[command(flatten)]
    file: ConfigFile,
    /// Run in the background, and return once the team listens
    #[arg(short, long)]
    detach: bool,
    /// The file that standard output is, of a team that is detached
    #[arg(long, value_name = "FILE", hide = true, conflicts_with = "detach")]
    console: Option<PathBuf>,
}

impl Up {
    pub(super) async fn run(self, global: Global) -> Result<(), Failure> {
        let config = in_folder(global.cwd, &self.file.config);
        let options = UpOptions { config, port: global.port, console: self.console };
        if !self.detach {
            return app::up(options).await;
        }
        let team = app::up_detached(options).await?;
        if !team.said.is_empty() {
            note(escape_controls(&team.said));
        }
        let (info, program) = (&team.info, app::own_command());
        let console = plain(&team.console.display().to_string());
        print(format_args!(
            "{}: up, listens on {} (pid {})\nconsole: {console}\n\
             next: {program} watch, or ps, blocked, logs; {program} down stops the team",
            plain(&info.team),
            info.address,
            info.pid,
        ))
    }
}
