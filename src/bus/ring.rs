//! The last events, numbered from 0 in the order in which they were published.

use std::collections::VecDeque;
use std::mem::size_of;
use std::sync::Arc;

use super::{Backlog, Published};
use crate::model::Event;

#[derive(Debug)]
pub(super) struct Ring {
    backlog: Backlog,
    kept: VecDeque<BacklogEntry>,
    /// Number of the oldest that is kept.
    start: u64,
    bytes: usize,
    /// A subscriber found nothing new since the last push, and waits.
    awaited: bool,
}

#[derive(Debug)]
struct BacklogEntry {
    event: Arc<Published>,
    bytes: usize,
}

impl Ring {
    pub(super) fn new(backlog: Backlog) -> Self {
        Self { backlog, kept: VecDeque::new(), start: 0, bytes: 0, awaited: false }
    }

    /// Returns the events that had to give way, and whether a subscriber waits for this one.
    pub(super) fn push(&mut self, event: Published) -> (Vec<Arc<Published>>, bool) {
        let bytes = weight(&event);
        self.bytes += bytes;
        self.kept.push_back(BacklogEntry { event: Arc::new(event), bytes });
        let mut pushed_out = Vec::new();
        while self.kept.len() > 1 && self.is_over() {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.start += 1;
            self.bytes -= oldest.bytes;
            pushed_out.push(oldest.event);
        }
        (pushed_out, std::mem::take(&mut self.awaited))
    }

    /// Number of the next event.
    pub(super) fn end(&self) -> u64 {
        self.start + self.kept.len() as u64
    }

    /// Appends the events from number `from` on, until they are worth `bytes`. If some are gone
    /// already, it appends nothing and returns the number from which it is best to go on: the
    /// middle, since the oldest are the next to go.
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
        self.awaited |= skipped == self.kept.len();
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

/// Bytes that an event takes: with its line, and without paths, which it shares with the map.
fn weight(event: &Published) -> usize {
    let own = match &**event {
        Event::Snapshot(snapshot) => size_of_val(&*snapshot.nodes),
        Event::Delta(delta) => size_of_val(&*delta.updates) + size_of_val(&*delta.removed),
        Event::SessionUpdate { update, .. } => update.len(),
        Event::Graph(graph) => size_of_val(&*graph.nodes) + size_of_val(&*graph.calls),
        _ => 0,
    };
    size_of::<Published>() + event.line().len() + own
}
