//! The author of a write: one run of an agent, and the session and tool call of the write.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::disk::Stamp;
use super::losses::Losses;
use super::process_call::{ProcessCall, ThreadProgress};
use super::turns::Turns;
use crate::model::{AgentId, SeenBy, SessionId};

/// Processes of one writer that are remembered.
const MOST_PROCESSES: usize = 64;

/// How long a call that goes on may take until the process has its descriptor, where the system
/// does not show the process's calls.
const IN_FLIGHT: Duration = Duration::from_millis(50);

/// The longest wait for a call.
const LONGEST_CALL: Duration = Duration::from_secs(10);

/// The state of one run of an agent.
pub trait AgentRun: Send + Sync {
    /// Changes when a turn or a tool call begins or ends.
    fn epoch(&self) -> u64;

    /// The session and tool call of a write of a file at a time, among the running turns.
    fn moment(&self, real: &Path, at: Instant) -> Moment;

    /// The tool call of a write in a session at a time.
    fn tool_call(&self, session: &SessionId, real: &Path, at: Instant) -> Option<Arc<str>>;

    /// All its processes, and those of its terminals.
    fn processes(&self) -> Vec<u32>;

    /// Whether system calls of this number ring the doorbell.
    fn rings(&self, call: i64) -> bool;
}

/// The session and the tool call of a write, as far as they are certain.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Moment {
    pub session: Option<SessionId>,
    pub tool_call: Option<Arc<str>>,
}

/// A run of an agent; cheap to clone.
#[derive(Clone)]
pub(super) struct WriteSource(Arc<Inner>);

struct Inner {
    agent: AgentId,
    number: u64,
    losses: Losses,
    run: Arc<dyn AgentRun>,
}

/// A possible writer of a file.
#[derive(Clone)]
pub(super) struct Writer {
    pub(super) source: WriteSource,
    pub(super) by: SeenBy,
    /// The last process that opened the file.
    pub(super) process: Option<u32>,
    epoch: u64,
    moment: Moment,
    /// The processes of the last calls, the latest at the end.
    processes: Vec<Calling>,
    /// Requests by which the client host is writing.
    requests: Vec<SessionId>,
    /// The time of its last call.
    since: Instant,
}

/// A process with a call that may not have ended.
#[derive(Clone, Debug)]
struct Calling {
    process: u32,
    at: Instant,
    /// The progress of its threads at the last look.
    progress: Option<Vec<ThreadProgress>>,
}

impl WriteSource {
    pub(super) fn new(agent: AgentId, number: u64, run: Arc<dyn AgentRun>) -> Self {
        Self(Arc::new(Inner { agent, number, losses: Losses::new(), run }))
    }

    pub(super) fn agent(&self) -> &AgentId {
        &self.0.agent
    }

    /// A number that no other run of the team has.
    pub(super) fn number(&self) -> u64 {
        self.0.number
    }

    pub(super) fn losses(&self) -> &Losses {
        &self.0.losses
    }

    pub(super) fn epoch(&self) -> u64 {
        self.0.run.epoch()
    }

    pub(super) fn processes(&self) -> Vec<u32> {
        self.0.run.processes()
    }

    pub(super) fn rings(&self, call: i64) -> bool {
        self.0.run.rings(call)
    }
}

impl Writer {
    /// A writer from now on: a process by its call, or the client host for a session.
    pub(super) fn new(source: &WriteSource, real: &Path, cause: Cause<'_>, epoch: u64) -> Self {
        let now = Instant::now();
        let mut moment = source.0.run.moment(real, now);
        let (by, process) = match cause {
            Cause::Process(process) => (SeenBy::Doorbell, Some(process)),
            Cause::Request(session) => {
                if moment.session.as_ref() != Some(session) {
                    moment = Moment { session: Some(session.clone()), ..Moment::default() };
                }
                (SeenBy::ClientHost, None)
            }
        };
        Self {
            source: source.clone(),
            by,
            process,
            epoch,
            moment,
            processes: Vec::new(),
            requests: Vec::new(),
            since: now,
        }
    }

    /// Whether a write by `cause` is this writer's.
    pub(super) fn is(&self, source: &WriteSource, cause: Cause<'_>, epoch: u64) -> bool {
        let is_alike = match cause {
            Cause::Process(_) => self.by == SeenBy::Doorbell,
            Cause::Request(session) => {
                self.by == SeenBy::ClientHost && self.moment.session.as_ref() == Some(session)
            }
        };
        is_alike && self.source.number() == source.number() && self.epoch == epoch
    }

