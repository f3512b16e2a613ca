//! One-shot runs: those that ended long ago or are nobody's, and states that a killed supervisor left.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::care::garbage::files::{age, remove, size};
use crate::care::garbage::{Garbage, Removal, files_of_journal, logs_of};
use crate::home::journals::{journal_place, team_folder};
use crate::journal::{self, Store};
use crate::model::{now_ms, rfc3339};
use crate::runs::{self, RunFolder, RunState, all_runs};

/// Days after its end that a run is kept without `--max-age-days`.
const MAX_AGE_DAYS: u64 = 30;

const DAY_MS: u64 = 86_400_000;

/// How long a folder without a state is left alone: its maker may not have come to hold it yet.
const MAKING: Duration = Duration::from_mins(1);

/// The fate of a run.
#[derive(Debug)]
enum Fate {
    Stays,
    /// Its state is written anew.
    Mended(Box<RunState>, String),
    Removed(String),
}

/// The runs of an `$EISEN_DIR`, as `gc` sees them.
#[derive(Clone, Debug)]
pub(super) struct OneShots {
    eisen_dir: PathBuf,
    max_age_days: u64,
    /// The teams that run.
    running: BTreeSet<String>,
}

/// A change to one run, which is decided again before it is done.
#[derive(Debug)]
pub(super) struct RunChange {
    run: RunFolder,
    among: OneShots,
}

impl OneShots {
    pub(super) fn new(
        eisen_dir: &Path,
        max_age_days: Option<u64>,
        running: &BTreeSet<String>,
    ) -> Self {
        Self {
            eisen_dir: eisen_dir.to_owned(),
            max_age_days: max_age_days.unwrap_or(MAX_AGE_DAYS),
            running: running.clone(),
        }
    }

    /// All that is to be done about runs.
    pub(super) fn garbage(&self) -> anyhow::Result<Vec<Garbage>> {
        let all = all_runs(&self.eisen_dir).context("cannot read the runs")?;
        let mut found: Vec<_> = all.into_iter().filter_map(|run| self.about(run)).collect();
        for folder in runs::set_aside(&self.eisen_dir) {
            found.push(Garbage {
                what: folder.display().to_string(),
                reason: "the rest of a run that was removed".to_owned(),
                bytes: size(&folder),
                team: None,
                removal: Removal::Paths(vec![folder]),
            });
        }
        Ok(found)
    }

    fn about(&self, run: RunFolder) -> Option<Garbage> {
        // A run is held itself while it is changed, which is enough: who performs it holds it, too.
        let team = None;
        let change = |run| Box::new(RunChange { run, among: self.clone() });
        match self.fate(&run) {
            Fate::Stays => None,
            Fate::Mended(_, reason) => Some(Garbage {
                what: format!("state of the run {}", run.id()),
                reason,
                bytes: 0,
                team,
                removal: Removal::MendRun(change(run)),
            }),
            Fate::Removed(reason) => Some(Garbage {
                what: format!("run {}", run.id()),
                reason,
                bytes: self.places(&run).iter().map(|place| size(place)).sum(),
                team,
                removal: Removal::OneShot(change(run)),
            }),
        }
    }

    /// A run that runs always stays: its pid and start time tell, and the lock of its team.
    fn fate(&self, run: &RunFolder) -> Fate {
        let journal = journal_place(&self.eisen_dir, &run.team());
        if self.running.contains(&run.team()) || journal::is_written(&journal) {
            return Fate::Stays;
        }
        let fate = match run.kept() {
            Ok(state) if state.status.is_final() => self.fate_of_ended(run, &state),
            Ok(state) if state.is_supervised() => Fate::Stays,
            Ok(state) => {
                let was = state.status.as_str();
                let reason =
                    format!("its supervisor is gone, and left it `{was}`: it becomes `lost`");
                Fate::Mended(Box::new(run.lost(self.changed_ms(run))), reason)
            }
            Err(error) => self.fate_without_state(run, error.kind(), &journal),
        };
        match fate {
            Fate::Removed(_) if is_pinned(&journal) => Fate::Stays,
            fate => fate,
        }
    }

