//! The outcomes of a batch and of its jobs, and the batch's exit code.

use crate::program::StopSignal;
use crate::runs::{RunState, RunStatus};
use crate::turn::{FAILED, INTERRUPTED, KILLED, REFUSED, TIMED_OUT};

/// The end of a job.
#[derive(Debug)]
pub struct JobEnd {
    pub id: String,
    pub outcome: JobOutcome,
    /// An earlier batch did it.
    pub earlier: bool,
}

#[derive(Debug)]
pub enum JobOutcome {
    Ran(Box<RunState>),
    /// Its run could not be started.
    NotStarted(String),
    /// The job's turn did not come; the sentence says why.
    Skipped(String),
}

/// The end of a batch.
#[derive(Debug)]
pub struct BatchEnd {
    /// In the order of the jobs.
    pub jobs: Vec<JobEnd>,
    pub(super) stopped: Option<StopSignal>,
}

impl JobEnd {
    pub fn has_succeeded(&self) -> bool {
        self.status() == RunStatus::Succeeded.as_str()
    }

    /// Whether it succeeded, and something was refused that it meant to do.
    fn is_short(&self) -> bool {
        matches!(&self.outcome, JobOutcome::Ran(state) if state.status == RunStatus::Succeeded
            && state.blocked.iter().any(|access| access.stops_work))
    }

    pub fn status(&self) -> &'static str {
        match &self.outcome {
            JobOutcome::Ran(state) => state.status.as_str(),
            JobOutcome::NotStarted(_) => RunStatus::Failed.as_str(),
            JobOutcome::Skipped(_) => "skipped",
        }
    }

    /// Why it did not succeed.
    pub fn reason(&self) -> Option<&str> {
        match &self.outcome {
            JobOutcome::Ran(state) => state.reason.as_deref(),
            JobOutcome::NotStarted(why) | JobOutcome::Skipped(why) => Some(why),
        }
    }
}

impl BatchEnd {
    /// The exit code; `is_strict`: also what was refused counts.
    pub fn exit_code(&self, is_strict: bool) -> u8 {
        match self.stopped {
            Some(StopSignal::Interrupt) => return INTERRUPTED,
            Some(StopSignal::End) => return KILLED,
            None => {}
        }
        let skipped = |job: &&JobEnd| matches!(job.outcome, JobOutcome::Skipped(_));
        let failed = self.jobs.iter().filter(|job| !job.has_succeeded() && !skipped(job));
        let late = RunStatus::TimedOut.as_str();
        match failed.map(|job| job.status() == late).reduce(|all, one| all && one) {
            None if is_strict && self.jobs.iter().any(JobEnd::is_short) => REFUSED,
            None => 0,
            Some(true) => TIMED_OUT,
            Some(false) => FAILED,
        }
    }
}
