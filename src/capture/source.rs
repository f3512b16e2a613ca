//! Who writes: one run of an agent, and the session and tool call that a write belongs to.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::disk::Stamp;
use super::turns::Turns;
use crate::model::{AgentId, SeenBy, SessionId};

/// Processes of one writer that are remembered.
const MOST_PROCESSES: usize = 64;

/// How long a call that goes on may take until the process has its descriptor.
const IN_FLIGHT: Duration = Duration::from_millis(50);

/// What is known of one run of an agent.
pub trait AgentRun: Send + Sync {
    /// Changes when a turn or a tool call begins or ends.
    fn epoch(&self) -> u64;

    /// What a write of a file that was made at a time belongs to, among the turns that run now.
    fn moment(&self, real: &Path, at: Instant) -> Moment;

    /// The tool call of a session that a write made at a time belongs to.
    fn tool_call(&self, session: &SessionId, real: &Path, at: Instant) -> Option<Arc<str>>;

    /// All its processes, and those of its terminals.
    fn processes(&self) -> Vec<u32>;
}

/// The session and the tool call that a write belongs to, as far as that is certain.
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
    run: Arc<dyn AgentRun>,
}

/// One who may write a file.
#[derive(Clone)]
pub(super) struct Writer {
    pub(super) source: WriteSource,
    pub(super) by: SeenBy,
    /// The last of those that opened it.
    pub(super) process: Option<u32>,
    epoch: u64,
    moment: Moment,
    processes: Vec<u32>,
    /// Of its last call.
    since: Instant,
}

impl WriteSource {
    pub(super) fn new(agent: AgentId, number: u64, run: Arc<dyn AgentRun>) -> Self {
        Self(Arc::new(Inner { agent, number, run }))
    }

    pub(super) fn agent(&self) -> &AgentId {
        &self.0.agent
    }

    /// Of all runs of the team.
    pub(super) fn number(&self) -> u64 {
        self.0.number
    }

    pub(super) fn epoch(&self) -> u64 {
        self.0.run.epoch()
    }

    pub(super) fn processes(&self) -> Vec<u32> {
        self.0.run.processes()
    }
}

impl Writer {
    /// One who writes from now on: by a call of a process, or the client host for a session.
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
            processes: process.into_iter().collect(),
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
        if let Cause::Process(process) = cause {
            self.since = Instant::now();
            self.process = Some(process);
            if self.processes.len() < MOST_PROCESSES && !self.processes.contains(&process) {
                self.processes.push(process);
            }
        }
    }

    /// Whether its last call may not have come to an end.
    pub(super) fn is_in_flight(&self) -> bool {
        self.since.elapsed() < IN_FLIGHT
            && self.processes.iter().any(|it| Path::new(&format!("/proc/{it}")).exists())
    }

    pub(super) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Whether it writes in a turn or call that began after an epoch.
    pub(super) fn is_later(&self, epoch: u64) -> bool {
        self.epoch > epoch
    }

    /// The turn of a session has ended: what it writes from now on may be of another.
    pub(super) fn carry_over(&mut self, session: &SessionId) {
        if self.moment.session.as_ref() == Some(session) {
            self.moment = Moment::default();
        }
    }

    /// What a write of it belongs to, that left the file with a stamp.
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

/// What a write is known by.
#[derive(Clone, Copy)]
pub(super) enum Cause<'a> {
    /// A call of this process.
    Process(u32),
    /// A request in this session.
    Request(&'a SessionId),
}
