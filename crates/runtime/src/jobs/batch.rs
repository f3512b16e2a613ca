//! `batch`: performs the tasks of a file as detached runs, in the order of their dependencies. A batch
//! that is killed leaves its runs alone, and the next one of the same file goes on with them.

mod branch;
mod kept;
mod live_runs;
mod lost;
mod outcome;
mod results;

use std::path::PathBuf;

use anyhow::{Context as _, anyhow};

use self::kept::{KeptBatch, KeptTask, Past, fingerprint};
pub(crate) use self::kept::{folder_of_batches, runs_of};
use self::live_runs::{end_all, look, wait};
pub use self::outcome::{BatchEnd, JobEnd, JobOutcome};
use crate::failover::handover::{PastWork, hand_over};
use crate::home::environment;
use crate::jobs::run::run_detached;
use crate::program::{Failure, StopSignals};
use crate::runs::{RunFolder, RunState, RunStatus, find_run};
use crate::slots::{SlotError, SlotPlace, SlotRequest, Slots, TakenSlot, Wait};
use crate::team_file::RunOptions;
use eisen_base::task;

#[derive(Debug)]
pub struct BatchOptions {
    /// Its real path: the batch is known by it and its workspace.
    pub file: PathBuf,
    pub workspace: PathBuf,
    /// Each behind those that it waits for.
    pub jobs: Vec<BatchJob>,
    pub max_running: usize,
    /// After the first task that does not succeed nothing is started any more.
    pub fail_fast: bool,
    /// The results of earlier batches of the file are not taken over.
    pub restart: bool,
    /// Somebody looks at [`BatchNews::Running`].
    pub is_watched: bool,
}

#[derive(Debug)]
pub struct BatchJob {
    pub id: String,
    /// Places of the jobs that have to succeed before.
    pub after: Vec<usize>,
    /// The subject of the job: if it changes, it is another job.
    pub content: String,
    pub options: RunOptions,
}

