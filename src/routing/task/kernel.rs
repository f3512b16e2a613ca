//! What is counted and not listed, what is particular to calls that the kernel stopped (sweeps, tries
//! that one process repeats), and what ends with a turn.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{BoardEntry, Briefing, Task};
use crate::model::{
    Action, AgentId, BlockedAccess, BlockedId, BlockedStatus, Event, SessionId, SessionKey,
    SessionMode, Via, now_ms,
};
use crate::routing::Request;
use crate::routing::sweeps::Sweeps;

/// A process that tries the same again within this time is not told again.
const AGAIN: Duration = Duration::from_secs(10);
/// A process that tries again within this time what was just refused to it is refused it again:
/// agents try what failed in several ways.
const REFUSED: Duration = Duration::from_secs(2);
/// Tries of one agent that are remembered, of paths of 4 KiB at most; when full, all are forgotten.
const MOST_TRIES: usize = 2048;

/// What the kernel stopped in the turns that run.
#[derive(Default, Debug)]
pub(super) struct Stopped(HashMap<AgentId, HashMap<SessionId, Tries>>);

/// The tries of one session, by path and action.
type Tries = HashMap<(Arc<str>, Action), Try>;

/// Why an access is counted and not listed.
#[derive(Clone, Copy, Debug)]
enum Counted {
    /// Nobody asked for it by name.
    Swept,
    /// Its agent has more than are listed.
    TooMany,
}

/// The last try of a path.
#[derive(Debug)]
struct Try {
    caller: Option<u32>,
    at: Instant,
    /// The line that told of it, if it was denied at once or refused.
    id: Option<BlockedId>,
    /// Whoever decides refused it then.
    refused: bool,
}

impl Task {
    /// Counts an access that nobody asked for by name. True: it was granted all the same.
    pub(super) fn record_incidental(&mut self, request: Request, turn: u64) -> bool {
        if self.grants.take(&request).is_some() {
            return true;
        }
        self.stopped.note(&request, None);
        self.count(Counted::Swept, request, turn);
        false
    }

    /// Denies an access of an agent that has more of them than are listed; returns the line that
    /// counts it.
    pub(super) fn deny_unlisted(&mut self, request: Request) -> BlockedId {
        if request.via == Via::Kernel {
            self.stopped.note(&request, None);
        }
        // Of no session: whoever floods may name as many as it likes.
        let key = SessionKey::new(request.key.agent.clone(), SessionId::new(""));
        self.count(Counted::TooMany, Request { key, ..request }, 0)
    }

    /// Counts an access in the line of its session; returns the id of that.
    fn count(&mut self, what: Counted, request: Request, turn: u64) -> BlockedId {
        let Request { key, path, action, via, .. } = request;
        if let Some(sweep) = self.counts(what).get_mut(&key, turn) {
            let before = Arc::clone(&sweep.path);
            sweep.add(&path, action);
            let (path, action, count) = (Arc::clone(&sweep.path), sweep.action, sweep.count);
            let id = sweep.id.clone();
            let owners = (path != before).then(|| self.owners(&path));
            let grown = self.board.change(&id, |entry| {
                entry.access.path = path;
                entry.access.action = action;
                entry.access.sweep = Some(count);
                entry.access.timestamp_ms = now_ms();
                if let Some(owners) = owners {
                    entry.access.owners = owners;
                }
            });
            if grown.is_some() {
                return id;
            }
            // It went on for so long that its line was forgotten: it begins anew.
        }
        self.end_count(what, &key);
        let id = self.board.next_id();
        self.counts(what).begin(key.clone(), turn, id.clone(), &path, action);
        let access = BlockedAccess {
            id: id.clone(),
            mode: self.mode(&key),
            owners: self.owners(&path),
            // Nobody is asked about it.
            orchestrator: None,
            key,
            path,
            action,
            via,
            status: BlockedStatus::Denied,
            sweep: Some(1),
            denied_by: None,
            completed: false,
            timestamp_ms: now_ms(),
        };
        self.bus.publish(Event::Blocked(access.clone()));
        self.board.insert(BoardEntry {
            access,
            grantable: false,
            decided: false,
            caller: None,
            briefing: Briefing::None,
            settle: None,
        });
        id
    }

