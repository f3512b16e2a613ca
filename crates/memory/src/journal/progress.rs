//! How far the journal is behind the bus, and what it lost.

use std::sync::atomic::{AtomicU64, Ordering};

/// Written by the feed and the writer.
#[derive(Default, Debug)]
pub(super) struct FeedProgress {
    read: AtomicU64,
    gaps: AtomicU64,
    lost: AtomicU64,
}

/// How a journal keeps up with its team.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalProgress {
    /// Number of the bus's first event that it has not read.
    pub read: u64,
    /// Batches that wait to be written.
    pub queued: usize,
    /// Bytes of contents that wait to be written.
    pub queued_bytes: usize,
    /// Gaps that its slowness or its disk made.
    pub gaps: u64,
    /// Events that are lost by them.
    pub lost: u64,
}

impl FeedProgress {
    pub(super) fn read_to(&self, position: u64) {
        self.read.store(position, Ordering::Relaxed);
    }

    pub(super) fn gap(&self, events: u64) {
        self.lost(events);
        self.gap_is_written(events);
    }

    /// Events are lost, and their gap is to be written.
    pub(super) fn lost(&self, events: u64) {
        self.lost.fetch_add(events, Ordering::Relaxed);
    }

    /// A gap of so many events is written; zero is none.
    pub(super) fn gap_is_written(&self, events: u64) {
        self.gaps.fetch_add(u64::from(events > 0), Ordering::Relaxed);
    }

    pub(super) fn of(&self, queued: usize, queued_bytes: usize) -> JournalProgress {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (read, gaps, lost) = (of(&self.read), of(&self.gaps), of(&self.lost));
        JournalProgress { read, queued, queued_bytes, gaps, lost }
    }
}
