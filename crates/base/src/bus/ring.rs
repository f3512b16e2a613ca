//! The last published events, numbered from 0.

use std::collections::VecDeque;
use std::mem::size_of;
use std::sync::Arc;

use super::{Backlog, Published};
use crate::model::Event;

#[derive(Debug)]
pub(super) struct Ring {
    backlog: Backlog,
    kept: VecDeque<BacklogEntry>,
    /// Number of the oldest kept event.
    start: u64,
    bytes: usize,
    /// A subscriber found nothing new since the last push, and waits.
    has_waiter: bool,
}

#[derive(Debug)]
struct BacklogEntry {
    event: Arc<Published>,
    bytes: usize,
}

impl Ring {
    pub(super) fn new(backlog: Backlog) -> Self {
        Self { backlog, kept: VecDeque::new(), start: 0, bytes: 0, has_waiter: false }
    }

    /// Returns the evicted events, and whether a subscriber waits for this one.
    pub(super) fn push(&mut self, event: Published) -> (Vec<Arc<Published>>, bool) {
        let bytes = weight(&event);
        self.bytes += bytes;
        self.kept.push_back(BacklogEntry { event: Arc::new(event), bytes });
        let mut evicted = Vec::new();
        while self.kept.len() > 1 && self.is_over() {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.start += 1;
            self.bytes -= oldest.bytes;
            evicted.push(oldest.event);
        }
        (evicted, std::mem::take(&mut self.has_waiter))
    }

    /// Number of the next event.
    pub(super) fn end(&self) -> u64 {
        self.start + self.kept.len() as u64
    }

    /// Appends the events from number `from`, up to about `bytes`. If some of them are evicted, it
    /// appends nothing and returns the number to resume from: the middle of the ring, since the
    /// oldest events are evicted next.
    pub(super) fn copy(
        &mut self,
        from: u64,
        bytes: usize,
        into: &mut VecDeque<Arc<Published>>,
    ) -> Result<(), u64> {
        let Some(skipped) = from.checked_sub(self.start) else {
            return Err(self.start + self.kept.len() as u64 / 2);
        };
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        self.has_waiter |= skipped == self.kept.len();
        let mut copied = 0;
        for kept in self.kept.iter().skip(skipped) {
            into.push_back(Arc::clone(&kept.event));
            copied += kept.bytes;
            if copied >= bytes {
                break;
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.kept.len() > self.backlog.events || self.bytes > self.backlog.bytes
    }
}

/// Approximate bytes of an event with its line; paths are shared with the map and not counted.
fn weight(event: &Published) -> usize {
    let own = match &**event {
        Event::Snapshot(snapshot) => size_of_val(&*snapshot.nodes),
        Event::Delta(delta) => size_of_val(&*delta.updates) + size_of_val(&*delta.removed),
        Event::SessionUpdate { update, .. } => update.len(),
        Event::Relayed(relayed) => relayed.line.len(),
        Event::Record { record, .. } => record.text_bytes(),
        Event::Graph(graph) => size_of_val(&*graph.nodes) + size_of_val(&*graph.calls),
        _ => 0,
    };
    size_of::<Published>() + event.line().len() + own
}
