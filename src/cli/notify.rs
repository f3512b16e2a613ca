//! `notify test`: tries whether notices arrive.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Subcommand};

use super::Global;
use super::output::print;
use crate::app::{self, Failure};

/// Try the notices of a configuration
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core notify test

Notices are configured by `[[notify]]`, and sent while a team is up.")]
pub(super) struct NotifyArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Send a notice by each `[[notify]]` of a configuration, and say what came of it
    ///
    /// No team needs to run. An address that fails is tried again for half a minute.
    #[command(after_help = "\
Examples:
  eisen-core notify test
  eisen-core notify test -c config/night.toml

Exit codes: 0 all were sent, 1 one was not, 2 wrong usage or configuration, or no `[[notify]]`.")]
    Test {
        /// The team's configuration
        #[arg(short, long, value_name = "FILE", default_value = "eisen.toml")]
        config: PathBuf,
    },
}

impl NotifyArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let What::Test { config } = self.what;
        let eisen_dir = app::eisen_dir().map_err(Failure::Usage)?;
        let file = super::in_folder(global.cwd.clone(), &config);
        let mut failed = 0;
        for (what, sent) in app::try_notices(&file, &eisen_dir).await? {
            match sent {
                Ok(()) => print(format_args!("sent: {what}"))?,
                Err(why) => {
                    failed += 1;
                    print(format_args!("failed: {what}\n  {why}"))?;
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
