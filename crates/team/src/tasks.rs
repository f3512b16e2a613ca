//! Tasks that an orchestrator gave to agents: their states, their results until acknowledged, and
//! the waits between agents. A task is kept in a file of its own, so that its result outlives a
//! killed team.

mod board;
mod kept;
mod store;
#[cfg(test)]
mod tests;
mod waits;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use eisen_base::task;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::bus::{Bus, Received, Subscriber};
use crate::model::{
    AgentId, AgentStatus, BlockedAccess, Event, KeptFiles, KeptForm, SessionId, TaskId, TaskReport,
    TaskState, now_ms,
};
use crate::runs::RefusedAccess;
use board::Board;
use store::Store;

pub use board::Begun;
pub use kept::{Kept, MOST_TEXT};
pub use waits::{Circle, WaitGuard, WaitKind, Waits};

/// Tasks, with their results.
pub const KEPT: [KeptFiles; 1] =
    [KeptFiles::new("tasks", KeptForm::Json, &["teams/*/tasks/*.json", "teams/*/tasks/*.new"])];

/// Tasks that are kept; one more is refused.
const MOST: usize = 1000;

/// How long a result is kept without acknowledgement.
const KEPT_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// The longest wait: clients give up after 60 seconds or less.
pub const LONGEST_WAIT: Duration = Duration::from_secs(45);

/// A task to begin.
#[derive(Clone, Debug)]
pub struct NewTask {
    pub by: AgentId,
    /// The person who answers for it.
    pub owner: Option<String>,
    pub agent: AgentId,
    pub text: String,
    pub files: Vec<String>,
    /// A task of the same giver and key is the same task.
    pub key: Option<String>,
}

/// How a task's turn ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    pub state: TaskState,
    pub reason: Option<String>,
    /// The agent's text.
    pub text: String,
    /// Accesses that were blocked, and not allowed by its end.
    pub refused: Vec<RefusedAccess>,
}

impl Ended {
    /// An end without an answer of the agent.
    pub fn without_answer(state: TaskState, reason: Option<String>) -> Self {
        Self { state, reason, text: String::new(), refused: Vec::new() }
    }
}

/// The condition that ends a wait for several tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// All have ended.
    All,
    /// One has ended.
    First,
}

/// The result of a wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundTasks {
    pub tasks: Vec<TaskReport>,
    /// The number of the last change.
    pub cursor: u64,
    pub timed_out: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TaskError {
    #[error(
        "there is no task `{0}` of yours: it was never there, or acknowledged, or is over a week old"
    )]
    Unknown(TaskId),
    #[error("{MOST} tasks are kept: acknowledge results by `task_result` with `ack`")]
    Full,
    #[error("the task cannot be kept: {0}")]
    NotKept(String),
}

/// The tasks of a team; cheap to clone.
#[derive(Clone, Debug)]
pub struct Tasks {
    board: Arc<Mutex<Board>>,
    store: Store,
    bus: Bus,
    /// The number of the last change.
    changed: watch::Sender<u64>,
}

impl Tasks {
    /// Opens the tasks that are kept in `folder`. Unended ones become lost, since their team ended.
    /// Without a folder, no task outlives the process. Reads the disk.
    pub fn open(folder: Option<PathBuf>, bus: Bus) -> Self {
        // A cursor of an earlier run stands for changes before this one: no run has a change in each
        // microsecond.
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_micros();
        let now = u64::try_from(now).unwrap_or(u64::MAX / 2);
        let mut board = Board::since(if folder.is_some() { now } else { 0 });
        let store = Store::new(folder);
        for mut kept in store.load(now_ms().saturating_sub(KEPT_MS)) {
            if !kept.state.is_ended() {
                let reason = "the team ended before its turn did".to_owned();
                kept.end(Ended::without_answer(TaskState::Lost, Some(reason)));
                if let Err(error) = store.write(&kept) {
                    tracing::warn!(task = %kept.id, %error, "cannot keep a task");
                }
            }
            board.put(kept);
        }
        let changed = watch::Sender::new(board.version());
        Self { board: Arc::new(Mutex::new(board)), store, bus, changed }
    }

    /// Follows what tasks wait for, until `cancel`. `standing` reads the accesses that wait for a
    /// decision, and the state of the agents.
    pub async fn follow<F>(
        self,
        mut events: Subscriber,
        standing: impl Fn() -> F,
        cancel: CancellationToken,
    ) where
        F: Future<Output = (Vec<BlockedAccess>, Vec<AgentStatus>)>,
    {
        while let Some(Some(received)) = cancel.run_until_cancelled(events.recv()).await {
            match received {
                Received::Event(_, event) => match &**event {
                    Event::Blocked(access) => {
                        self.change(|board| board.blocked(access, access.needs_decision()));
                    }
                    Event::Conflict(conflict) => self.change(|board| board.conflict(conflict)),
                    Event::Agent(status) => self.change(|board| board.agent(status)),
                    Event::Budget(report) => self.change(|board| board.budget(report)),
                    _ => {}
                },
                Received::Missed(_) => {
                    let (pending, agents) = standing().await;
                    self.change(|board| board.stand_anew(&pending, &agents));
                }
            }
        }
    }

    /// Returns the task that `by` gave with this key.
    pub fn with_key(&self, by: &AgentId, key: Option<&str>) -> Option<TaskId> {
        self.board().with_key(by, key).map(|known| known.id)
    }

