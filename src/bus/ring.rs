//! The last events, numbered from 0 in the order in which they were published.

use std::collections::VecDeque;
use std::mem::size_of;
use std::sync::Arc;

use super::{Backlog, Published};
use crate::model::{Event, FileNode};

/// What an event takes beside its texts and nodes, and a node's line beside its path: roughly.
const EVENT_BYTES: usize = 512;
const NODE_BYTES: usize = size_of::<FileNode>() + 160;

#[derive(Debug)]
pub(super) struct Ring {
    backlog: Backlog,
    kept: VecDeque<Kept>,
    /// Number of the oldest that is kept.
    start: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Kept {
    event: Arc<Published>,
    bytes: usize,
}

impl Ring {
    pub(super) fn new(backlog: Backlog) -> Self {
        Self { backlog, kept: VecDeque::new(), start: 0, bytes: 0 }
    }

    /// Returns the events that had to give way.
    pub(super) fn push(&mut self, event: Event) -> Vec<Arc<Published>> {
        let bytes = weight(&event);
        self.bytes += bytes;
        self.kept.push_back(Kept { event: Arc::new(Published::new(event)), bytes });
        let mut pushed_out = Vec::new();
        while self.kept.len() > 1 && self.is_over() {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.start += 1;
            self.bytes -= oldest.bytes;
            pushed_out.push(oldest.event);
        }
        pushed_out
    }

    /// Number of the next event.
    pub(super) fn end(&self) -> u64 {
        self.start + self.kept.len() as u64
    }

    /// Appends the events from number `from` on, until they are worth `bytes`. If some are gone
    /// already, it appends nothing and returns the number from which it is best to go on: the
    /// middle, since the oldest are the next to go.
    pub(super) fn copy(
        &self,
        from: u64,
        bytes: usize,
        into: &mut VecDeque<Arc<Published>>,
    ) -> Result<(), u64> {
        let Some(skipped) = from.checked_sub(self.start) else {
            return Err(self.start + self.kept.len() as u64 / 2);
        };
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
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

/// Bytes that an event takes together with its line. Texts count twice, since the line repeats
/// them.
fn weight(event: &Event) -> usize {
    let nodes = |nodes: &[FileNode]| {
        nodes.iter().map(|node| NODE_BYTES + 2 * node.path.len()).sum::<usize>()
    };
    EVENT_BYTES
        + match event {
            Event::Snapshot(snapshot) => nodes(&snapshot.nodes),
            Event::Delta(delta) => {
                let removed = delta.removed.iter().map(|path| size_of_val(path) + 2 * path.len());
                nodes(&delta.updates) + removed.sum::<usize>()
            }
            Event::SessionUpdate { update, .. } => 2 * update.len(),
            Event::Turn(turn) => 2 * turn.reason.as_ref().map_or(0, |reason| reason.len()),
            Event::Blocked(access) => 2 * access.path.len(),
            Event::Agent(status) => 2 * status.reason.as_ref().map_or(0, String::len),
            Event::Usage(_) => 0,
        }
}
