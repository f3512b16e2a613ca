//! The kept state of a batch, in `$EISEN_DIR/batches`: the run of each task, and the run's subject.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use crate::jobs::batch::live_runs::look;
use crate::kept::{Durable, KeptFile};
use crate::program::Failure;
use crate::runs::{FindError, RunFolder, RunState, RunStatus, find_run};

/// Bytes of the file: a task has some hundred.
const LONGEST: u64 = 4 << 20;

/// A batch as it was left.
#[derive(Clone, Debug)]
pub(super) struct KeptBatch {
    place: PathBuf,
    known: KnownBatch,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct KnownBatch {
    file: PathBuf,
    workspace: PathBuf,
    #[serde(default)]
    tasks: BTreeMap<String, KeptTask>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KeptTask {
    pub(super) run: String,
    /// The subject of the run; see [`fingerprint`].
    pub(super) content: String,
    /// A batch has seen its end.
    pub(super) ended: bool,
}

/// The past of a task.
pub(super) enum Past {
    Nothing,
    /// The task is to be done again: the reason, and the run that did not succeed in it.
    Again(String, Option<Box<RunState>>),
    Runs(RunFolder),
    /// The run succeeded, or ended while no batch was there to see it.
    Ended(Box<RunState>),
}

/// The fingerprint of a task and of the runs whose results it gets.
pub(super) fn fingerprint(content: &str, inputs: &[String]) -> String {
    blake3::hash(format!("{content} {inputs:?}").as_bytes()).to_hex()[..32].to_owned()
}

impl KeptBatch {
    /// With `restart` only what still runs is of interest.
    pub(super) fn read(
        eisen_dir: &Path,
        file: &Path,
        workspace: &Path,
        restart: bool,
    ) -> Result<Self, Failure> {
        let name = fingerprint(&format!("{:?}", (file, workspace)), &[]);
        let place = folder_of_batches(eisen_dir).join(format!("{name}.toml"));
        let new = || KnownBatch {
            file: file.to_owned(),
            workspace: workspace.to_owned(),
            tasks: BTreeMap::new(),
        };
        let mut known = match read(&place) {
            Ok(None) => new(),
            Err(_) if restart => new(),
            Err(error) => {
                let help = "--restart begins anew";
                let place = place.display();
                return Err(Failure::Usage(anyhow!("{place} can't be read: {error}: {help}")));
            }
            Ok(Some(known)) => known,
        };
        if restart {
            for task in known.tasks.values_mut() {
                // No task is about this.
                task.content.clear();
            }
        }
        Ok(Self { place, known })
    }

    /// The past of a task. With `decide` a lost run is recorded as lost, so that nobody begins to perform it,
    /// and a run whose task has changed is ended.
    pub(super) fn past(
        &self,
        eisen_dir: &Path,
        id: &str,
        content: &str,
        decide: bool,
    ) -> Result<Past, Failure> {
        let Some(task) = self.known.tasks.get(id) else { return Ok(Past::Nothing) };
        let run = match find_run(eisen_dir, &task.run) {
            Ok(run) => run,
            Err(FindError::Unknown(_) | FindError::Ambiguous { .. }) => {
                return Ok(Past::Again(format!("its run {} was removed", task.run), None));
            }
            Err(error) => return Err(Failure::Run(error.into())),
        };
        let state = if decide { look(&run) } else { run.state().map(final_only) };
        let Ok(state) = state else {
            return Ok(Past::Again(format!("its run {} can't be read", task.run), None));
        };
        if task.content != content {
            let why = if task.content.is_empty() { "--restart" } else { "it has changed" };
            if state.is_none() && decide {
                // The new one does not wait for its end, but for its slot and memory.
                if let Ok(state) = run.kept() {
                    state.signal(Signal::SIGTERM);
                }
            }
            let lost = state.filter(|state| state.status != RunStatus::Succeeded);
            return Ok(Past::Again(why.to_owned(), lost.map(Box::new)));
        }
        Ok(match state {
            None => Past::Runs(run),
            Some(state) if state.status == RunStatus::Lost => {
                Past::Again(format!("its run {} was lost", state.id), Some(Box::new(state)))
            }
            Some(state) if task.ended && state.status != RunStatus::Succeeded => {
                let why = format!("its run {} has {}", state.id, ended_as(state.status));
                Past::Again(why, Some(Box::new(state)))
            }
            Some(state) => Past::Ended(Box::new(state)),
        })
    }

    /// Keeps the run of a task.
    pub(super) fn keep(&mut self, id: &str, task: KeptTask) -> Result<(), Failure> {
        self.known.tasks.insert(id.to_owned(), task);
        self.write()
    }

    /// Keeps that the end of a task was seen.
    pub(super) fn ended(&mut self, id: &str) -> Result<(), Failure> {
        match self.known.tasks.get_mut(id) {
            Some(task) if !task.ended => {
                task.ended = true;
                self.write()
            }
            _ => Ok(()),
        }
    }

    /// Takes a task out, until it is kept again.
    pub(super) fn forget(&mut self, id: &str) {
        self.known.tasks.remove(id);
    }

    fn write(&self) -> Result<(), Failure> {
        let replace = || -> anyhow::Result<()> {
            Ok(file(&self.place).replace(toml::to_string(&self.known)?.as_bytes())?)
        };
        replace().context("cannot keep the state of the batch").map_err(Failure::Run)
    }
}

pub(crate) fn folder_of_batches(eisen_dir: &Path) -> PathBuf {
    eisen_dir.join("batches")
}

/// The file of a batch, and its runs.
pub(crate) fn runs_of(place: &Path) -> io::Result<(PathBuf, Vec<String>)> {
    let known = read(place)?.ok_or(ErrorKind::NotFound)?;
    Ok((known.file, known.tasks.into_values().map(|task| task.run).collect()))
}

fn ended_as(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Killed => "been killed",
        RunStatus::TimedOut => "timed out",
        status => status.as_str(),
    }
}

fn final_only(state: RunState) -> Option<RunState> {
    state.status.is_final().then_some(state)
}

fn read(place: &Path) -> io::Result<Option<KnownBatch>> {
    let Some(text) = file(place).read_text()? else { return Ok(None) };
    let invalid = |error: toml::de::Error| io::Error::new(ErrorKind::InvalidData, error.message());
    toml::from_str(&text).map(Some).map_err(invalid)
}

/// The file of a batch: no task is paid for twice.
fn file(place: &Path) -> KeptFile<Durable> {
    KeptFile::new(place, LONGEST)
}
