//! Writes of several agents to one file: locks, what becomes of a write that meets one, and lost
//! updates.
//!
//! ```text
//! gate, doorbell, before a write ─▶ begin_write ─▶ passes · waits for the lock · is refused
//! relay, doorbell, after a read ──▶ read ─┐
//! bus, after a write (`capture`) ─────────┴▶ follow: whose base was older than another's write? ─▶ bus
//! ```
//!
//! A write locks its file for the other agents until the writer's turn ends, or until it did not
//! work for `lock_s`. Without a `[conflicts]` table there is no such value, and nothing is done.

mod bases;
mod board;
mod claims;
mod decisions;
mod follow;
mod knowledge;
mod locks;
mod lost;
mod merges;
mod of_agent;
mod stale;
mod state;
#[cfg(test)]
mod tests;
mod waits;
mod workers;
mod write_gate;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use self::bases::Bases;
use self::state::ConflictState;
use crate::bus::Bus;
use crate::journal::Journal;
use crate::model::{
    AgentId, Conflict, ConflictKind, ConflictStatus, ConflictStrategy, Event, SessionId, SessionKey,
};
use crate::tasks::Waits;

pub use claims::{ClaimError, ClaimedLocks, LockClaim};
pub use decisions::{ResolveError, ShownConflict};
pub use knowledge::KnownContent;
pub use locks::Lock;
pub use merges::{MergeBase, PresentContent};
pub use of_agent::AgentConflicts;
pub use state::HeldDecision;
pub use waits::{LockWait, Passage, Refused};
pub use workers::{HolderProcess, LastWork, LockHolder};
pub use write_gate::{Way, WriteGate};

/// The settings that may change while the team runs.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ConflictRules {
    pub strategy: ConflictStrategy,
    /// How long a lock outlasts its holder's last sign of work.
    pub lock: Duration,
    /// Hold a write for the lock's end, rather than deny it at once.
    pub hold: bool,
    /// Exceptions from `hold`, by agent.
    pub hold_of: HashMap<AgentId, bool>,
    /// A held write is denied after this time.
    pub hold_timeout: Duration,
}

impl ConflictRules {
    fn holds(&self, agent: &AgentId) -> bool {
        self.hold_of.get(agent).copied().unwrap_or(self.hold)
    }
}

/// The locks and conflicts of a team; cheap to clone.
#[derive(Clone, Debug)]
pub struct Conflicts(Arc<Core>);

#[derive(Debug)]
struct Core {
    state: Mutex<ConflictState>,
    bases: Mutex<Bases>,
    /// Whether writes are looked at. Else only what is found between branches is kept here.
    looks: bool,
    /// Whether anything is locked: checked at each access of each process.
    has_locks: AtomicBool,
    workspace: PathBuf,
    bus: Bus,
    /// The waits between agents, which waits for locks are part of.
    waits: Waits,
    /// None: no journal, and so no changes of files to look at.
    journal: Option<Journal>,
    /// Changes when a lock ends or a wait is decided.
    changed: watch::Sender<u64>,
    /// Held while a write is merged.
    merging: tokio::sync::Mutex<()>,
    /// Asks the follower to look at all that was published.
    catch_up: mpsc::Sender<oneshot::Sender<()>>,
    catching_up: Mutex<Option<mpsc::Receiver<oneshot::Sender<()>>>>,
}

impl Conflicts {
    /// `workspace`: the folder that paths of files are in. `waits`: those between agents. Without rules no write is
    /// looked at.
    pub fn new(
        rules: Option<ConflictRules>,
        workspace: PathBuf,
        bus: Bus,
        journal: Option<Journal>,
        waits: Waits,
    ) -> Self {
        let looks = rules.is_some();
        let state = Mutex::new(ConflictState::new(rules.unwrap_or_default()));
        let (catch_up, catching_up) = mpsc::channel(16);
        Self(Arc::new(Core {
            state,
            bases: Mutex::default(),
            looks,
            has_locks: AtomicBool::new(false),
            workspace,
            bus,
            waits,
            journal,
            changed: watch::Sender::default(),
            merging: tokio::sync::Mutex::new(()),
            catch_up,
            catching_up: Mutex::new(Some(catching_up)),
        }))
    }

