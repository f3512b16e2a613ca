//! The requests that wait for the decision of one access: which of them join another, and what becomes
//! of it when they wait no more.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Task;
use super::queue::is_for_person;
use crate::model::{
    AccessRule, Action, BlockedId, BlockedStatus, Event, SessionId, SessionKey, Via,
};
use crate::routing::board::{BoardEntry, Briefing, Waiter};
use crate::routing::wait::{EndedWait, Waited};
use crate::routing::{Request, Settlement};

/// Why nobody waits for a decision any more.
const TURN_OVER: &str = "its turn ended";
const CALL_FAILED: &str = "its tool call failed";
const GONE: &str = "the agent no longer waits for it";
const GAVE_UP: &str = "the agent gave up, by its own limit";

/// An agent's limit and the clock of its process may differ by so much.
const SLACK: Duration = Duration::from_secs(2);

impl Task {
    /// The pending access that a request is another part of: agents do one thing by several requests and
    /// system calls.
    pub(super) fn joined(&self, request: &Request, rule: Option<AccessRule>) -> Option<BlockedId> {
        let session = &request.key.session;
        let is_same = |entry: &&BoardEntry| {
            let access = &entry.access;
            let is_answerable =
                matches!(request.via, Via::Fs | Via::Request) && request.action == Action::Read;
            // What is written is a part of the question.
            let is_same_content = match (&request.wanted, &entry.wanted) {
                (Some(new), Some(known)) => new == known,
                _ => true,
            };
            access.status == BlockedStatus::Pending
                && !entry.waiters.is_empty()
                && (access.key.session == *session || session.as_str().is_empty())
                && access.rule == rule
                && access.denied_by == request.denied_by
                && access.is_answerable() == is_answerable
                && entry.scope == request.scope
                && entry.grantable == request.grantable
                && is_same_content
                && entry
                    .waiters
                    .iter()
                    .all(|it| it.via != Via::Request && is_other_way(it.via, request.via))
        };
        self.board.requested(request).find(is_same).map(|entry| entry.access.id.clone())
    }

    /// Handles the end of a wait for a decision.
    pub(super) fn wait_ended(&mut self, ended: &EndedWait) {
        let EndedWait { id, number, waited } = ended;
        let left = self.board.change(id, |entry| {
            entry.waiters.retain(|waiter| waiter.number != *number);
            entry.waiters.len()
        });
        let is_last = left.is_none_or(|left| left == 0);
        if is_last {
            self.held.remove(id);
        }
        match waited {
            Waited::TimedOut => self.timed_out(id),
            Waited::Withdrawn if is_last => self.withdrawn(id),
            Waited::Decided | Waited::Withdrawn => {}
        }
    }

    /// An access was denied without a decision: it may still be allowed for the next attempt, which is
    /// briefed as if it were the first.
    fn timed_out(&mut self, id: &BlockedId) {
        self.end_pending(id, |entry| {
            entry.access.status = BlockedStatus::Denied;
            entry.access.ended = Some("nobody decided in time".into());
            if entry.briefing != Briefing::Waiting {
                entry.briefing = Briefing::None;
            }
        });
    }

    fn withdrawn(&mut self, id: &BlockedId) {
        if !self.stays_queued(id) {
            self.end_pending(id, |entry| {
                let gave_up = entry.gives_up.is_some_and(|at| at <= Instant::now() + SLACK);
                let why = entry.over.take().unwrap_or_else(|| {
                    let why = if gave_up { GAVE_UP } else { GONE };
                    why.into()
                });
                entry.access.ended = Some(why);
                entry.access.status = BlockedStatus::Expired;
                entry.decided = true;
            });
        }
    }

    /// Ends a pending access that nobody decided.
    fn end_pending(&mut self, id: &BlockedId, end: impl FnOnce(&mut BoardEntry)) {
        let is_pending =
            |entry: &BoardEntry| !entry.decided && entry.access.status == BlockedStatus::Pending;
        if !self.board.get(id).is_some_and(is_pending) {
            return;
        }
        let ended = self.board.change(id, |entry| {
            end(entry);
            (entry.access.until_ms, entry.access.offered) = (None, None);
            entry.access.clone()
        });
        let Some(access) = ended else { return };
        if is_for_person(&access) {
            self.publish_queue();
        }
        self.bus.publish(Event::Blocked(access.clone()));
        // An equal pending access may have relied on this one's briefing.
        let next = self.board.alike(&access).find(|entry| is_pending(entry));
        if let Some(next) = next.map(|entry| entry.access.id.clone()) {
            self.route(&next);
        }
    }

    /// Remembers why the accesses of a turn end that are still pending.
    pub(super) fn note_turn_over(&mut self, key: &SessionKey) {
        // One without a session may be of another turn.
        for id in self.pending_of(key, |entry| entry.access.key.session == key.session) {
            self.board.change(&id, |entry| entry.over = Some(TURN_OVER.into()));
        }
    }

    /// Ends the requests of a tool call that failed: nobody waits for them, even if they are not
    /// withdrawn. An access for which another call waits stays pending.
    pub(super) fn call_failed(&mut self, key: &SessionKey, call: &Arc<str>) {
        let ends = |entry: &BoardEntry, waiter: &Waiter| {
            let of = waiter.call.as_ref().or(entry.access.tool_call.as_ref());
            waiter.via != Via::Request && of == Some(call)
        };
        let is_its = |entry: &BoardEntry| entry.waiters.iter().any(|waiter| ends(entry, waiter));
        for id in self.pending_of(key, is_its) {
            let denial = self.denial(&id, Some(format!("It is too late: {CALL_FAILED}.")));
            let is_last = self.board.change(&id, |entry| {
                let waiters = std::mem::take(&mut entry.waiters).into_iter();
                let (over, left): (Vec<_>, _) = waiters.partition(|waiter| ends(entry, waiter));
                entry.waiters = left;
                for waiter in over {
                    let _ = waiter.settle.send(Settlement::clone(&denial));
                }
                let is_last = entry.waiters.is_empty();
                if is_last {
                    entry.over = Some(CALL_FAILED.into());
                }
                is_last
            });
            if is_last == Some(true) {
                self.withdrawn(&id);
            }
        }
    }

    fn pending_of(
        &self,
        key: &SessionKey,
        is_meant: impl Fn(&BoardEntry) -> bool,
    ) -> Vec<BlockedId> {
        let none = SessionId::new("");
        let is_its = |entry: &&BoardEntry| {
            let of = &entry.access.key;
            of.agent == key.agent && (of.session == key.session || of.session == none)
        };
        let pending = self.board.pending().filter(is_its).filter(|entry| is_meant(entry));
        pending.map(|entry| entry.access.id.clone()).collect()
    }
}

/// Whether one operation may make both requests. A further request by the same way is a further tool call;
/// system calls are repeated.
fn is_other_way(one: Via, other: Via) -> bool {
    one != other || one == Via::Kernel
}
