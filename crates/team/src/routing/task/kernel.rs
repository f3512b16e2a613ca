//! Accesses that are counted rather than listed, repeated attempts of one process that the kernel
//! stopped, and the end of a turn.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::requests::opens;
use super::{BoardEntry, Briefing, Task};
use crate::model::{
    Action, AgentId, BlockedAccess, BlockedId, BlockedStatus, Event, SessionId, SessionKey,
    SessionMode, Via, now_ms,
};
use crate::routing::sweeps::Sweeps;
use crate::routing::{AccessScope, Request};

/// A repeated attempt of a process within this time is not listed again.
const REPORT_AGAIN: Duration = Duration::from_secs(10);
/// A repeated attempt of a process within this time after a refusal is refused too: agents retry in
/// several ways.
const REFUSE_AGAIN: Duration = Duration::from_secs(2);
/// Attempts of one agent that are kept, with paths of 4 KiB at most; when full, all are dropped.
const MOST_ATTEMPTS: usize = 2048;

/// The attempts that the kernel stopped in the running turns.
#[derive(Default, Debug)]
pub(super) struct Stopped(HashMap<AgentId, HashMap<SessionId, Attempts>>);

/// The attempts of one session, by path and action.
type Attempts = HashMap<(Arc<str>, Action), LastAttempt>;

/// The accesses that are counted and not listed, by the reason.
#[derive(Default, Debug)]
pub(super) struct Counts {
    incidental: Sweeps,
    harmless: Sweeps,
    too_many: Sweeps,
}

/// Why an access is counted and not listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Counted {
    /// The access is incidental.
    Incidental,
    /// The access is incidental, and its refusal does no harm.
    Harmless,
    /// The agent exceeds the rate of listed accesses.
    TooMany,
}

/// The last attempt on a path.
#[derive(Debug)]
struct LastAttempt {
    caller: Option<u32>,
    at: Instant,
    /// The entry that lists it, if it was denied at once or refused.
    id: Option<BlockedId>,
    /// A decision refused it.
    refused: bool,
}

impl Task {
    /// Counts an incidental access; true if a grant covers it.
    pub(super) fn record_incidental(
        &mut self,
        request: Request,
        turn: u64,
        is_harmless: bool,
    ) -> bool {
        let rule = self.rule(&request);
        if self.take_grant(&request, rule).is_some() || opens(rule) {
            return true;
        }
        self.stopped.note(&request, None);
        let what = if is_harmless { Counted::Harmless } else { Counted::Incidental };
        self.count(what, request, turn);
        false
    }

    /// Denies an access beyond the rate of listed ones; returns the entry that counts it.
    pub(super) fn deny_unlisted(&mut self, request: Request) -> BlockedId {
        if request.via == Via::Kernel {
            self.stopped.note(&request, None);
        }
        // Without a session: an agent that floods may name any number of them.
        let key = SessionKey::new(request.key.agent.clone(), SessionId::new(""));
        let id = self.count(Counted::TooMany, Request { key, ..request.clone() }, 0);
        if let Some(counting) = self.board.get(&id) {
            let Request { key, path, action, via, denied_by, .. } = request;
            let counting = counting.access.clone();
            let access =
                BlockedAccess { key, path, action, via, denied_by, sweep: None, ..counting };
            self.stories.add_unlisted(access);
        }
        id
    }

    /// Counts an access in the entry of its session; returns that entry's id.
    fn count(&mut self, what: Counted, request: Request, turn: u64) -> BlockedId {
        let Request { key, path, action, via, .. } = request;
        if let Some(sweep) = self.counts_of(what).get_mut(&key, turn) {
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
            // The board dropped the old entry: begin a new one.
        }
        self.end_count(what, &key);
        let id = self.board.next_id();
        self.counts_of(what).begin(key.clone(), turn, id.clone(), &path, action);
        let access = BlockedAccess {
            id: id.clone(),
            mode: self.mode(&key),
            owners: self.owners(&path),
            // No decision is needed.
            orchestrator: None,
            key,
            path,
            action,
            via,
            status: BlockedStatus::Denied,
            sweep: Some(1),
            harmless: what == Counted::Harmless,
            denied_by: None,
            rule: None,
            decided_by: None,
            message: None,
            owner_answer: None,
            reason: None,
            tool_call: None,
            offered: None,
            until_ms: None,
            ended: None,
            completed: false,
            timestamp_ms: now_ms(),
        };
        self.add_to_story(&access.key, &id);
        self.bus.publish(Event::Blocked(access.clone()));
        self.put_on_board(BoardEntry {
            access,
            scope: AccessScope::Path,
            grantable: false,
            decided: false,
            sessions: Vec::new(),
            briefing: Briefing::None,
            gives_up: None,
            over: None,
            wanted: None,
            waiters: Vec::new(),
        });
        id
    }

    fn counts_of(&mut self, what: Counted) -> &mut Sweeps {
        match what {
            Counted::Incidental => &mut self.counts.incidental,
            Counted::Harmless => &mut self.counts.harmless,
            Counted::TooMany => &mut self.counts.too_many,
        }
    }

