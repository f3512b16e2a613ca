//! Who writes: one run of an agent, and the session and tool call that a write belongs to.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::model::{AgentId, SeenBy, SessionId};

/// Threads of one writer that are remembered.
const MOST_THREADS: usize = 64;

/// How long a call that goes on may take until the process has its descriptor.
const IN_FLIGHT: Duration = Duration::from_millis(50);

/// What is known of one run of an agent.
pub trait AgentRun: Send + Sync {
    /// Changes when a turn or a tool call begins or ends.
    fn epoch(&self) -> u64;

    /// What a write of a file that is made now belongs to.
    fn moment(&self, real: &Path) -> Moment;

    /// Whether a turn that a moment had still runs.
    fn runs(&self, moment: &Moment) -> bool;

    /// All its processes, and those of its terminals.
    fn processes(&self) -> Vec<u32>;
}

/// The session, its turn and the tool call that a write belongs to, as far as that is certain.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Moment {
    pub session: Option<SessionId>,
    /// Unique within the run.
    pub turn: u64,
    pub tool_call: Option<Arc<str>>,
}

/// A run of an agent; cheap to clone.
#[derive(Clone)]
pub(super) struct Source(Arc<Inner>);

struct Inner {
    agent: AgentId,
    number: u64,
    run: Arc<dyn AgentRun>,
}

/// When a file is settled, which decides the turn of what was not registered in it.
#[derive(Clone, Copy)]
pub(super) enum When<'a> {
    Now,
    /// A turn of this session has just begun: what was written before is of no turn.
    Began,
    /// A turn of this session has just ended.
    Ended(&'a SessionId),
}

/// One who may write a file.
#[derive(Clone)]
pub(super) struct Writer {
    pub(super) source: Source,
    pub(super) by: SeenBy,
    pub(super) process: Option<u32>,
    epoch: u64,
    moment: Moment,
    threads: Vec<u32>,
    since: Instant,
}

impl Source {
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
    /// One who writes from now on: by a call of a thread, or the client host for a session.
    pub(super) fn new(source: &Source, real: &Path, cause: Cause<'_>, epoch: u64) -> Self {
        let mut moment = source.0.run.moment(real);
        let (by, thread) = match cause {
            Cause::Thread(thread) => (SeenBy::Doorbell, Some(thread)),
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
            process: thread.map(process_of),
            epoch,
            moment,
            threads: thread.into_iter().collect(),
            since: Instant::now(),
        }
    }

    /// Whether a write by `cause` is this writer's.
    pub(super) fn is(&self, source: &Source, cause: Cause<'_>, epoch: u64) -> bool {
        let is_alike = match cause {
            Cause::Thread(_) => self.by == SeenBy::Doorbell,
            Cause::Request(session) => {
                self.by == SeenBy::ClientHost && self.moment.session.as_ref() == Some(session)
            }
        };
        is_alike && self.source.number() == source.number() && self.epoch == epoch
    }

    pub(super) fn add(&mut self, cause: Cause<'_>) {
        if let Cause::Thread(thread) = cause {
            self.since = Instant::now();
            if self.threads.len() < MOST_THREADS && !self.threads.contains(&thread) {
                self.threads.push(thread);
            }
        }
    }

    /// Whether its last call may not have come to an end.
    pub(super) fn is_in_flight(&self) -> bool {
        self.since.elapsed() < IN_FLIGHT
            && self.threads.iter().any(|it| Path::new(&format!("/proc/{it}")).exists())
    }

    pub(super) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// What a write of it belongs to that is found now.
    pub(super) fn moment(&self, real: &Path, when: When<'_>) -> Moment {
        let run = &self.source.0.run;
        if self.moment.session.is_some() {
            let has_ended = match when {
                When::Ended(session) => self.moment.session.as_ref() == Some(session),
                When::Now | When::Began => false,
            };
            if has_ended || self.by == SeenBy::ClientHost || run.runs(&self.moment) {
                return self.moment.clone();
            }
        }
        let now = run.moment(real);
        match when {
            When::Now => Moment { tool_call: None, ..now },
            When::Ended(session) if now.session.is_none() => {
                Moment { session: Some(session.clone()), ..Moment::default() }
            }
            When::Began | When::Ended(_) => Moment::default(),
        }
    }
}

/// What a write is known by.
#[derive(Clone, Copy)]
pub(super) enum Cause<'a> {
    /// A call of this thread.
    Thread(u32),
    /// A request in this session.
    Request(&'a SessionId),
}

/// The process of a thread; the thread itself if it is gone.
fn process_of(thread: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    process.unwrap_or(thread)
}