    fn counts(&mut self, what: Counted) -> &mut Sweeps {
        match what {
            Counted::Swept => &mut self.sweeps,
            Counted::TooMany => &mut self.unlisted,
        }
    }

    /// The line of a try that the same process made a moment ago, if it is still undecided.
    pub(super) fn tried_before(&mut self, request: &Request) -> Option<BlockedId> {
        let id = self.stopped.again(request)?;
        self.board.get(&id).is_some_and(|entry| !entry.decided).then_some(id)
    }

    /// Whether the kernel stopped it in this turn: then it was not accessed, whatever is said.
    pub(super) fn was_stopped(&self, request: &Request) -> bool {
        let Some(sessions) = self.stopped.0.get(&request.key.agent) else { return false };
        let access = (Arc::clone(&request.path), request.action);
        [&request.key.session, &SessionId::new("")]
            .iter()
            .any(|session| sessions.get(session).is_some_and(|tries| tries.contains_key(&access)))
    }

    /// Ends what lasts as long as a turn.
    pub(super) fn turn_over(&mut self, key: &SessionKey) {
        self.end_count(Counted::Swept, key);
        self.grants.turn_over(key);
        self.stopped.turn_over(key);
    }

    /// Tells the counts of sweeps whose time has come.
    pub(super) fn publish_sweeps(&mut self) {
        for id in self.sweeps.due().into_iter().chain(self.unlisted.due()) {
            self.publish_again(&id);
        }
    }

    /// When [`Self::publish_sweeps`] next has something to do.
    pub(super) fn sweeps_due(&self) -> Option<Instant> {
        self.sweeps.next_due().into_iter().chain(self.unlisted.next_due()).min()
    }

    pub(super) fn forget_kernel(&mut self, agent: &AgentId) {
        self.sweeps.forget(agent);
        self.unlisted.forget(agent);
        self.stopped.0.remove(agent);
    }

    fn end_count(&mut self, what: Counted, key: &SessionKey) {
        if let Some(sweep) = self.counts(what).end(key) {
            self.publish_again(&sweep.id);
        }
    }

    fn publish_again(&self, id: &BlockedId) {
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
        let sessions = self.0.entry(request.key.agent.clone()).or_default();
        if sessions.values().map(HashMap::len).sum::<usize>() >= MOST_TRIES {
            sessions.clear();
        }
        let access = (Arc::clone(&request.path), request.action);
        let last = Try { caller: request.caller, at: Instant::now(), id, refused: false };
        sessions.entry(request.key.session.clone()).or_default().insert(access, last);
    }

    /// Takes in that whoever decides refused an access.
    pub(super) fn refused(&mut self, access: &BlockedAccess, caller: Option<u32>) {
        let tries = self.0.get_mut(&access.key.agent);
        let tries = tries.and_then(|sessions| sessions.get_mut(&access.key.session));
        let of = (Arc::clone(&access.path), access.action);
        if let Some(last) = tries.and_then(|tries| tries.get_mut(&of)) {
            let id = Some(access.id.clone());
            *last = Try { caller, at: Instant::now(), id, refused: true };
        }
    }

    /// The line of what was refused to the same process a moment ago.
    pub(super) fn was_refused(&self, request: &Request) -> Option<BlockedId> {
        let access = (Arc::clone(&request.path), request.action);
        let sessions = self.0.get(&request.key.agent)?;
        let last = sessions.get(&request.key.session)?.get(&access)?;
        let is_same = last.refused && last.caller == request.caller;
        if is_same && last.at.elapsed() <= REFUSED { last.id.clone() } else { None }
    }

    /// Notes that it was tried again, and returns the line that told of it the last time.
    fn again(&mut self, request: &Request) -> Option<BlockedId> {
        let access = (Arc::clone(&request.path), request.action);
        let sessions = self.0.get_mut(&request.key.agent)?;
        let last = sessions.get_mut(&request.key.session)?.get_mut(&access)?;
        let now = Instant::now();
        if last.caller != request.caller || now.duration_since(last.at) > AGAIN {
            return None;
        }
        last.at = now;
        last.id.clone()
    }

    fn turn_over(&mut self, key: &SessionKey) {
        let Some(sessions) = self.0.get_mut(&key.agent) else { return };
        sessions.remove(&key.session);
        sessions.remove(&SessionId::new(""));
    }
}