    /// The entry of a recent attempt by the same process, if it is still undecided.
    pub(super) fn tried_before(&mut self, request: &Request) -> Option<BlockedId> {
        let id = self.stopped.again(request)?;
        self.board.get(&id).is_some_and(|entry| !entry.decided).then_some(id)
    }

    /// Handles an access outside its zone that a tool call completed; returns its id if it is
    /// listed.
    pub(super) fn observed(&mut self, request: Request) -> Option<BlockedId> {
        if self.board.was_allowed(&request) || self.is_open(&request, self.rule(&request)) {
            return None;
        }
        if let Some(access) = self.board.completed(&request) {
            let BlockedAccess { id, path, .. } = access;
            tracing::warn!(
                agent = %request.key.agent, %id, %path,
                "a tool call that was denied reports that it completed"
            );
            self.bus.publish(Event::Blocked(access.clone()));
        }
        if self.was_stopped(&request) {
            return None;
        }
        let id = self.block(request, BlockedStatus::Observed, None);
        self.route(&id);
        Some(id)
    }

    /// Whether the kernel stopped it in this turn, so that it did not happen even if the tool call
    /// reports it.
    pub(super) fn was_stopped(&self, request: &Request) -> bool {
        let Some(sessions) = self.stopped.0.get(&request.key.agent) else { return false };
        let access = (Arc::clone(&request.path), request.action);
        [&request.key.session, &SessionId::new("")].iter().any(|session| {
            sessions.get(session).is_some_and(|attempts| attempts.contains_key(&access))
        })
    }

    /// Ends the counts, grants and attempts of a turn.
    pub(super) fn turn_over(&mut self, key: &SessionKey) {
        self.end_count(Counted::Incidental, key);
        self.end_count(Counted::Harmless, key);
        self.grants.turn_over(key);
        self.stopped.turn_over(key);
    }

    /// Publishes the counts that are due.
    pub(super) fn publish_sweeps(&mut self) {
        let due: Vec<_> = self.counts.all().into_iter().flat_map(Sweeps::due).collect();
        for id in due {
            self.publish_again(&id);
        }
    }

    /// When [`Self::publish_sweeps`] is next due.
    pub(super) fn sweeps_due(&mut self) -> Option<Instant> {
        self.counts.all().into_iter().filter_map(|counts| counts.next_due()).min()
    }

    pub(super) fn forget_kernel(&mut self, agent: &AgentId) {
        self.counts.all().into_iter().for_each(|counts| counts.forget(agent));
        self.stopped.0.remove(agent);
    }

    fn end_count(&mut self, what: Counted, key: &SessionKey) {
        if let Some(sweep) = self.counts_of(what).end(key) {
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

impl Counts {
    fn all(&mut self) -> [&mut Sweeps; 3] {
        [&mut self.incidental, &mut self.harmless, &mut self.too_many]
    }
}

impl Stopped {
    /// Records an attempt; `id` is the entry that lists it.
    pub(super) fn note(&mut self, request: &Request, id: Option<BlockedId>) {
        let sessions = self.0.entry(request.key.agent.clone()).or_default();
        if sessions.values().map(HashMap::len).sum::<usize>() >= MOST_ATTEMPTS {
            sessions.clear();
        }
        let access = (Arc::clone(&request.path), request.action);
        let last = LastAttempt { caller: request.caller, at: Instant::now(), id, refused: false };
        sessions.entry(request.key.session.clone()).or_default().insert(access, last);
    }

    /// Records that a decision refused an access.
    pub(super) fn refused(&mut self, access: &BlockedAccess, caller: Option<u32>) {
        let attempts = self.0.get_mut(&access.key.agent);
        let attempts = attempts.and_then(|sessions| sessions.get_mut(&access.key.session));
        let of = (Arc::clone(&access.path), access.action);
        if let Some(last) = attempts.and_then(|attempts| attempts.get_mut(&of)) {
            let id = Some(access.id.clone());
            *last = LastAttempt { caller, at: Instant::now(), id, refused: true };
        }
    }

    /// The entry of a recent attempt that was refused to the same process.
    pub(super) fn was_refused(&self, request: &Request) -> Option<BlockedId> {
        let access = (Arc::clone(&request.path), request.action);
        let sessions = self.0.get(&request.key.agent)?;
        let last = sessions.get(&request.key.session)?.get(&access)?;
        let is_same = last.refused && last.caller == request.caller;
        if is_same && last.at.elapsed() <= REFUSE_AGAIN { last.id.clone() } else { None }
    }

    /// Records a repeated attempt; returns the entry that lists it.
    fn again(&mut self, request: &Request) -> Option<BlockedId> {
        let access = (Arc::clone(&request.path), request.action);
        let sessions = self.0.get_mut(&request.key.agent)?;
        let last = sessions.get_mut(&request.key.session)?.get_mut(&access)?;
        let now = Instant::now();
        if last.caller != request.caller || now.duration_since(last.at) > REPORT_AGAIN {
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
