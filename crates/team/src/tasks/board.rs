//! The tasks of a team in memory, with states that follow from their agents' waits. Pure, except
//! for removing the files of forgotten tasks.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use tokio::sync::watch;

use super::kept::Kept;
use super::store::Store;
use super::{Ended, Mode, NewTask, TaskError};
use crate::model::{
    AgentId, AgentStatus, BlockedAccess, BlockedId, BudgetReport, BudgetState, Conflict,
    ConflictId, SessionId, SessionKey, TaskId, TaskReport, TaskState, TimestampMs, now_ms,
};

/// A task that was begun now or before.
#[derive(Clone, Debug)]
pub struct Begun {
    pub id: TaskId,
    /// Changes with each request to cancel the task.
    pub cancel: watch::Receiver<u64>,
    pub is_new: bool,
}

#[derive(Default, Debug)]
pub(super) struct Board {
    /// In the order of their beginnings.
    tasks: IndexMap<TaskId, BoardTask>,
    /// Accesses that wait for a decision.
    pending: HashMap<BlockedId, SessionKey>,
    /// Writes that wait for locks.
    held: HashMap<ConflictId, SessionKey>,
    /// Agents that stall.
    stalled: Vec<AgentId>,
    /// Budgets that are used up: of agents, and of the team (None).
    used_up: HashSet<Option<AgentId>>,
    /// The number of the last change.
    version: u64,
}

#[derive(Debug)]
struct BoardTask {
    kept: Kept,
    /// The state, with the agent's waits considered.
    state: TaskState,
    /// The number of the last change of the state.
    version: u64,
    /// The number of requests to cancel it.
    cancel: watch::Sender<u64>,
    /// Whether its result was acknowledged.
    is_over: bool,
    /// Whether its giver knows that it ended.
    is_known: bool,
}