    fn fate_of_ended(&self, run: &RunFolder, state: &RunState) -> Fate {
        let ended = state.ended_at_ms.unwrap_or(state.started_at_ms);
        let oldest = now_ms().saturating_sub(self.max_age_days.saturating_mul(DAY_MS));
        if ended <= oldest {
            let (day, days) = (rfc3339(ended / 1000), self.max_age_days);
            let day = day.get(..10).unwrap_or(&day);
            return Fate::Removed(format!("it ended on {day}, `--max-age-days` is {days}"));
        }
        match run.parent() {
            Some(parent) if !run.path().with_file_name(&parent).exists() => {
                Fate::Removed(format!("its parent, the run {parent}, is gone"))
            }
            _ => Fate::Stays,
        }
    }

    fn fate_without_state(&self, run: &RunFolder, kind: ErrorKind, journal: &Path) -> Fate {
        let why = match kind {
            ErrorKind::NotFound => "it has no state",
            ErrorKind::InvalidData | ErrorKind::FileTooLarge => "its state can't be read",
            // It may be readable the next time.
            _ => return Fate::Stays,
        };
        if age(run.path()).is_none_or(|age| age < MAKING) {
            return Fate::Stays;
        }
        if run.has_answer() || journal.exists() {
            let state = Box::new(run.lost(self.changed_ms(run)));
            return Fate::Mended(state, format!("{why}: it becomes `lost`"));
        }
        Fate::Removed(format!("{why}, and nobody performs it"))
    }

    /// When the run last changed anything.
    fn changed_ms(&self, run: &RunFolder) -> u64 {
        let places = [run.path().to_owned(), team_folder(&self.eisen_dir, &run.team())];
        let since = places.iter().filter_map(|place| age(place)).min().unwrap_or_default();
        now_ms().saturating_sub(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// All that a run leaves, its own folder first.
    fn places(&self, run: &RunFolder) -> Vec<PathBuf> {
        let (team, eisen_dir) = (run.team(), &self.eisen_dir);
        let mut places = vec![run.path().to_owned()];
        places.extend(files_of_journal(&journal_place(eisen_dir, &team)).unwrap_or_default());
        places.push(team_folder(eisen_dir, &team));
        places.push(eisen_dir.join("teams").join(format!("{team}.json")));
        places.extend(logs_of(eisen_dir, &team));
        // Files of a journal are in the team's folder where no other place was set.
        let folder = team_folder(eisen_dir, &team);
        places.retain(|place| *place == folder || !place.starts_with(&folder));
        places.retain(|place| place.symlink_metadata().is_ok());
        places
    }
}

impl RunChange {
    pub(super) fn journal(&self) -> PathBuf {
        journal_place(&self.among.eisen_dir, &self.run.team())
    }

    pub(super) fn team(&self) -> String {
        self.run.team()
    }

    /// Does what is right by now.
    pub(super) fn apply(self) -> anyhow::Result<()> {
        let Self { run, among } = self;
        let Some(_held) = run.try_hold()? else {
            bail!("another process works on the run {}", run.id());
        };
        match among.fate(&run) {
            Fate::Stays => Ok(()),
            Fate::Mended(state, _) => Ok(run.keep(&state)?),
            Fate::Removed(_) => {
                // The state goes last, and with the answer: a run never has one without the other.
                let places = among.places(&run);
                places.iter().skip(1).try_for_each(|place| remove(place))?;
                remove(&run.set_aside()?)
            }
        }
    }
}

fn is_pinned(journal: &Path) -> bool {
    journal.exists()
        && Store::open(journal).and_then(|it| it.pins()).is_ok_and(|pins| !pins.is_empty())
}

#[cfg(test)]
mod tests;
