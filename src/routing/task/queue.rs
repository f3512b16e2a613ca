//! The accesses that wait for a person by a rule of `[[routing]]`: each stays though its agent gives
//! up, or the team stops.

use std::sync::Arc;

use super::Task;
use crate::model::{BlockedAccess, BlockedId, BlockedStatus, Decide};
use crate::routing::Request;
use crate::routing::board::BoardEntry;

/// Accesses of the queue that no agent waits for any more; beyond that they expire.
const MOST_UNATTENDED: usize = 1000;

impl Task {
    /// Puts the accesses of an earlier run back in the queue, as far as the rules still say so.
    pub(super) fn requeue(&mut self, waiting: Vec<Request>) {
        for request in waiting.into_iter().take(MOST_UNATTENDED) {
            let is_persons = self.rule(&request).is_some_and(|it| it.decide == Decide::Person);
            if is_persons && self.unattended(&request).is_none() {
                self.block(request, BlockedStatus::Pending, None);
            }
        }
    }

    /// Whether an access stays in the queue though no agent waits for it.
    pub(super) fn stays_queued(&self, id: &BlockedId) -> bool {
        let Some(entry) = self.board.get(id).filter(|entry| is_for_person(&entry.access)) else {
            return false;
        };
        let is_equal =
            |other: &BoardEntry| is_unattended(other) && other.access.via == entry.access.via;
        let is_there = self.board.alike(&entry.access).any(is_equal);
        !is_there
            && self.board.pending().filter(|other| is_unattended(other)).count() < MOST_UNATTENDED
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
        let queue = self.board.pending().map(|entry| &entry.access);
        let queue: Arc<[BlockedAccess]> = queue.filter(|it| is_for_person(it)).cloned().collect();
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
        && entry.settle.is_none()
        && is_for_person(&entry.access)
}
