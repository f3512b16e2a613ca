//! The accesses that a person decides by a rule of `[[routing]]`: each stays though its agent gives
//! up, or the team stops; what a person allowed stays until its agent tries again.

use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Instant;

use super::Task;
use super::requests::judged;
use crate::model::{
    AccessRule, Action, AgentId, BlockedAccess, BlockedId, BlockedStatus, Decide, quoted,
};
use crate::routing::board::BoardEntry;
use crate::routing::grants::Allowed;
use crate::routing::{Allowance, Queued, Request, Settlement};

/// Accesses of the queue that no agent waits for any more; beyond that they expire.
const MOST_UNATTENDED: usize = 1000;

impl Task {
    /// Takes over the queue of an earlier run: what waits waits again, as far as the rules still say
    /// so, and what a person allowed is allowed.
    pub(super) fn requeue(&mut self, queued: Vec<Queued>) {
        let (allowed, waiting): (Vec<_>, Vec<_>) =
            queued.into_iter().partition(|it| it.permit.is_some());
        for Queued { access, .. } in waiting.into_iter().take(MOST_UNATTENDED) {
            let is_persons = self.rule(&access).is_some_and(|it| it.decide == Decide::Person);
            if is_persons && self.unattended(&access).is_none() {
                self.block(access, BlockedStatus::Pending, None);
            }
        }
        for Queued { access, permit } in allowed {
            if let Some(permit) = permit {
                self.permit(&access, permit);
            }
        }
        self.publish_queue();
    }

    fn permit(&mut self, access: &Request, permit: Allowance) {
        let left = permit.expires.map(|at| at.duration_since(SystemTime::now()));
        let Ok(left) = left.transpose() else { return };
        let expires = left.map(|left| Instant::now() + left);
        let allowed = Allowed::earlier(access, permit);
        self.grants.add(&allowed, None, Settlement::Allowed, expires);
        self.note_permit(access.key.agent.clone(), access.action, &access.path);
    }

    /// Tells an agent with its next prompt what a person allowed.
    pub(super) fn note_permit(&mut self, agent: AgentId, action: Action, path: &str) {
        let line = format!("- {action} {}: a person allowed it: try it again", quoted(path));
        self.add_note(agent, &line);
    }

    /// Takes the grant for a request, if there is one.
    pub(super) fn take_grant(
        &mut self,
        request: &Request,
        rule: Option<AccessRule>,
    ) -> Option<Settlement> {
        if !request.grantable {
            return None;
        }
        let judged = judged(&self.settings.rules, request, rule);
        let settlement = self.grants.take(request, &judged)?;
        // A permit that is used leaves the queue.
        let permits = self.queue.borrow().iter().filter(|queued| queued.permit.is_some()).count();
        if permits > 0 && permits != self.grants.unused().count() {
            self.publish_queue();
        }
        Some(settlement)
    }

    /// Whether an access stays in the queue though no agent waits for it.
    pub(super) fn stays_queued(&self, id: &BlockedId) -> bool {
        let Some(entry) = self.board.get(id).filter(|entry| is_for_person(&entry.access)) else {
            return false;
        };
        let is_other = |other: &&BoardEntry| is_unattended(other) && other.access.id != *id;
        let is_equal =
            |other: &&BoardEntry| is_other(other) && other.access.via == entry.access.via;
        let is_there = self.board.alike(&entry.access).any(|other| is_equal(&other));
        !is_there && self.board.pending().filter(is_other).count() < MOST_UNATTENDED
    }

    /// The access of the queue that an agent asks for again.
    pub(super) fn unattended(&self, request: &Request) -> Option<BlockedId> {
        let is_its = |entry: &&BoardEntry| {
            is_unattended(entry)
                && entry.access.via == request.via
                && entry.access.denied_by == request.denied_by
        };
        self.board.requested(request).find(is_its).map(|entry| entry.access.id.clone())
    }

    /// Publishes the queue, if it changed.
    pub(super) fn publish_queue(&self) {
        let waiting = self.board.pending().filter(|entry| is_for_person(&entry.access));
        let waiting = waiting.map(|entry| Queued { access: entry.request(), permit: None });
        let queue: Arc<[Queued]> = waiting.chain(self.grants.unused()).collect();
        self.queue.send_if_modified(|known| {
            let is_new = *known != queue;
            *known = queue;
            is_new
        });
    }
}

pub(super) fn is_for_person(access: &BlockedAccess) -> bool {
    access.rule.is_some_and(|rule| rule.decide == Decide::Person)
}

/// Whether an access waits for a person, and no agent waits for it.
fn is_unattended(entry: &BoardEntry) -> bool {
    entry.access.status == BlockedStatus::Pending
        && entry.waiters.is_empty()
        && is_for_person(&entry.access)
}
