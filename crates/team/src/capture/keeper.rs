//! The thread that settles files.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::Noticed;
use super::team::CaptureTeam;
use crate::model::{AgentId, SessionId};
use crate::tracker::Hold;

/// How often files with writers are looked at. With the journal's batch a change is on the disk
/// within 250 ms.
const PASS: Duration = Duration::from_millis(50);

/// How long a change on the disk waits for further ones of its path.
const NOTICE: Duration = Duration::from_millis(150);

/// How often the number of changes that were left out is recorded.
const COUNT: Duration = Duration::from_secs(1);

/// Changed paths that wait. Past that, further ones are only counted.
const MOST_NOTICED: usize = 100_000;

pub(super) enum KeeperMsg {
    /// A file has a writer now.
    Dirty,
    Noticed(Vec<Noticed>),
    /// A turn of an agent, in this epoch of its run.
    Began {
        agent: AgentId,
        session: SessionId,
        epoch: u64,
    },
    Ended {
        agent: AgentId,
        session: SessionId,
        epoch: u64,
        hold: Option<Hold>,
    },
    /// A run of the agent is over.
    Over {
        agent: AgentId,
        is_confined: bool,
    },
    Settle(oneshot::Sender<()>),
    /// Answered after all earlier requests.
    Done(oneshot::Sender<()>),
}

pub(super) struct Keeper {
    team: Arc<CaptureTeam>,
    queue: Receiver<KeeperMsg>,
    noticed: HashMap<PathBuf, (Instant, bool)>,
    next: Instant,
    /// When changes that were left out were last recorded.
    counted: Instant,
}

impl Keeper {
    pub(super) fn new(team: Arc<CaptureTeam>, queue: Receiver<KeeperMsg>) -> Self {
        let now = Instant::now();
        Self { team, queue, noticed: HashMap::new(), next: now, counted: now }
    }

    /// Runs until the last sender is gone.
    pub(super) fn run(mut self) {
        loop {
            let request = if self.team.table.is_clean() && self.noticed.is_empty() {
                self.queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                self.queue.recv_timeout(self.next.saturating_duration_since(Instant::now()))
            };
            match request {
                Ok(request) => self.take(request),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = Instant::now();
            if now >= self.next {
                self.team.settle_due();
                self.look(now, false);
                self.next = Instant::now() + PASS;
            }
            if now >= self.counted + COUNT {
                self.team.record_left_out();
                self.counted = now;
            }
        }
    }

    fn take(&mut self, request: KeeperMsg) {
        match request {
            KeeperMsg::Dirty => self.next = Instant::now() + PASS,
            KeeperMsg::Noticed(changed) => self.notice(changed),
            KeeperMsg::Began { agent, session, epoch } => {
                self.team.turn_began(&agent, session, epoch);
            }
            KeeperMsg::Ended { agent, session, epoch, hold } => {
                self.team.turn_ended(&agent, &session, epoch);
                drop(hold);
            }
            KeeperMsg::Over { agent, is_confined } => {
                self.team.run_over(&agent);
                if !is_confined {
                    self.team.unconfined.fetch_sub(1, Ordering::Relaxed);
                }
            }
            KeeperMsg::Settle(reply) => {
                self.team.settle(None);
                self.look(Instant::now(), true);
                self.team.record_left_out();
                let _ = reply.send(());
            }
            KeeperMsg::Done(reply) => drop(reply.send(())),
        }
    }

    fn notice(&mut self, changed: Vec<Noticed>) {
        let now = Instant::now();
        for Noticed { path, is_new } in changed {
            if let Some((_, was_new)) = self.noticed.get_mut(&path) {
                *was_new |= is_new;
            } else if self.noticed.len() < MOST_NOTICED {
                self.noticed.insert(path, (now, is_new));
            } else {
                self.team.leave_out(1);
            }
        }
    }

    /// Looks at the changes on the disk that have waited long enough, or at all of them.
    fn look(&mut self, now: Instant, all: bool) {
        let due = |(since, _): &(Instant, bool)| all || now >= *since + NOTICE;
        let mut due: Vec<_> = self.noticed.extract_if(|_, it| due(it)).collect();
        due.sort_unstable();
        for (path, (_, is_new)) in due {
            self.team.noticed(&path, is_new);
        }
    }
}
