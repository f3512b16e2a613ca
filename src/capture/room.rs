//! Bounds the bytes of contents in memory: those from before a write until it is settled, and those
//! that wait for the journal.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::journal::{Journal, Keep};

/// Bytes of contents from before a write that is not settled. Past that, further ones are known by
/// hash only.
const MOST_BYTES: usize = 64 << 20;

pub(super) struct Room {
    journal: Journal,
    bytes: AtomicUsize,
}

impl Room {
    pub(super) fn new(journal: Journal) -> Self {
        Self { journal, bytes: AtomicUsize::new(0) }
    }

    /// What the journal keeps.
    pub(super) fn keep(&self) -> Keep {
        self.journal.settings().keep
    }

    pub(super) fn journal(&self) -> &Journal {
        &self.journal
    }

    pub(super) fn has_journal_room(&self) -> bool {
        self.keep().texts && self.journal.has_room()
    }

    /// Takes room for a content; false if there is no room.
    pub(super) fn enter(&self, bytes: usize) -> bool {
        let has_room = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= MOST_BYTES;
        if !has_room {
            self.leave(bytes);
        }
        has_room
    }

    pub(super) fn leave(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