    /// Adds a task, and returns once it is kept; a known key returns the known task.
    pub async fn begin(&self, new: NewTask) -> Result<Begun, TaskError> {
        let (begun, kept) = {
            let mut board = self.board();
            board.forget_before(now_ms().saturating_sub(KEPT_MS), &self.store);
            if let Some(known) = board.with_key(&new.by, new.key.as_deref()) {
                return Ok(known);
            }
            if board.len() >= MOST {
                return Err(TaskError::Full);
            }
            let kept = board.new_task(new);
            let cancel = board.put(kept.clone());
            (Begun { id: kept.id.clone(), cancel, is_new: true }, kept)
        };
        if let Err(error) = self.write(kept).await {
            self.board().remove(&begun.id);
            return Err(TaskError::NotKept(error));
        }
        self.publish(&begun.id);
        Ok(begun)
    }

    /// Records that the turn of a task has begun, and publishes its session.
    pub fn sent(&self, id: &TaskId, session: SessionId) {
        self.change(|board| {
            let mut changed = board.sent(id, session);
            if !changed.contains(id) {
                changed.push(id.clone());
            }
            changed
        });
    }

    /// Records the end of a task, and keeps its result. A second end changes nothing.
    pub async fn end(&self, id: &TaskId, ended: Ended) {
        let Some(kept) = self.board().ended(id, ended) else { return };
        if let Err(error) = self.write(kept.clone()).await {
            tracing::warn!(task = %id, error, "cannot keep the result of a task");
        }
        // Only now: a result that callers see is kept.
        self.board().end(kept);
        self.publish(id);
    }

    /// The tasks that `by` gave, or all if None, oldest first. With `ids`, only those.
    pub fn list(&self, by: Option<&AgentId>, ids: &[TaskId]) -> Result<FoundTasks, TaskError> {
        let mut board = self.board();
        let tasks = board.list(by, ids)?;
        if by.is_some() {
            board.shown(&tasks);
        }
        Ok(FoundTasks { tasks, cursor: board.version(), timed_out: false })
    }

    /// Waits for tasks, until `deadline`. It also ends once one of them needs help, which only the
    /// caller may be able to give. With a cursor, only later changes count.
    pub async fn wait(
        &self,
        by: Option<&AgentId>,
        ids: &[TaskId],
        mode: Mode,
        cursor: Option<u64>,
        deadline: Instant,
    ) -> Result<FoundTasks, TaskError> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.borrow_and_update();
            {
                let mut board = self.board();
                let tasks = board.list(by, ids)?;
                if board.is_over(&tasks, mode, cursor) {
                    if by.is_some() {
                        board.shown(&tasks);
                    }
                    return Ok(FoundTasks { tasks, cursor: board.version(), timed_out: false });
                }
            }
            if !matches!(timeout_at(deadline, changed.changed()).await, Ok(Ok(()))) {
                let FoundTasks { tasks, cursor, .. } = self.list(by, ids)?;
                return Ok(FoundTasks { tasks, cursor, timed_out: true });
            }
        }
    }

    /// A task with its result.
    pub fn get(&self, by: Option<&AgentId>, id: &TaskId) -> Result<Kept, TaskError> {
        let mut board = self.board();
        let kept = board.get(by, id)?;
        if by.is_some() {
            board.shown(&[kept.report(kept.state)]);
        }
        Ok(kept)
    }

    /// Takes the ends of tasks that their giver has not seen yet: each is returned once.
    pub fn take_unknown_ends(&self, by: &AgentId) -> Vec<TaskReport> {
        let mut board = self.board();
        let ends = board.unknown_ends(by);
        board.shown(&ends);
        ends
    }

    /// Acknowledges a task that has ended: it makes room for another one, and is gone at the next
    /// start.
    pub async fn acknowledge(&self, by: Option<&AgentId>, id: &TaskId) -> Result<(), TaskError> {
        let kept = self.get(by, id)?;
        if !kept.state.is_ended() {
            return Ok(());
        }
        self.board().acknowledge(id);
        let (store, id) = (self.store.clone(), id.clone());
        let _ = task::spawn_blocking(move || store.remove(&id)).await;
        Ok(())
    }

    /// Cancels a task. Its state follows once its turn has ended.
    pub fn cancel(&self, by: Option<&AgentId>, id: &TaskId) -> Result<TaskReport, TaskError> {
        let board = self.board();
        let kept = board.get(by, id)?;
        board.cancel(id);
        Ok(kept.report(kept.state))
    }

    async fn write(&self, kept: Kept) -> Result<(), String> {
        let store = self.store.clone();
        let written = task::spawn_blocking(move || store.write(&kept)).await;
        written.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    fn change(&self, change: impl FnOnce(&mut Board) -> Vec<TaskId>) {
        let changed = change(&mut self.board());
        for id in changed {
            self.publish(&id);
        }
    }

    /// Publishes the state of a task, and wakes all waits.
    fn publish(&self, id: &TaskId) {
        let (report, version) = {
            let board = self.board();
            (board.report(id), board.version())
        };
        if let Some(report) = report {
            self.bus.publish(Event::Task(report));
        }
        self.changed.send_replace(version);
    }

    fn board(&self) -> std::sync::MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