/// The news of a batch while it runs.
#[derive(Debug)]
pub enum BatchNews<'a> {
    Note(String),
    Ended(&'a JobEnd),
    /// The jobs that run, each with what its agent did last.
    Running(Vec<(&'a str, Option<String>)>),
}

/// A job as a batch would meet it.
#[derive(Debug)]
pub struct PlannedJob {
    pub id: String,
    pub after: Vec<String>,
    /// Whom it would be given to.
    pub agent: String,
    /// The batch's plan for the job.
    pub plan: String,
}

/// Performs a batch to its end, or until a signal ends it.
pub async fn batch(
    options: BatchOptions,
    report: &mut (dyn FnMut(BatchNews<'_>) + Send),
) -> Result<BatchEnd, Failure> {
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    environment::prepare(&eisen_dir).map_err(Failure::Usage)?;
    let mut signals = StopSignals::listen().map_err(|error| Failure::Run(error.into()))?;
    let _only = only(&options, &eisen_dir).await?;
    let is_watched = options.is_watched;
    let mut work = BatchWork::new(options, eisen_dir)?;
    let mut stopped = None;
    while work.has_more() && stopped.is_none() {
        work.advance(report).await?;
        if work.running.is_empty() {
            continue;
        }
        if is_watched {
            report(BatchNews::Running(work.actions()));
        }
        tokio::select! {
            signal = signals.next() => stopped = Some(signal),
            () = wait() => work.collect(report)?,
        }
    }
    if stopped.is_some() {
        let running: Vec<_> = work.running.iter().map(|(_, run)| run.clone()).collect();
        end_all(&running, &mut signals).await;
        work.collect(report)?;
    }
    Ok(BatchEnd { jobs: work.ends("the batch was stopped"), stopped })
}

/// The jobs as a batch would meet them now.
pub fn plan(options: BatchOptions) -> Result<Vec<PlannedJob>, Failure> {
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let work = BatchWork::new(options, eisen_dir)?;
    // The run of each that is done.
    let (mut planned, mut done): (Vec<PlannedJob>, Vec<Option<String>>) = (Vec::new(), Vec::new());
    for (job, after) in work.jobs.iter().zip(&work.after) {
        let inputs: Option<Vec<String>> = after.iter().map(|at| done[*at].clone()).collect();
        let past = inputs.map(|inputs| {
            let content = fingerprint(&job.content, &inputs);
            work.kept.past(&work.eisen_dir, &job.id, &content, false)
        });
        let (plan, run) = match past.transpose()? {
            None => ("runs if what is before it succeeds".to_owned(), None),
            Some(Past::Nothing) => ("runs".to_owned(), None),
            Some(Past::Again(why, _)) => (format!("runs again: {why}"), None),
            Some(Past::Runs(run)) => (format!("is waited for: the run {}", run.id()), None),
            Some(Past::Ended(state)) if state.status == RunStatus::Succeeded => {
                (format!("is done: the run {}", state.id), Some(state.id))
            }
            Some(Past::Ended(state)) => {
                (format!("has {}: the run {}", state.status.as_str(), state.id), None)
            }
        };
        done.push(run);
        planned.push(PlannedJob {
            id: job.id.clone(),
            after: after.iter().map(|at| work.jobs[*at].id.clone()).collect(),
            agent: job.agent.clone(),
            plan,
        });
    }
    Ok(planned)
}

/// Takes the right to perform the batch; whoever has it is named.
async fn only(options: &BatchOptions, eisen_dir: &std::path::Path) -> Result<TakenSlot, Failure> {
    let place = SlotPlace::Batch(format!("{:?}", (&options.file, &options.workspace)));
    let request = SlotRequest {
        tool_name: "eisen-core batch".to_owned(),
        reason: options.file.display().to_string(),
        ..SlotRequest::default()
    };
    let taken = Slots::new(eisen_dir).acquire(&place, 1, request, Wait::No, |_| {}).await;
    taken.map_err(|error| match error {
        SlotError::Busy(why) => {
            let who = why.split_once("held by ").map_or(&*why, |(_, who)| who);
            Failure::Usage(anyhow!("{} is performed already, by {who}", options.file.display()))
        }
        error => Failure::Run(error.into()),
    })
}

struct WaitingJob {
    id: String,
    /// The branch whose worktree it works in; only one at a time does.
    branch: Option<String>,
    content: String,
    agent: String,
    /// None: it was started, or will not be.
    options: Option<RunOptions>,
    /// An earlier attempt that did not succeed, and why it is done again.
    lost: Option<(String, Box<RunState>)>,
}

/// A batch on its way.
struct BatchWork {
    eisen_dir: PathBuf,
    jobs: Vec<WaitingJob>,
    after: Vec<Vec<usize>>,
    ends: Vec<Option<JobEnd>>,
    running: Vec<(usize, RunFolder)>,
    max_running: usize,
    fail_fast: bool,
    kept: KeptBatch,
    restart: bool,
}

impl BatchWork {
    fn new(options: BatchOptions, eisen_dir: PathBuf) -> Result<Self, Failure> {
        let BatchOptions { file, workspace, jobs, max_running, fail_fast, restart, .. } = options;
        let kept = KeptBatch::read(&eisen_dir, &file, &workspace, restart)?;
        let after = jobs.iter().map(|job| job.after.clone()).collect();
        let waiting = |job: BatchJob| {
            let RunOptions { spec, profile, .. } = &job.options;
            let command = spec.command.first();
            let named = spec.tier.as_ref().or(profile.as_ref()).or(command).cloned();
            WaitingJob {
                id: job.id,
                branch: spec.branch.clone(),
                content: job.content,
                agent: named.unwrap_or_default(),
                options: Some(job.options),
                lost: None,
            }
        };
        let jobs: Vec<_> = jobs.into_iter().map(waiting).collect();
        let ends = jobs.iter().map(|_| None).collect();
        let running = Vec::new();
        Ok(Self { eisen_dir, jobs, after, ends, running, max_running, fail_fast, kept, restart })
    }

    fn has_more(&self) -> bool {
        self.ends.iter().any(Option::is_none)
    }

    fn actions(&self) -> Vec<(&str, Option<String>)> {
        let action = |(at, run): &(usize, RunFolder)| {
            let state = run.kept().ok();
            let doing = state.and_then(|state| state.waits_for.or(state.last_action));
            (self.jobs[*at].id.as_str(), doing)
        };
        self.running.iter().map(action).collect()
    }

    /// Begins what can begin now.
    async fn advance(
        &mut self,
        report: &mut (dyn FnMut(BatchNews<'_>) + Send),
    ) -> Result<(), Failure> {
        for at in 0..self.jobs.len() {
            let is_free = self.ends[at].is_none() && self.running.iter().all(|it| it.0 != at);
            if !is_free || self.after[at].iter().any(|before| self.ends[*before].is_none()) {
                continue;
            }
            let before = self.after[at].iter().filter_map(|before| self.ends[*before].as_ref());
            if let Some(failed) = before.clone().find(|end| !end.has_succeeded()) {
                let why = format!("`{}` is {}", failed.id, failed.status());
                self.end(at, JobOutcome::Skipped(why), false, report);
                continue;
            }
            let inputs = before.filter_map(|end| match &end.outcome {
                JobOutcome::Ran(state) => Some(state.id.clone()),
                _ => None,
            });
            let content = fingerprint(&self.jobs[at].content, &inputs.collect::<Vec<_>>());
            if self.take_over(at, &content, report)? {
                continue;
            }
            if self.fail_fast && self.ends.iter().flatten().any(|end| !end.has_succeeded()) {
                let why = "another task did not succeed (--fail-fast)".to_owned();
                self.end(at, JobOutcome::Skipped(why), false, report);
            } else if self.running.len() < self.max_running && !self.is_branch_taken(at) {
                self.start(at, content, report).await?;
            }
        }
        Ok(())
    }

    /// Whether another job works on the branch of one.
    fn is_branch_taken(&self, at: usize) -> bool {
        let branch = &self.jobs[at].branch;
        branch.is_some()
            && self.running.iter().any(|(other, _)| self.jobs[*other].branch == *branch)
    }

    /// Goes by what an earlier batch did; false if the job is to be started.
    fn take_over(
        &mut self,
        at: usize,
        content: &str,
        report: &mut (dyn FnMut(BatchNews<'_>) + Send),
    ) -> Result<bool, Failure> {
        let id = self.jobs[at].id.clone();
        match self.kept.past(&self.eisen_dir, &id, content, true)? {
            Past::Nothing => Ok(false),
            Past::Again(why, lost) => {
                if !self.restart {
                    report(BatchNews::Note(format!("{id}: runs again: {why}")));
                }
                // It is reported once.
                self.kept.forget(&id);
                self.jobs[at].lost = lost.map(|state| (why, state));
                Ok(false)
            }
            Past::Runs(run) => {
                report(BatchNews::Note(format!(
                    "{id}: waits for the run {}, which goes on",
                    run.id()
                )));
                self.running.push((at, run));
                Ok(true)
            }
            Past::Ended(state) => {
                self.kept.ended(&id)?;
                self.end(at, JobOutcome::Ran(state), true, report);
                Ok(true)
            }
        }
    }

    async fn start(
        &mut self,
        at: usize,
        content: String,
        report: &mut (dyn FnMut(BatchNews<'_>) + Send),
    ) -> Result<(), Failure> {
        let Some(mut options) = self.jobs[at].options.take() else { return Ok(()) };
        if let Some((why, state)) = self.jobs[at].lost.take() {
            let past = lost::past_of(&self.eisen_dir, &state, &why).await;
            for sentence in past.iter().filter_map(PastWork::summary) {
                report(BatchNews::Note(format!("{}: {sentence}", self.jobs[at].id)));
            }
            options.spec.task = hand_over(&options.spec.task, &past);
        }
        let earlier = self.after[at].iter().filter_map(|before| self.ends[*before].as_ref());
        let task = std::mem::take(&mut options.spec.task);
        options.spec.task = results::with_results(task, &self.eisen_dir, earlier)?;
        match branch::give(&mut options).await {
            Ok(notes) => {
                for note in notes {
                    report(BatchNews::Note(format!("{}: {note}", self.jobs[at].id)));
                }
            }
            Err(failure) => {
                let why = format!("{:#}", failure.error());
                self.end(at, JobOutcome::NotStarted(why), false, report);
                return Ok(());
            }
        }
        let (id, mut kept) = (self.jobs[at].id.clone(), self.kept.clone());
        let starting = move || {
            // It is known before it runs, so that no batch does it twice.
            let note = |run: &str| {
                let run = run.to_owned();
                kept.keep(&id, KeptTask { run, content, ended: false })
            };
            let started = run_detached(options, note);
            (started, kept)
        };
        let started = task::spawn_blocking(starting).await;
        let (started, kept) = started.map_err(|error| Failure::Run(error.into()))?;
        self.kept = kept;
        match started {
            Ok(id) => {
                let run = find_run(&self.eisen_dir, &id).context("the run is gone");
                self.running.push((at, run.map_err(Failure::Run)?));
            }
            Err(failure) => {
                let why = format!("{:#}", failure.error());
                self.end(at, JobOutcome::NotStarted(why), false, report);
            }
        }
        Ok(())
    }

    /// Notes which runs have ended.
    fn collect(&mut self, report: &mut (dyn FnMut(BatchNews<'_>) + Send)) -> Result<(), Failure> {
        for (at, run) in std::mem::take(&mut self.running) {
            match look(&run) {
                // An earlier batch began it, and its supervisor was still ending: `advance` finds it lost.
                Ok(Some(state))
                    if state.status == RunStatus::Lost && self.jobs[at].options.is_some() => {}
                Ok(Some(state)) => {
                    self.kept.ended(&self.jobs[at].id)?;
                    self.end(at, JobOutcome::Ran(Box::new(state)), false, report);
                }
                Ok(None) => self.running.push((at, run)),
                Err(error) => {
                    let why = format!("its run {} can't be read: {error}", run.id());
                    self.end(at, JobOutcome::NotStarted(why), false, report);
                }
            }
        }
        Ok(())
    }

    fn end(
        &mut self,
        at: usize,
        outcome: JobOutcome,
        earlier: bool,
        report: &mut (dyn FnMut(BatchNews<'_>) + Send),
    ) {
        let end = JobEnd { id: self.jobs[at].id.clone(), outcome, earlier };
        report(BatchNews::Ended(&end));
        self.ends[at] = Some(end);
    }

    /// All ends; what has none is skipped.
    fn ends(self, why: &str) -> Vec<JobEnd> {
        let skipped = |id: String| JobEnd {
            id,
            outcome: JobOutcome::Skipped(why.to_owned()),
            earlier: false,
        };
        let all = self.jobs.into_iter().zip(self.ends);
        all.map(|(job, end)| end.unwrap_or_else(|| skipped(job.id))).collect()
    }
}
