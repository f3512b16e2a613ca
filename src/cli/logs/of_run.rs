//! The logs of a one-shot run: its agent's, and what its process says in the background.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::tail::Tail;
use super::{FolderWatch, LogFormat, LogWriter, Logs, folder_made, logged, unreadable};
use crate::cli::Global;
use crate::cli::output::{self, note};
use crate::cli::team::{environment, run_named};
use crate::config::is_name;
use crate::program::Failure;
use crate::runs::RunFolder;
use crate::serve::client::Target;

/// The name of a detached run's process before its lines.
const CONSOLE: &str = "console";

/// How often one who follows looks whether the supervisor lives: its death changes no file.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

impl Logs {
    /// The run that is meant by the only argument. An agent of that name that has a log wins.
    pub(super) fn run_meant(
        &self,
        global: &Global,
        eisen_dir: &Path,
    ) -> Result<Option<RunFolder>, Failure> {
        let [name] = &self.agents[..] else { return Ok(None) };
        if self.which.team.is_some() || global.port.is_some() {
            return Ok(None);
        }
        let meant = run_named(eisen_dir, name);
        if let Ok(None) = meant {
            return Ok(None);
        }
        let team = Target::find(&environment(global, eisen_dir), eisen_dir, None, None);
        let folder = team.map(|team| eisen_dir.join("logs").join(team.team()));
        if folder.is_ok_and(|folder| logged(&folder).contains(name)) {
            return Ok(None);
        }
        meant
    }

    /// Shows the logs of a run; follows them to its end.
    pub(super) fn show_run(&self, run: &RunFolder, eisen_dir: &Path) -> Result<(), Failure> {
        let logs = RunLogs::of(run, eisen_dir);
        let watch = self.follow.then(|| logs.watch()).transpose().map_err(Failure::Run)?;
        let (mut tails, names) = logs.tails();
        if names.is_empty() && !self.follow {
            note(format_args!("the run {} has written no log", run.id()));
        }
        let format = LogFormat { raw: self.raw, json: self.json };
        // One who follows may get lines of another log later.
        let is_only = names.len() == 1 && !self.follow;
        let mut output = LogWriter::new(&names, is_only, format);
        for tail in &mut tails {
            for line in tail.begin(self.lines).map_err(|error| unreadable(tail, error))? {
                output.line(tail.agent(), &line)?;
            }
        }
        let Some(watch) = watch else { return Ok(()) };
        output::end_with_reader();
        loop {
            // What it wrote before its end is read after this look.
            let has_ended = run.state().map_or(true, |state| state.status.is_final());
            for tail in logs.tails().0 {
                if tails.iter().all(|known| known.agent() != tail.agent()) {
                    output.add(tail.agent());
                    tails.push(tail);
                }
            }
            for tail in &mut tails {
                let mut lines = tail.advance().map_err(|error| unreadable(tail, error))?;
                lines.extend(tail.unfinished().filter(|_| has_ended));
                for line in lines {
                    output.line(tail.agent(), &line)?;
                }
            }
            if has_ended || !run.path().is_dir() {
                return Ok(());
            }
            watch.wait_for(LOOK_AGAIN);
        }
    }
}

/// Where the logs of a run are.
struct RunLogs {
    /// The folder of its agent's logs.
    folder: PathBuf,
    console: PathBuf,
}

impl RunLogs {
    fn of(run: &RunFolder, eisen_dir: &Path) -> Self {
        // A state that names no team is none of ours.
        let team = run.state().map(|state| state.team).ok().filter(|team| is_name(team));
        let team = team.unwrap_or_else(|| run.team());
        Self { folder: eisen_dir.join("logs").join(team), console: run.console() }
    }

    fn watch(&self) -> anyhow::Result<FolderWatch> {
        folder_made(&self.folder)?;
        let mut watch = FolderWatch::of(&self.folder)?;
        if let Some(folder) = self.console.parent() {
            watch.also(folder)?;
        }
        Ok(watch)
    }

    /// The logs that there are, with their names.
    fn tails(&self) -> (Vec<Tail>, Vec<String>) {
        let agents: BTreeSet<_> = logged(&self.folder);
        let mut tails: Vec<_> = agents.iter().map(|agent| Tail::new(&self.folder, agent)).collect();
        if self.console.metadata().is_ok_and(|it| it.is_file() && it.len() > 0) {
            tails.push(Tail::of_file(CONSOLE, self.console.clone()));
        }
        let names = tails.iter().map(|tail| tail.agent().to_owned()).collect();
        (tails, names)
    }
}
