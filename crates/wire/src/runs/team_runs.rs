//! The runs that agents of one team start: who started each, and which have ended.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eisen_base::task;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::folder::RunFolder;
use super::{FindError, RunId, RunState, run_of};

/// The runs of a team since its start; cheap to clone.
#[derive(Clone, Debug)]
pub struct TeamRuns {
    place: Arc<TeamHome>,
    started: Arc<Mutex<StartedRuns>>,
    /// How many have ended.
    ended: watch::Sender<usize>,
}

#[derive(Debug)]
struct TeamHome {
    eisen_dir: PathBuf,
    team: String,
    /// Teams above the team.
    depth: u32,
}

#[derive(Default, Debug)]
struct StartedRuns {
    /// Oldest first. As many as agents may start.
    runs: Vec<Begun>,
    /// Why no more are started.
    closed: Option<String>,
}

#[derive(Clone, Debug)]
struct Begun {
    id: String,
    /// The helper that works on it.
    agent: String,
    /// The agents above the helper, up from the one that started it.
    above: Vec<String>,
    /// Why it is being ended.
    ending: Option<String>,
    has_ended: bool,
    stop_reason: Option<String>,
    zone: Option<RunZone>,
}

/// The files that an agent of a run can have read in its session.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct RunZone {
    /// Patterns.
    pub reads: Vec<String>,
    pub denied: Vec<String>,
}

impl RunZone {
    /// All files that an agent can have read when it goes on with the session of another.
    #[must_use]
    pub fn and(mut self, earlier: &Self) -> Self {
        let new = earlier.reads.iter().filter(|pattern| !self.reads.contains(pattern));
        let new: Vec<_> = new.cloned().collect();
        self.reads.extend(new);
        self.denied.retain(|pattern| earlier.denied.contains(pattern));
        self
    }
}

/// A run as its folder has it.
#[derive(Clone, Debug)]
pub struct FoundRun {
    pub state: RunState,
    /// None: it has not ended.
    pub answer: Option<String>,
    pub stop_reason: Option<String>,
    /// The agent that works on it.
    pub agent: String,
}

/// The result of a wait for runs.
#[derive(Clone, Debug)]
pub struct FoundRuns {
    pub runs: Vec<FoundRun>,
    /// The wait is not over.
    pub timed_out: bool,
}

/// A run can't begin: its team ends, by this reason.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no more runs are started: {0}")]
pub struct EndedTeam(String);

impl TeamRuns {
    pub fn new(eisen_dir: PathBuf, team: &str, depth: u32) -> Self {
        let place = TeamHome { eisen_dir, team: team.to_owned(), depth };
        Self { place: Arc::new(place), started: Arc::default(), ended: watch::Sender::new(0) }
    }

    pub fn team(&self) -> &str {
        &self.place.team
    }

    pub fn eisen_dir(&self) -> &Path {
        &self.place.eisen_dir
    }

    /// Levels of runs and teams above a run whose agent is a helper of this depth.
    pub fn depth_of(&self, helper: u32) -> u32 {
        self.place.depth.saturating_add(helper)
    }

    /// Makes the folder of a run.
    pub fn folder(&self, id: RunId) -> std::io::Result<RunFolder> {
        RunFolder::create(&self.place.eisen_dir, id)
    }

    /// Notes a run that `agent` will work on; `above` are the agents above it, up from the one that
    /// starts the run.
    pub fn begin(&self, id: RunId, agent: &str, above: &[String]) -> Result<(), EndedTeam> {
        let mut started = self.started.lock();
        if let Some(reason) = &started.closed {
            return Err(EndedTeam(reason.clone()));
        }
        started.runs.push(Begun {
            id: id.to_string(),
            agent: agent.to_owned(),
            above: above.to_vec(),
            ending: None,
            has_ended: false,
            stop_reason: None,
            zone: None,
        });
        Ok(())
    }

    /// Notes what the agent of a run can read.
    pub fn note_zone(&self, id: RunId, zone: RunZone) {
        let id = id.to_string();
        if let Some(run) = self.started.lock().runs.iter_mut().find(|run| run.id == id) {
            run.zone = Some(zone);
        }
    }

    /// The files that the agent of a run could read; None: they are not known.
    pub fn zone_of(&self, id: &str) -> Option<RunZone> {
        self.started.lock().runs.iter().find(|run| run.id == id)?.zone.clone()
    }

    /// Forgets a run that could not be started.
    pub fn forget(&self, id: RunId) {
        let id = id.to_string();
        self.started.lock().runs.retain(|run| run.id != id);
    }

    /// The name of a run by its agents, up from the lowest: the lowest run of them, else the lowest agent with
    /// its team.
    pub fn name(&self, agents: &[String]) -> Option<String> {
        let run = agents.iter().find_map(|agent| self.run(agent));
        let run = run.or_else(|| run_of(&self.place.team).map(str::to_owned));
        run.or_else(|| Some(self.member(agents.first()?)))
    }

    /// The name of each of these agents, up from the lowest, with the run whose team this is.
    pub fn names(&self, agents: &[String]) -> Vec<String> {
        let top = agents.len().saturating_sub(1);
        let name = |(at, agent): (usize, &String)| match (self.run(agent), run_of(self.team())) {
            (Some(run), _) => run,
            (None, Some(run)) if at == top => run.to_owned(),
            (None, _) => self.member(agent),
        };
        agents.iter().enumerate().map(name).collect()
    }

