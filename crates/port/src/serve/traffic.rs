//! Owns the counts of the port's clients, and of the events that they missed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counts of a port.
#[derive(Default, Debug)]
pub struct Traffic {
    clients: AtomicUsize,
    lags: AtomicU64,
    missed: AtomicU64,
}

/// Counts one client until it is dropped.
#[derive(Debug)]
pub(super) struct CountedClient(Arc<Traffic>);

impl Traffic {
    pub(super) fn enter(self: &Arc<Self>) -> CountedClient {
        self.clients.fetch_add(1, Ordering::Relaxed);
        CountedClient(Arc::clone(self))
    }

    /// A client missed events.
    pub(super) fn lagged(&self, missed: u64) {
        self.lags.fetch_add(1, Ordering::Relaxed);
        self.missed.fetch_add(missed, Ordering::Relaxed);
    }

    /// The clients that are connected now.
    pub fn clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }

    /// How often a client missed events.
    pub fn lags(&self) -> u64 {
        self.lags.load(Ordering::Relaxed)
    }

    /// Events that clients missed.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

impl Drop for CountedClient {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
    }
}
