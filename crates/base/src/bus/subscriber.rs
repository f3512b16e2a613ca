//! The receiving side of the bus: copies events from the ring, filters topics, counts losses.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;

use super::{Demands, Published, SharedRing};
use crate::model::Topic;

/// Bytes to copy from the ring at once: one write, and little for a stalled subscriber to hold.
const TAKEN_BYTES: usize = 128 * 1024;

/// The receiving side of the bus.
#[derive(Debug)]
pub struct Subscriber {
    ring: SharedRing,
    wakeup: watch::Receiver<()>,
    /// Copied from the ring, not yet returned.
    pub(super) taken: VecDeque<Arc<Published>>,
    /// Number of the next event to return: the first of `taken`, if there is one.
    next: u64,
    demand: Demands,
    wanted: Vec<Topic>,
}

/// One item that a subscriber receives.
#[derive(Clone, Debug)]
pub enum Received {
    /// With its number.
    Event(u64, Arc<Published>),
    /// The number of missed events.
    Missed(u64),
}

impl Subscriber {
    pub(super) fn new(ring: SharedRing, wakeup: watch::Receiver<()>, demand: Demands) -> Self {
        let next = ring.lock().end();
        Self { ring, wakeup, taken: VecDeque::new(), next, demand, wanted: Vec::new() }
    }

    /// Receives events of the topic from now on.
    pub fn want(&mut self, topic: Topic) {
        if !self.wants(topic) {
            self.wanted.push(topic);
            self.demand.of(topic).fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether [`Self::want`] was called for the topic.
    pub fn wants(&self, topic: Topic) -> bool {
        self.wanted.contains(&topic)
    }

    /// Waits for the next event; None after the last event of a closed bus. Cancel safe.
    pub async fn recv(&mut self) -> Option<Received> {
        loop {
            if let Some(received) = self.try_recv() {
                return Some(received);
            }
            if self.wakeup.changed().await.is_err() {
                return self.try_recv();
            }
        }
    }

    /// Returns the next waiting event.
    pub fn try_recv(&mut self) -> Option<Received> {
        loop {
            if self.taken.is_empty()
                && let Err(missed) = self.take()
            {
                return Some(Received::Missed(missed));
            }
            let event = self.taken.pop_front()?;
            let number = self.next;
            self.next += 1;
            if event.topic().is_none_or(|topic| self.wants(topic)) {
                return Some(Received::Event(number, event));
            }
        }
    }

    /// Returns the next event; panics if events were missed.
    pub async fn event(&mut self) -> Arc<Published> {
        match self.recv().await {
            Some(Received::Event(_, event)) => event,
            other => panic!("no event, but {other:?}"),
        }
    }

    /// Number of the next event: all before it were received, missed or not wanted.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// The number of waiting events, including missed ones and those of unwanted topics.
    pub fn waiting(&self) -> u64 {
        self.ring.lock().end() - self.next
    }

    /// Copies waiting events from the ring; an error has the number of missed events.
    fn take(&mut self) -> Result<(), u64> {
        // Events published from here on wake again.
        self.wakeup.mark_unchanged();
        let taken = self.ring.lock().copy(self.next, TAKEN_BYTES, &mut self.taken);
        taken.map_err(|resumed| resumed - std::mem::replace(&mut self.next, resumed))
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        for topic in &self.wanted {
            self.demand.of(*topic).fetch_sub(1, Ordering::Relaxed);
        }
    }
}