    /// The variables of an agent's environment about its run; `agents` are it and those above it.
    pub fn variables(&self, agents: &[String]) -> Vec<(&'static str, String)> {
        let run = agents.iter().position(|agent| self.run(agent).is_some());
        let own = run.and_then(|at| Some((self.run(&agents[at])?, self.name(&agents[at + 1..]))));
        let top = || run_of(&self.place.team).map(|run| (run.to_owned(), None));
        let Some((run, parent)) = own.or_else(top) else { return Vec::new() };
        let parent = parent.map(|parent| ("EISEN_PARENT", parent));
        [("EISEN_RUN", run)].into_iter().chain(parent).collect()
    }

    /// Says why the run of a helper is about to be ended; the first reason counts.
    pub fn ends(&self, agent: &str, reason: &str) {
        let mut started = self.started.lock();
        let run = started.runs.iter_mut().find(|run| run.agent == agent && !run.has_ended);
        if let Some(run) = run {
            run.ending.get_or_insert_with(|| reason.to_owned());
        }
    }

    /// All runs end, and no more begin.
    pub fn close(&self, reason: &str) {
        let mut started = self.started.lock();
        started.closed.get_or_insert_with(|| reason.to_owned());
        for run in started.runs.iter_mut().filter(|run| !run.has_ended) {
            run.ending.get_or_insert_with(|| reason.to_owned());
        }
    }

    /// Why a run was ended by somebody; None: by nobody.
    pub fn ending(&self, id: RunId) -> Option<String> {
        let id = id.to_string();
        let started = self.started.lock();
        started.runs.iter().find(|run| run.id == id)?.ending.clone()
    }

    /// The final state of a run is kept.
    pub fn ended(&self, id: RunId, stop_reason: Option<String>) {
        let id = id.to_string();
        if let Some(run) = self.started.lock().runs.iter_mut().find(|run| run.id == id) {
            run.has_ended = true;
            run.stop_reason = stop_reason;
        }
        self.ended.send_modify(|ended| *ended += 1);
    }

    /// Waits until all runs have ended whose end is under way.
    pub async fn settled(&self) {
        let mut ended = self.ended.subscribe();
        while self.started.lock().runs.iter().any(|run| !run.has_ended) {
            if ended.changed().await.is_err() {
                return;
            }
        }
    }

    /// The helpers that work on these runs, as far as they have not ended.
    pub fn workers(&self, by: Option<&str>, wanted: &[String]) -> Result<Vec<String>, FindError> {
        let runs = self.started.lock().find(by, wanted)?;
        Ok(runs.into_iter().filter(|run| !run.has_ended).map(|run| run.agent).collect())
    }

    /// Waits until these runs have ended, or with `any` one of them; those of all agents, or those
    /// that `by` has started, or agents below it. With none named it finds all. Reads the disk.
    pub async fn wait(
        &self,
        by: Option<&str>,
        wanted: &[String],
        any: bool,
        deadline: Instant,
    ) -> Result<FoundRuns, FindError> {
        let mut ended = self.ended.subscribe();
        loop {
            ended.borrow_and_update();
            let runs = self.started.lock().find(by, wanted)?;
            let has_ended = |run: &Begun| run.has_ended;
            let is_over = if any && !runs.is_empty() {
                runs.iter().any(has_ended)
            } else {
                runs.iter().all(has_ended)
            };
            let is_late =
                !is_over && !matches!(timeout_at(deadline, ended.changed()).await, Ok(Ok(())));
            if is_over || is_late {
                let runs = self.read(runs).await?;
                return Ok(FoundRuns { runs, timed_out: is_late });
            }
        }
    }

    async fn read(&self, runs: Vec<Begun>) -> std::io::Result<Vec<FoundRun>> {
        let eisen_dir = self.place.eisen_dir.clone();
        let read = move || {
            let found = |run: Begun| {
                let folder = RunFolder::of(&eisen_dir, &run.id);
                let state = match folder.state() {
                    // It is being started.
                    Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                    state => state?,
                };
                let is_final = state.status.is_final();
                let answer = is_final.then(|| folder.answer()).transpose()?;
                Ok(Some(FoundRun { state, answer, stop_reason: run.stop_reason, agent: run.agent }))
            };
            runs.into_iter().filter_map(|run| found(run).transpose()).collect()
        };
        task::spawn_blocking(read).await.map_err(std::io::Error::other)?
    }

    /// The run that an agent works on.
    fn run(&self, agent: &str) -> Option<String> {
        let started = self.started.lock();
        started.runs.iter().find(|run| run.agent == agent).map(|run| run.id.clone())
    }

    fn member(&self, agent: &str) -> String {
        format!("{}/{agent}", self.place.team)
    }
}

impl StartedRuns {
    /// The runs with these beginnings, in their order; all if there are none.
    fn find(&self, by: Option<&str>, wanted: &[String]) -> Result<Vec<Begun>, FindError> {
        let is_below = |run: &&Begun| by.is_none_or(|by| run.above.iter().any(|above| above == by));
        let visible: Vec<_> = self.runs.iter().filter(is_below).collect();
        if wanted.is_empty() {
            return Ok(visible.into_iter().cloned().collect());
        }
        let find = |wanted: &String| {
            let begins = wanted.to_ascii_uppercase();
            let mut found = visible.iter().filter(|run| run.id.starts_with(&begins));
            match (found.next(), found.next()) {
                (Some(one), None) => Ok(Begun::clone(one)),
                (None, _) => Err(FindError::Unknown(wanted.clone())),
                (Some(first), Some(second)) => {
                    let all = [*first, *second].into_iter().chain(found.copied());
                    let found = all.map(|run| run.id.clone()).collect();
                    Err(FindError::Ambiguous { wanted: wanted.clone(), found })
                }
            }
        };
        wanted.iter().map(find).collect()
    }
}

#[cfg(test)]
mod tests;