    /// Replaces the settings. Writes that wait keep their deadline.
    pub fn change(&self, rules: ConflictRules) {
        self.state().rules = rules;
        self.wake();
    }

    pub fn strategy(&self) -> ConflictStrategy {
        self.state().rules.strategy
    }

    /// Whether writes are looked at.
    pub fn looks(&self) -> bool {
        self.0.looks
    }

    /// Reports that two worktrees changed the same part of a file. The agent of the first changed it last.
    pub fn met(
        &self,
        by: &SessionKey,
        other: AgentId,
        path: &Arc<str>,
        message: String,
    ) -> Conflict {
        let (kind, status) = (ConflictKind::Branches, ConflictStatus::Observed);
        self.add(&mut self.state(), kind, status, by, vec![other], path, message)
    }

    /// A run of an agent begins; `last_output` says when it last put out something.
    pub fn run_began(&self, agent: AgentId, pid: u32, last_output: LastWork) -> RunOfAgent {
        let process = HolderProcess { pid, started: workers::start_of(pid) };
        self.state().workers.began(agent.clone(), process, last_output);
        RunOfAgent { conflicts: self.clone(), agent, process }
    }

    /// A turn ended: its locks end.
    pub fn turn_over(&self, agent: &AgentId, session: &SessionId) {
        if self.has_locks() {
            self.state().with_locks(|locks, now| locks.turn_over(agent, session, now));
            self.wake();
        }
    }

    /// An agent left the team.
    pub fn forget(&self, agent: &AgentId) {
        {
            let mut state = self.state();
            state.locks.forget(agent);
            state.stales.forget(agent);
        }
        self.wake();
    }

    /// The conflicts of this run, oldest first.
    pub fn list(&self, status: Option<ConflictStatus>) -> Vec<Conflict> {
        self.state().board.list(status)
    }

    /// How many writes wait.
    pub fn pending(&self) -> usize {
        self.state().board.pending()
    }

    /// The locks that are held.
    pub fn locks(&self) -> Vec<Lock> {
        let state = self.state();
        state.locks.list(state.now())
    }

    /// Whether another agent has a file locked. Cheap while nothing is locked.
    pub fn blocks(&self, agent: &AgentId, path: &str) -> bool {
        self.has_locks() && {
            let state = self.state();
            state.rules.strategy != ConflictStrategy::LastWriterWins
                && state.against(agent, path).is_some()
        }
    }

    fn has_locks(&self) -> bool {
        self.0.has_locks.load(Ordering::Relaxed)
    }

    /// Adds a conflict, and publishes it.
    fn add(
        &self,
        state: &mut ConflictState,
        kind: ConflictKind,
        status: ConflictStatus,
        writer: &SessionKey,
        others: Vec<AgentId>,
        path: &Arc<str>,
        message: String,
    ) -> Conflict {
        let conflict = state.board.add(kind, status, writer, others, path, message);
        self.0.bus.publish(Event::Conflict(conflict.clone()));
        conflict
    }

    /// Has the writes that wait look again.
    fn wake(&self) {
        let is_empty = self.state().locks.is_empty();
        self.0.has_locks.store(!is_empty, Ordering::Relaxed);
        self.0.changed.send_modify(|number| *number += 1);
    }

    fn state(&self) -> MutexGuard<'_, ConflictState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of the longest path that is locked, and of the longest session id that is told from others: an
/// agent may name any.
const LONGEST_PATH: usize = 1024;
const LONGEST_SESSION: usize = 256;

/// Whether writes of a path may be conflicts: those in the workspace that are not git's own.
pub fn is_locked_ever(path: &str) -> bool {
    !path.is_empty()
        && path.len() <= LONGEST_PATH
        && !path.starts_with('/')
        && path.split('/').all(|part| part != ".git")
}

/// A run of an agent; when it is dropped, the locks of the run end.
#[derive(Debug)]
pub struct RunOfAgent {
    conflicts: Conflicts,
    agent: AgentId,
    process: HolderProcess,
}

impl Drop for RunOfAgent {
    fn drop(&mut self) {
        let is_last = self.conflicts.state().workers.ended(&self.agent, self.process);
        if is_last {
            self.conflicts.state().locks.forget(&self.agent);
            self.conflicts.wake();
        }
    }
}