impl Board {
    /// A board without tasks, whose changes have numbers above `version`.
    pub(super) fn since(version: u64) -> Self {
        Self { version, ..Self::default() }
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// The number of tasks that were not acknowledged.
    pub(super) fn len(&self) -> usize {
        self.tasks.values().filter(|entry| !entry.is_over).count()
    }

    /// Adds a task; returns what changes as it is to be cancelled.
    pub(super) fn put(&mut self, kept: Kept) -> watch::Receiver<u64> {
        self.version += 1;
        let (id, state, version) = (kept.id.clone(), kept.state, self.version);
        let (cancel, requests) = watch::channel(0);
        self.tasks.insert(
            id,
            BoardTask { kept, state, version, cancel, is_over: false, is_known: false },
        );
        requests
    }

    pub(super) fn remove(&mut self, id: &TaskId) {
        self.tasks.shift_remove(id);
    }

    /// Makes a task that begins now. Its time is later than that of all earlier tasks, even if the
    /// clock went back: the files of tasks are sorted by it.
    pub(super) fn new_task(&self, new: NewTask) -> Kept {
        let newest = self.tasks.values().map(|entry| entry.kept.begun_ms).max();
        let begun_ms = now_ms().max(newest.map_or(0, |newest| newest + 1));
        Kept::new(new, self.new_id(), begun_ms)
    }

    /// Makes an id that no task has. Short, since models repeat it.
    fn new_id(&self) -> TaskId {
        loop {
            let id = TaskId::new(format!("t-{:08x}", fastrand::u32(..)));
            if !self.tasks.contains_key(&id) {
                return id;
            }
        }
    }

    pub(super) fn with_key(&self, by: &AgentId, key: Option<&str>) -> Option<Begun> {
        let key = key?;
        let is_it =
            |entry: &&BoardTask| entry.kept.by == *by && entry.kept.key.as_deref() == Some(key);
        let entry = self.tasks.values().find(is_it)?;
        Some(Begun { id: entry.kept.id.clone(), cancel: entry.cancel.subscribe(), is_new: false })
    }

    /// Requests that a task is cancelled.
    pub(super) fn cancel(&self, id: &TaskId) {
        if let Some(entry) = self.tasks.get(id) {
            entry.cancel.send_modify(|requests| *requests += 1);
        }
    }

    /// Forgets tasks that ended long ago, and acknowledged ones when there are many.
    pub(super) fn forget_before(&mut self, oldest: TimestampMs, store: &Store) {
        let mut surplus = self.tasks.len().saturating_sub(2 * super::MOST);
        self.tasks.retain(|id, entry| {
            let is_old = entry.kept.ended_ms.is_some_and(|ended| ended < oldest);
            if is_old {
                store.remove(id);
            }
            let is_surplus = entry.is_over && surplus > 0;
            surplus -= usize::from(is_surplus);
            !is_old && !is_surplus
        });
    }

    pub(super) fn acknowledge(&mut self, id: &TaskId) {
        if let Some(entry) = self.tasks.get_mut(id) {
            entry.is_over = true;
        }
    }

    /// Notes that the giver of these knows of those that ended.
    pub(super) fn shown(&mut self, tasks: &[TaskReport]) {
        for task in tasks.iter().filter(|task| task.state.is_ended()) {
            if let Some(entry) = self.tasks.get_mut(&task.id) {
                entry.is_known = true;
            }
        }
    }

    /// The tasks of `by` that ended, and that it does not know of.
    pub(super) fn unknown_ends(&self, by: &AgentId) -> Vec<TaskReport> {
        let ends = self.tasks.values().filter(|entry| {
            entry.kept.by == *by && entry.state.is_ended() && !entry.is_known && !entry.is_over
        });
        ends.map(|entry| entry.kept.report(entry.state)).collect()
    }

    pub(super) fn sent(&mut self, id: &TaskId, session: SessionId) -> Vec<TaskId> {
        if let Some(entry) = self.tasks.get_mut(id) {
            entry.kept.session = Some(session);
        }
        self.settle()
    }

    /// A copy of the task with its end; None if it has ended already.
    pub(super) fn ended(&self, id: &TaskId, ended: Ended) -> Option<Kept> {
        let entry = self.tasks.get(id).filter(|entry| !entry.kept.state.is_ended())?;
        let mut kept = entry.kept.clone();
        kept.end(ended);
        Some(kept)
    }

    /// Replaces a task by its copy with the end.
    pub(super) fn end(&mut self, kept: Kept) {
        let Some(entry) = self.tasks.get_mut(&kept.id) else { return };
        self.version += 1;
        (entry.state, entry.version, entry.kept) = (kept.state, self.version, kept);
    }

    pub(super) fn blocked(&mut self, access: &BlockedAccess, waits: bool) -> Vec<TaskId> {
        if waits {
            self.pending.insert(access.id.clone(), access.key.clone());
        } else {
            self.pending.remove(&access.id);
        }
        self.settle()
    }

    pub(super) fn conflict(&mut self, conflict: &Conflict) -> Vec<TaskId> {
        if let Some(writer) = conflict.agents.first().filter(|_| conflict.waits()) {
            let key = SessionKey::new(writer.clone(), conflict.session.clone());
            self.held.insert(conflict.id.clone(), key);
        } else if self.held.remove(&conflict.id).is_none() {
            return Vec::new();
        }
        self.settle()
    }

    /// Replaces all accesses that wait, and all agents that stall. What waits for locks is not known
    /// any more.
    pub(super) fn stand_anew(
        &mut self,
        pending: &[BlockedAccess],
        agents: &[AgentStatus],
    ) -> Vec<TaskId> {
        self.held.clear();
        let pending = pending.iter().filter(|access| access.needs_decision());
        self.pending = pending.map(|it| (it.id.clone(), it.key.clone())).collect();
        let stalled = agents.iter().filter(|status| status.is_stalled());
        self.stalled = stalled.map(|status| status.agent.clone()).collect();
        self.settle()
    }

    pub(super) fn agent(&mut self, status: &AgentStatus) -> Vec<TaskId> {
        self.stalled.retain(|agent| *agent != status.agent);
        if status.is_stalled() {
            self.stalled.push(status.agent.clone());
        }
        self.settle()
    }

    pub(super) fn budget(&mut self, report: &BudgetReport) -> Vec<TaskId> {
        let is_new = if report.state == BudgetState::Exceeded {
            self.used_up.insert(report.agent.clone())
        } else {
            self.used_up.remove(&report.agent)
        };
        if is_new { self.settle() } else { Vec::new() }
    }

    /// Brings the states up to date; returns the tasks whose state changed.
    fn settle(&mut self) -> Vec<TaskId> {
        let mut changed = Vec::new();
        let need = self.need_approval();
        let running = self.tasks.values_mut().filter(|entry| !entry.kept.state.is_ended());
        for entry in running {
            let Kept { agent, session, .. } = &entry.kept;
            let Some(session) = session else { continue };
            // With several running turns an access may belong to none of them.
            let is_its = |key: &SessionKey| {
                key.agent == *agent && (key.session == *session || key.session.as_str().is_empty())
            };
            let state = if need.contains(&entry.kept.id) {
                TaskState::NeedsApproval
            } else if self.held.values().any(is_its) {
                TaskState::WaitingLock
            } else if self.stalled.contains(agent) {
                TaskState::Stalled
            } else if self.used_up.contains(&None) || self.used_up.contains(&Some(agent.clone())) {
                TaskState::BudgetPaused
            } else {
                TaskState::Running
            };
            if entry.state != state {
                self.version += 1;
                (entry.state, entry.version) = (state, self.version);
                changed.push(entry.kept.id.clone());
            }
        }
        changed
    }

    /// The tasks of which an access waits for a decision, and those of the agents that gave them:
    /// whoever is to decide may wait for these alone.
    fn need_approval(&self) -> HashSet<TaskId> {
        if self.pending.is_empty() {
            return HashSet::new();
        }
        let running = self.tasks.values().map(|entry| &entry.kept);
        let running: Vec<&Kept> = running.filter(|kept| !kept.state.is_ended()).collect();
        // With several running turns an access may belong to none of them.
        let waits = |kept: &&&Kept| {
            kept.session.as_ref().is_some_and(|session| {
                self.pending.values().any(|key| {
                    key.agent == kept.agent
                        && (key.session == *session || key.session.as_str().is_empty())
                })
            })
        };
        let mut open: Vec<&Kept> = running.iter().filter(waits).copied().collect();
        let mut need: HashSet<TaskId> = open.iter().map(|kept| kept.id.clone()).collect();
        while let Some(below) = open.pop() {
            for above in running.iter().filter(|above| above.agent == below.by) {
                if need.insert(above.id.clone()) {
                    open.push(above);
                }
            }
        }
        need
    }

    pub(super) fn report(&self, id: &TaskId) -> Option<TaskReport> {
        self.tasks.get(id).map(|entry| entry.kept.report(entry.state))
    }

    pub(super) fn get(&self, by: Option<&AgentId>, id: &TaskId) -> Result<Kept, TaskError> {
        let entry = self.entry(by, id)?;
        Ok(Kept { state: entry.state, ..entry.kept.clone() })
    }

    pub(super) fn list(
        &self,
        by: Option<&AgentId>,
        ids: &[TaskId],
    ) -> Result<Vec<TaskReport>, TaskError> {
        if !ids.is_empty() {
            let report = |id| self.entry(by, id).map(|entry| entry.kept.report(entry.state));
            return ids.iter().map(report).collect();
        }
        let own = self
            .tasks
            .values()
            .filter(|entry| !entry.is_over && by.is_none_or(|by| *by == entry.kept.by));
        Ok(own.map(|entry| entry.kept.report(entry.state)).collect())
    }

    /// Whether a wait for these tasks is over.
    pub(super) fn is_over(&self, tasks: &[TaskReport], mode: Mode, cursor: Option<u64>) -> bool {
        let is_new = |task: &TaskReport| {
            let version = self.tasks.get(&task.id).map_or(0, |entry| entry.version);
            cursor.is_none_or(|cursor| version > cursor)
        };
        let ended = |task: &TaskReport| task.state.is_ended();
        tasks.iter().all(ended)
            || tasks.iter().any(|task| task.state.needs_help() && is_new(task))
            || (mode == Mode::First && tasks.iter().any(|task| ended(task) && is_new(task)))
    }

    fn entry(&self, by: Option<&AgentId>, id: &TaskId) -> Result<&BoardTask, TaskError> {
        let entry = self.tasks.get(id);
        let own = entry.filter(|entry| by.is_none_or(|by| *by == entry.kept.by));
        own.ok_or_else(|| TaskError::Unknown(id.clone()))
    }
}
