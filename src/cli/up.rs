//! `up`: runs a team, in the foreground or detached.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::Global;
use super::config_file::ConfigFile;
use super::output::{escape_controls, note, plain, print};
use crate::app::{self, UpOptions, WebWish};
use crate::home;
use crate::jobs;
use crate::program::Failure;
use crate::team_file::TeamMode;

/// Run the team of a configuration until SIGINT or SIGTERM
///
/// With --detach the team runs in the background and survives the terminal. The command returns
/// once the team listens on its port, or fails with the team's error and exit code. The team's
/// output is written to `$EISEN_DIR/logs/TEAM.console`. `eisen-core down` stops the team.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core up        the team of eisen.toml, here or above; without a file the
                       agents found on PATH, on this folder's repository
  eisen-core up --agents claude-code,gemini
  eisen-core up -c shop/eisen.toml --port 0
  eisen-core up --prompt \"Add a test for the cart\"
  eisen-core up -d     in the background; then: eisen-core agent watch, eisen-core down
  eisen-core up --web  with a page for the browser; `eisen-core web` prints its link

Prints the port on standard error. A second Ctrl-C kills all agents that still run.

Exit codes: 0 stopped (with -d: started), 1 failed while running (such as: the port is taken, the
team runs already), 2 wrong usage or configuration.")]
pub(super) struct Up {
    #[command(flatten)]
    file: ConfigFile,
    /// Where there is no configuration: the agents, by their profiles [default: up to three that are found
    /// on PATH, those that are logged in first]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', conflicts_with = "config")]
    agents: Vec<String>,
    /// Run in the background; return once the team listens on its port
    #[arg(short, long)]
    detach: bool,
    /// Nobody can be asked: what a person would decide is denied at once
    #[arg(long)]
    unattended: bool,
    /// Send this prompt to the first agent that is ready
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Observe all agents and stop none: only what is denied or asked for is closed in the workspace, and
    /// `eisen-core team learn` proposes zones from what they used
    #[arg(long)]
    observe: bool,
    /// Serve the team's web page [default address: 127.0.0.1:17321, or the configuration's]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true)]
    #[expect(clippy::option_option, reason = "with and without an address")]
    web: Option<Option<SocketAddr>>,
    /// The console file of a detached team, which standard output is redirected to
    #[arg(long, value_name = "FILE", hide = true, conflicts_with = "detach")]
    console: Option<PathBuf>,
}

impl Up {
    pub(super) async fn run(self, global: Global) -> Result<(), Failure> {
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let config = self.file.find_or_make(global.cwd, &eisen_dir, &self.agents)?;
        let (port, web) = (global.port, self.web.map(|at| WebWish { at }));
        let mode = TeamMode { unattended: self.unattended, observe: self.observe };
        let Self { console, prompt, .. } = self;
        let options = UpOptions { config, port, web, console, mode, prompt };
        if !self.detach {
            return app::up(options).await;
        }
        let team = jobs::up_detached(options, &mut |line| note(escape_controls(line))).await?;
        let (info, program) = (&team.info, home::own_command());
        let console = plain(&team.console.display().to_string());
        print(format_args!(
            "{}: up, listens on {} (pid {})\nconsole: {console}\n\
             next: {program} agent watch, or ps, inbox; {program} down stops the team",
            plain(&info.team),
            info.address,
            info.pid,
        ))
    }
}
