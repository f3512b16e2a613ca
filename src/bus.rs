//! Fan-out of what happens to everyone who watches. Knows no sockets and no disk.
//!
//! Publishing never waits: the last events are kept in a ring that is bounded in number and in
//! bytes, and a subscriber that fell off its end is told how many it missed.

mod rendered;
mod ring;
mod subscriber;

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;

use crate::model::{Event, Topic};
use ring::Ring;

pub use rendered::Rendered;
pub use subscriber::{Received, Subscriber};

/// An event on the bus, with the line that says it, which all share.
#[derive(Debug)]
pub struct Published {
    event: Event,
    line: Bytes,
}

impl Published {
    /// Returns what the bus's encoder made of the event.
    pub fn line(&self) -> &Bytes {
        &self.line
    }
}

impl Deref for Published {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.event
    }
}

/// Makes the line of an event.
pub type Encode = fn(&Event) -> Bytes;

/// How far a subscriber may fall behind. The newest event is kept whatever its size.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    pub events: usize,
    /// What the events and their lines take, roughly.
    pub bytes: usize,
}

/// Only tests have no configuration to take it from.
#[cfg(test)]
impl Backlog {
    pub(crate) const fn of(events: usize) -> Self {
        Self { events, bytes: usize::MAX }
    }
}

/// The sending side; cheap to clone. Subscribers hear of its end when the last clone is gone.
#[derive(Clone, Debug)]
pub struct Bus {
    ring: SharedRing,
    encode: Encode,
    news: watch::Sender<()>,
    demand: Demands,
}

impl Bus {
    /// A bus whose events have no lines.
    pub fn new(backlog: Backlog) -> Self {
        Self::encoding(backlog, |_| Bytes::new())
    }

    /// A bus that has `encode` make the line of each event as it is published: those who write it
    /// meet it all at once, and would wait for the first of them to make it.
    pub fn encoding(backlog: Backlog, encode: Encode) -> Self {
        Self {
            encode,
            ring: SharedRing(Arc::new(Mutex::new(Ring::new(backlog)))),
            news: watch::Sender::new(()),
            demand: Demands::default(),
        }
    }

    pub fn publish(&self, event: Event) {
        let line = (self.encode)(&event);
        let (pushed_out, awaited) = self.ring.lock().push(Published { event, line });
        // Mostly all who listen are at work already, and look for more before they wait.
        if awaited {
            self.news.send_replace(());
        }
        // Not under the lock: a large event takes a while to free.
        drop(pushed_out);
    }

    /// Number of the next event: all before it are published.
    pub fn position(&self) -> u64 {
        self.ring.lock().end()
    }

    /// Subscribes to what is published from now on.
    pub fn subscribe(&self) -> Subscriber {
        Subscriber::new(self.ring.clone(), self.news.subscribe(), self.demand.clone())
    }

    pub fn demand(&self, topic: Topic) -> Demand {
        Demand { demands: self.demand.clone(), topic }
    }
}

/// Tells publishers whether anybody wants a topic.
#[derive(Clone, Debug)]
pub struct Demand {
    demands: Demands,
    topic: Topic,
}

impl Demand {
    pub fn is_there(&self) -> bool {
        self.demands.of(self.topic).load(Ordering::Relaxed) > 0
    }
}

/// Subscribers of each topic.
#[derive(Clone, Default, Debug)]
struct Demands(Arc<[AtomicUsize; Topic::ALL.len()]>);

impl Demands {
    fn of(&self, topic: Topic) -> &AtomicUsize {
        &self.0[topic as usize]
    }
}

#[derive(Clone, Debug)]
struct SharedRing(Arc<Mutex<Ring>>);

impl SharedRing {
    fn lock(&self) -> MutexGuard<'_, Ring> {
        // Whatever panicked left at worst one event out.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
