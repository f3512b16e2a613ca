//! `notify test`: sends a test notice by each configured `[[notify]]`.

use anyhow::anyhow;
use clap::{Args, Subcommand};

use super::Global;
use super::config_file::ConfigFile;
use super::output::print;
use crate::app;
use crate::home;
use crate::program::Failure;

/// Test the notices of a configuration
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core team notify test

Notices are configured by `[[notify]]`, and sent while a team is running.")]
pub(super) struct NotifyArgs {
    #[command(subcommand)]
    command: NotifyCommand,
}

#[derive(Subcommand, Debug)]
enum NotifyCommand {
    /// Send a test notice by each `[[notify]]` of a configuration, and report the results
    ///
    /// No team needs to be running. A failing address is retried for half a minute.
    #[command(after_help = "\
Examples:
  eisen-core team notify test
  eisen-core team notify test -c config/night.toml

Exit codes: 0 all were sent, 1 one failed, 2 wrong usage or configuration, or no `[[notify]]`.")]
    Test {
        #[command(flatten)]
        file: ConfigFile,
    },
}

impl NotifyArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let NotifyCommand::Test { file } = self.command;
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let file = file.find(global.cwd.clone());
        let mut failed = 0;
        for (channel, sent) in app::try_notices(&file, &eisen_dir).await? {
            match sent {
                Ok(()) => print(format_args!("sent: {channel}"))?,
                Err(why) => {
                    failed += 1;
                    print(format_args!("failed: {channel}\n  {why}"))?;
                }
            }
        }
        match failed {
            0 => Ok(()),
            1 => Err(Failure::Run(anyhow!("one notice was not sent"))),
            _ => Err(Failure::Run(anyhow!("{failed} notices were not sent"))),
        }
    }
}
