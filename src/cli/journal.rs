//! Finds the journal of a team, running or gone, for the commands that read it.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use clap::Args;

use super::Global;
use super::output::note;
use super::team::environment;
use crate::home;
use crate::journal::Store;
use crate::program::Failure;
use crate::runs::{find_run, is_of_run};
use crate::serve::client::{Connection, Target};
use crate::wire::{ListEvents, ListEventsParams};

/// Selects a team, running or gone.
#[derive(Args, Clone, Debug)]
pub(super) struct WhichJournal {
    /// The team, also one that is gone [default: `EISEN_TEAM`, the team of this folder, the running
    /// team, or the only one with a journal]
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) team: Option<String>,
    /// The journal of a run: its id, or the beginning of it
    #[arg(long, global = true, value_name = "RUN", conflicts_with = "team")]
    run: Option<String>,
    /// A journal at another place
    #[arg(long, global = true, value_name = "PATH", conflicts_with_all = ["team", "run"])]
    file: Option<PathBuf>,
}

impl WhichJournal {
    /// Whether the command line names a journal.
    pub(super) fn is_named(&self) -> bool {
        self.team.is_some() || self.run.is_some() || self.file.is_some()
    }

    /// The place of the journal.
    pub(super) fn path(&self, global: &Global) -> Result<PathBuf, Failure> {
        if let Some(file) = &self.file {
            return Ok(global.cwd.clone().unwrap_or_default().join(file));
        }
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let team = self.team_name(global, &eisen_dir).map_err(Failure::Run)?;
        Ok(home::journal_place(&eisen_dir, &team))
    }

    /// Whether a file is named in place of a team.
    pub(super) fn is_file(&self) -> bool {
        self.file.is_some()
    }

    pub(super) fn open(&self, global: &Global) -> Result<Store, Failure> {
        let path = self.path(global)?;
        Store::open(&path).map_err(|error| Failure::Run(error.into()))
    }

    /// Opens the journal once a running team has recorded all events so far.
    pub(super) async fn open_settled(&self, global: &Global) -> Result<Store, Failure> {
        if self.file.is_none()
            && let Ok(eisen_dir) = home::eisen_dir()
            && let Ok(team) = self.team_name(global, &eisen_dir)
            && let Ok(target) =
                Target::find(&environment(global, &eisen_dir), &eisen_dir, Some(&team), global.port)
        {
            settle(&target).await;
        }
        self.open(global)
    }

    /// The team, running or gone.
    pub(super) fn team(&self, global: &Global, eisen_dir: &Path) -> Result<String, Failure> {
        if let Some(file) = &self.file {
            let store = Store::open(&global.cwd.clone().unwrap_or_default().join(file));
            let team = store.and_then(|store| store.meta("team"));
            return team.map(Option::unwrap_or_default).map_err(|error| Failure::Run(error.into()));
        }
        self.team_name(global, eisen_dir).map_err(Failure::Run)
    }

    /// The team that the command line names, by its name or by its run.
    pub(super) fn named(&self, eisen_dir: &Path) -> anyhow::Result<Option<String>> {
        match (&self.team, &self.run) {
            (Some(team), _) if !crate::config::is_name(team) => {
                bail!("`{team}` is no name of a team");
            }
            (Some(team), _) => Ok(Some(team.clone())),
            (None, Some(run)) => Ok(Some(find_run(eisen_dir, run)?.state()?.team)),
            (None, None) => Ok(None),
        }
    }

    fn team_name(&self, global: &Global, eisen_dir: &Path) -> anyhow::Result<String> {
        if let Some(team) = self.named(eisen_dir)? {
            return Ok(team);
        }
        let environment = environment(global, eisen_dir);
        if let Ok(target) = Target::find(&environment, eisen_dir, None, global.port)
            && home::journal_place(eisen_dir, target.team()).is_file()
        {
            return Ok(target.team().to_owned());
        }
        let folder = global.cwd.clone().unwrap_or_default();
        let here = home::journals_of(eisen_dir, &folder);
        if let [team] = &here[..] {
            return Ok(team.clone());
        }
        if here.len() > 1 {
            bail!(
                "several teams worked in this folder: say which with --team: {}",
                here.join(", ")
            );
        }
        let mut teams = home::teams_with_journals(eisen_dir);
        // A run is found by its id, and makes no command ask.
        if teams.iter().any(|team| !is_of_run(team)) {
            teams.retain(|team| !is_of_run(team));
        }
        match teams.len() {
            0 => bail!("there is no journal in {}", eisen_dir.join("teams").display()),
            1 => teams.pop().ok_or_else(|| anyhow!("there is no journal")),
            _ => bail!("several teams have a journal: say which with --team: {}", teams.join(", ")),
        }
    }
}

/// A reading request waits until earlier changes are recorded. If the team fails to do so, the
/// command shows the rest.
async fn settle(target: &Target) {
    let asked = async {
        let mut connection = Connection::open(target).await?;
        let one = ListEventsParams { limit: Some(1), ..ListEventsParams::default() };
        connection.ask::<ListEvents>(&one).await
    };
    if let Err(error) = asked.await {
        note(format_args!("note: the running team did not record its last changes: {error}"));
    }
}
