use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;

use super::{Demands, Published, SharedRing};
use crate::model::Topic;

/// What is taken out of the ring at once: worth one write, and little to hold on to for one who
/// stalls with it.
const TAKEN_BYTES: usize = 128 * 1024;

/// The receiving side, of one who watches.
#[derive(Debug)]
pub struct Subscriber {
    ring: SharedRing,
    news: watch::Receiver<()>,
    /// Out of the ring, not yet handed on.
    pub(super) taken: VecDeque<Arc<Published>>,
    /// Number of the next event that is handed on: the first of `taken`, if there is one.
    next: u64,
    demand: Demands,
    wanted: Vec<Topic>,
}

#[derive(Clone, Debug)]
pub enum Received {
    /// With its number.
    Event(u64, Arc<Published>),
    /// So many events passed by.
    Missed(u64),
}

impl Subscriber {
    pub(super) fn new(ring: SharedRing, news: watch::Receiver<()>, demand: Demands) -> Self {
        let next = ring.lock().end();
        Self { ring, news, taken: VecDeque::new(), next, demand, wanted: Vec::new() }
    }

    /// From now on what belongs to the topic is among what is received.
    pub fn want(&mut self, topic: Topic) {
        if !self.wants(topic) {
            self.wanted.push(topic);
            self.demand.of(topic).fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn wants(&self, topic: Topic) -> bool {
        self.wanted.contains(&topic)
    }

    /// Waits for the next event; None once the bus is gone and all is received. Nothing is lost
    /// when the future is dropped.
    pub async fn recv(&mut self) -> Option<Received> {
        loop {
            if let Some(received) = self.try_recv() {
                return Some(received);
            }
            if self.news.changed().await.is_err() {
                return self.try_recv();
            }
        }
    }

    /// Returns what waits.
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

    /// Returns the next event where none may be missed.
    #[cfg(test)]
    pub(crate) async fn event(&mut self) -> Arc<Published> {
        match self.recv().await {
            Some(Received::Event(_, event)) => event,
            other => panic!("no event, but {other:?}"),
        }
    }

    /// How many events wait; of those some may be missed, or be of topics that are not wanted.
    pub fn waiting(&self) -> u64 {
        self.ring.lock().end() - self.next
    }

    /// Takes what waits out of the ring; an error tells how many events are missed.
    fn take(&mut self) -> Result<(), u64> {
        // What is published from here on is news.
        self.news.mark_unchanged();
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
