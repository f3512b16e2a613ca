//! Fans events out to subscribers. Knows no sockets and no disk.
//!
//! Publishing never waits: a ring, bounded in number and bytes, keeps the last events; a
//! subscriber that falls behind gets the number of events it missed.

mod rendered;
mod ring;
mod subscriber;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::model::{Event, Topic};
use ring::Ring;

pub use rendered::Rendered;
pub use subscriber::{Received, Subscriber};

/// An event on the bus with its encoded line, shared by all subscribers.
#[derive(Debug)]
pub struct Published {
    event: Event,
    line: Bytes,
}

impl Published {
    /// Returns the encoded event.
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

/// Encodes an event as a line.
pub type Encode = fn(&Event) -> Bytes;

/// How far a subscriber may fall behind. The newest event is kept whatever its size.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    /// The number of events that the ring keeps.
    pub events: usize,
    /// The approximate size of the events and their lines.
    pub bytes: usize,
}

impl Backlog {
    /// A bound of events alone, whatever their size.
    pub const fn of(events: usize) -> Self {
        Self { events, bytes: usize::MAX }
    }
}

/// The sending side; cheap to clone. Subscribers get the end when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Bus {
    ring: SharedRing,
    encode: Encode,
    wakeup: watch::Sender<()>,
    demand: Demands,
}

impl Bus {
    /// A bus whose events have empty lines.
    pub fn new(backlog: Backlog) -> Self {
        Self::encoding(backlog, |_| Bytes::new())
    }

    /// A bus that encodes each event when it is published: all subscribers write it at the same
    /// time, and would wait for the first of them to encode it.
    pub fn encoding(backlog: Backlog, encode: Encode) -> Self {
        Self {
            encode,
            ring: Arc::new(Mutex::new(Ring::new(backlog))),
            wakeup: watch::Sender::new(()),
            demand: Demands::default(),
        }
    }

    /// Adds an event to the ring, and wakes the subscribers that wait.
    pub fn publish(&self, event: Event) {
        let line = (self.encode)(&event);
        let (evicted, has_waiter) = self.ring.lock().push(Published { event, line });
        // Busy subscribers check the ring themselves before they wait.
        if has_waiter {
            self.wakeup.send_replace(());
        }
        // Not under the lock: a large event takes a while to free.
        drop(evicted);
    }

    /// Number of the next event.
    pub fn position(&self) -> u64 {
        self.ring.lock().end()
    }

    /// Subscribes to events published from now on.
    pub fn subscribe(&self) -> Subscriber {
        Subscriber::new(self.ring.clone(), self.wakeup.subscribe(), self.demand.clone())
    }

    /// Returns a handle that says whether the topic has subscribers.
    pub fn demand(&self, topic: Topic) -> Demand {
        Demand { demands: self.demand.clone(), topic }
    }
}

/// Whether a topic has subscribers, for publishers.
#[derive(Clone, Debug)]
pub struct Demand {
    demands: Demands,
    topic: Topic,
}

impl Demand {
    /// Whether at least one subscriber wants the topic now.
    pub fn is_there(&self) -> bool {
        self.demands.of(self.topic).load(Ordering::Relaxed) > 0
    }
}

/// The number of subscribers of each topic.
#[derive(Clone, Default, Debug)]
struct Demands(Arc<[AtomicUsize; Topic::ALL.len()]>);

impl Demands {
    fn of(&self, topic: Topic) -> &AtomicUsize {
        &self.0[topic as usize]
    }
}

type SharedRing = Arc<Mutex<Ring>>;

#[cfg(test)]
mod tests;
