//! `down`: stops teams and reports how each ended.

use std::time::Duration;

use clap::Args;

use super::Global;
use super::output::{plain, print};
use super::team::{Which, environment};
use crate::care;
use crate::care::Downed;
use crate::home;
use crate::program::Failure;

/// Stop a running team
///
/// Stops the team as Ctrl-C does, and waits until all its agents have ended. A team that takes
/// longer than --timeout is killed. Processes and temporary folders left by a killed team are
/// cleaned up.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core down                    stop the team of this folder, or the only one that runs
  eisen-core down --team webshop
  eisen-core down --all              stop every team
  eisen-core down --timeout 5        kill it if it has not ended after five seconds

Exit codes: 0 the team is down, 1 no such team, or it could not be stopped, 2 wrong usage.")]
pub(super) struct Down {
    /// All running teams
    #[arg(long, conflicts_with = "team")]
    all: bool,
    /// Time for an orderly stop before the team is killed
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// Kill the team at once
    #[arg(long)]
    kill: bool,
    #[command(flatten)]
    which: Which,
}

impl Down {
    pub(super) fn run(self, global: &Global) -> Result<(), Failure> {
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let own = std::env::var("EISEN_TEAM").ok().filter(|team| !team.is_empty());
        let named = self.which.team.or(own.filter(|_| global.port.is_none()));
        let order = care::Down {
            team: named.filter(|_| !self.all),
            here: environment(global, &eisen_dir).here,
            port: global.port,
            all: self.all,
            // At most a year, so that adding it to a clock can't overflow.
            timeout: Duration::from_secs(self.timeout.min(365 * 86_400)),
            kill: self.kill,
        };
        let downed = care::down(&eisen_dir, &order).map_err(Failure::Run)?;
        for (team, outcome) in downed {
            let outcome = match outcome {
                Downed::Stopped => "stopped",
                Downed::Killed => "killed",
                Downed::Cleaned => "had been killed; its leftovers are cleaned up",
            };
            print(format_args!("{}: {outcome}", plain(&team)))?;
        }
        Ok(())
    }
}
