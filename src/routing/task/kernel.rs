//! What is particular to calls that the kernel stopped: sweeps, tries that one process repeats, and
//! what ends with a turn.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Briefing, Entry, Task};
use crate::model::{
    Action, AgentId, BlockedAccess, BlockedId, BlockedStatus, Event, SessionId, SessionKey,
    SessionMode, Via, now_ms,
};
use crate::routing::Request;

/// A process that tries the same again within this time is not told again.
const AGAIN: Duration = Duration::from_secs(10);
/// Tries of one session that are remembered; when full, all are forgotten.
const MOST_TRIES: usize = 4096;
/// Sessions whose tries are remembered; when full, all are forgotten.
const MOST_SESSIONS: usize = 1024;

/// What the kernel stopped in the turns that run.
#[derive(Default, Debug)]
pub(super) struct Stopped(HashMap<SessionKey, HashMap<(Arc<str>, Action), Try>>);

/// The last try of a path.
#[derive(Debug)]
struct Try {
    caller: Option<u32>,
    at: Instant,
    /// The line that told of it, if it was denied at once.
    id: Option<BlockedId>,
}

impl Task {
    /// Counts an access that nobody asked for by name. True: it was granted all the same.
    pub(super) fn swept(&mut self, request: Request, turn: u64) -> bool {
        if self.grants.take(&request).is_some() {
            return true;
        }
        self.stopped.note(&request, None);
        let Request { key, path, action, .. } = request;
        let owners = |task: &Self, path: &str| task.owners(path);
        if let Some(sweep) = self.sweeps.get_mut(&key, turn) {
            let before = Arc::clone(&sweep.path);
            sweep.add(&path, action);
            let (path, action, count) = (Arc::clone(&sweep.path), sweep.action, sweep.count);
            let id = sweep.id.clone();
            let owners = (path != before).then(|| owners(self, &path));
            if let Some(entry) = self.board.get_mut(&id) {
                entry.access.path = path;
                entry.access.action = action;
                entry.access.sweep = Some(count);
                entry.access.timestamp_ms = now_ms();
                if let Some(owners) = owners {
                    entry.access.owners = owners;
                }
                return false;
            }
            // It went on for so long that its line was forgotten: it begins anew.
        }
        self.end_sweep(&key);
        let id = self.board.next_id();
        self.sweeps.begin(key.clone(), turn, id.clone(), &path, action);
        let access = BlockedAccess {
            id,
            mode: self.mode(&key),
            owners: owners(self, &path),
            // Nobody is asked about it.
            orchestrator: None,
            key,
            path,
            action,
            via: Via::Kernel,
            status: BlockedStatus::Denied,
            sweep: Some(1),
            completed: false,
            timestamp_ms: now_ms(),
        };
        self.bus.publish(Event::Blocked(access.clone()));
        self.board.insert(Entry {
            access,
            grantable: false,
            decided: false,
            caller: None,
            briefing: Briefing::None,
            settle: None,
        });
        false
    }

    /// The line of a try that the same process made a moment ago, if it is still undecided.
    pub(super) fn tried_before(&mut self, request: &Request) -> Option<BlockedId> {
        let id = self.stopped.again(request)?;
        self.board.get(&id).is_some_and(|entry| !entry.decided).then_some(id)
    }

    /// Whether the kernel stopped it in this turn: then it was not accessed, whatever is said.
    pub(super) fn was_stopped(&self, request: &Request) -> bool {
        let agent = &request.key.agent;
        let of_nobody = SessionKey::new(agent.clone(), SessionId::new(""));
        let access = (Arc::clone(&request.path), request.action);
        [&request.key, &of_nobody]
            .iter()
            .any(|key| self.stopped.0.get(key).is_some_and(|tries| tries.contains_key(&access)))
    }

    /// Ends what lasts as long as a turn.
    pub(super) fn turn_over(&mut self, key: &SessionKey) {
        self.end_sweep(key);
        self.grants.turn_over(key);
        self.stopped.0.remove(key);
        self.stopped.0.remove(&SessionKey::new(key.agent.clone(), SessionId::new("")));
    }

    /// Tells the counts of sweeps whose time has come.
    pub(super) fn tell_sweeps(&mut self) {
        for id in self.sweeps.due() {
            self.tell_again(&id);
        }
    }

    pub(super) fn forget_kernel(&mut self, agent: &AgentId) {
        self.sweeps.forget(agent);
        self.stopped.0.retain(|key, _| key.agent != *agent);
    }

    fn end_sweep(&mut self, key: &SessionKey) {
        if let Some(sweep) = self.sweeps.end(key) {
            self.tell_again(&sweep.id);
        }
    }

    fn tell_again(&self, id: &BlockedId) {
        if let Some(entry) = self.board.get(id) {
            self.bus.publish(Event::Blocked(entry.access.clone()));
        }
    }

    pub(super) fn mode(&self, key: &SessionKey) -> SessionMode {
        if self.is_orchestrator(&key.agent) && key.session == self.orchestrator_session {
            SessionMode::Orchestrator
        } else {
            SessionMode::SingleAgent
        }
    }
}

impl Stopped {
    /// Notes a try; `id` is the line that tells of it.
    pub(super) fn note(&mut self, request: &Request, id: Option<BlockedId>) {
        if self.0.len() >= MOST_SESSIONS && !self.0.contains_key(&request.key) {
            self.0.clear();
        }
        let tries = self.0.entry(request.key.clone()).or_default();
        if tries.len() >= MOST_TRIES {
            tries.clear();
        }
        let access = (Arc::clone(&request.path), request.action);
        tries.insert(access, Try { caller: request.caller, at: Instant::now(), id });
    }

    /// Notes that it was tried again, and returns the line that told of it the last time.
    fn again(&mut self, request: &Request) -> Option<BlockedId> {
        let access = (Arc::clone(&request.path), request.action);
        let last = self.0.get_mut(&request.key)?.get_mut(&access)?;
        let now = Instant::now();
        if last.caller != request.caller || now.duration_since(last.at) > AGAIN {
            return None;
        }
        last.at = now;
        last.id.clone()
    }
}