    pub(super) fn add(&mut self, cause: Cause<'_>) {
        let process = match cause {
            Cause::Process(process) => process,
            Cause::Request(session) => return self.requests.push(session.clone()),
        };
        let at = Instant::now();
        self.since = at;
        self.process = Some(process);
        self.processes.retain(|it| it.process != process);
        if self.processes.len() >= MOST_PROCESSES {
            self.processes.remove(0);
        }
        self.processes.push(Calling { process, at, progress: None });
    }

    /// A request of a session has written its file. Returns whether it was this writer's.
    pub(super) fn request_done(&mut self, source: &WriteSource, session: &SessionId) -> bool {
        let is_its = self.source.number() == source.number();
        let request = self.requests.iter().position(|of| is_its && of == session);
        request.map(|at| self.requests.swap_remove(at)).is_some()
    }

    /// Whether the client host is writing for it.
    pub(super) fn is_requested(&self) -> bool {
        !self.requests.is_empty()
    }

    /// The processes whose calls may not have ended.
    pub(super) fn calling(&self) -> impl Iterator<Item = u32> {
        let recent = self.processes.iter().filter(|it| it.at.elapsed() < LONGEST_CALL);
        recent.map(|it| it.process)
    }

    /// Whether one of its calls may not have ended.
    pub(super) fn is_in_flight(&mut self, call_of: impl Fn(u32) -> ProcessCall) -> bool {
        self.is_requested() || self.processes.iter_mut().any(|it| it.is_in_flight(&call_of))
    }

    pub(super) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Whether it writes in a turn or call that began after an epoch.
    pub(super) fn is_later(&self, epoch: u64) -> bool {
        self.epoch > epoch
    }

    /// The turn of a session has ended: its later writes may belong to another.
    pub(super) fn carry_over(&mut self, session: &SessionId) {
        if self.moment.session.as_ref() == Some(session) {
            self.moment = Moment::default();
        }
    }

    /// The session and tool call of its write that left the file with a stamp.
    pub(super) fn moment(&self, real: &Path, stamp: Option<Stamp>, turns: &Turns) -> Moment {
        let Some(session) = &self.moment.session else {
            let session = turns.session(self.source.agent(), stamp);
            return Moment { session, tool_call: None };
        };
        let call = || self.source.0.run.tool_call(session, real, self.since);
        let tool_call = self.moment.tool_call.clone().or_else(call);
        Moment { tool_call, ..self.moment.clone() }
    }
}

impl Calling {
    fn is_in_flight(&mut self, call_of: impl Fn(u32) -> ProcessCall) -> bool {
        if self.at.elapsed() >= LONGEST_CALL {
            return false;
        }
        match call_of(self.process) {
            ProcessCall::None => false,
            ProcessCall::Inside => true,
            // A thread that did not run since may still be in the call.
            ProcessCall::Runs(now) => {
                let last = self.progress.replace(now.clone());
                last.is_none_or(|last| now.iter().any(|thread| last.contains(thread)))
            }
            ProcessCall::Unknown => self.at.elapsed() < IN_FLIGHT,
        }
    }
}

/// The cause of a write.
#[derive(Clone, Copy)]
pub(super) enum Cause<'a> {
    /// A call of this process.
    Process(u32),
    /// A request in this session.
    Request(&'a SessionId),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_lasts_until_its_process_is_seen_to_have_run() {
        let mut calling = Calling { process: 1, at: Instant::now(), progress: None };
        let mut sees = |call: ProcessCall| calling.is_in_flight(|_| call.clone());
        let runs = |times: &[&str]| {
            ProcessCall::Runs(times.iter().map(|it| ThreadProgress::new("7", it)).collect())
        };
        assert!(sees(ProcessCall::Inside));
        assert!(sees(runs(&["10 0 3", "20 0 1"])));
        // The other thread waits for a processor still.
        assert!(sees(runs(&["11 0 4", "20 0 1"])));
        assert!(!sees(runs(&["12 0 5", "21 5 2"])));
        assert!(!sees(ProcessCall::None));
        assert!(sees(ProcessCall::Unknown));
    }
}
