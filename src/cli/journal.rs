//! Finds the journal of a team, running or gone, for the commands that look back.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use clap::Args;

use super::Global;
use crate::app::{self, Failure};
use crate::journal::Store;
use crate::serve::client::{Environment, Target};

/// Selects a team, running or gone.
#[derive(Args, Clone, Debug)]
pub(super) struct WhichJournal {
    /// The team, also one that is gone [default: `EISEN_TEAM`, the running team, or the only one
    /// with a journal]
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) team: Option<String>,
    /// A journal at another place
    #[arg(long, global = true, value_name = "PATH", conflicts_with = "team")]
    file: Option<PathBuf>,
}

impl WhichJournal {
    /// Whether the command line says which.
    pub(super) fn is_named(&self) -> bool {
        self.team.is_some() || self.file.is_some()
    }

    /// The place of the journal.
    pub(super) fn path(&self, global: &Global) -> Result<PathBuf, Failure> {
        if let Some(file) = &self.file {
            return Ok(global.cwd.clone().unwrap_or_default().join(file));
        }
        let eisen_dir = app::eisen_dir().map_err(Failure::Usage)?;
        let team = self.team_name(global, &eisen_dir).map_err(Failure::Run)?;
        Ok(app::journal_place(&eisen_dir, &team))
    }

    /// Whether a file is named in place of a team.
    pub(super) fn is_file(&self) -> bool {
        self.file.is_some()
    }

    pub(super) fn open(&self, global: &Global) -> Result<Store, Failure> {
        let path = self.path(global)?;
        Store::open(&path).map_err(|error| Failure::Run(error.into()))
    }

    fn team_name(&self, global: &Global, eisen_dir: &std::path::Path) -> anyhow::Result<String> {
        if let Some(team) = &self.team {
            if !crate::config::is_name(team) {
                bail!("`{team}` is no name of a team");
            }
            return Ok(team.clone());
        }
        let environment = Environment::of_process();
        if let Ok(target) = Target::find(&environment, eisen_dir, None, global.port)
            && app::journal_place(eisen_dir, target.team()).is_file()
        {
            return Ok(target.team().to_owned());
        }
        let mut teams = app::teams_with_journals(eisen_dir);
        match teams.len() {
            0 => bail!("there is no journal in {}", eisen_dir.join("teams").display()),
            1 => teams.pop().ok_or_else(|| anyhow!("there is no journal")),
            _ => bail!("several teams have a journal: say which with --team: {}", teams.join(", ")),
        }
    }
}
