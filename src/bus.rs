//! Fan-out of what happens to everyone who watches. Knows no sockets and no disk.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::broadcast;

use crate::model::Event;

/// An event on the bus, with a place where the border keeps its encoding, so that a line is
/// serialised once for all.
#[derive(Debug)]
pub struct Published {
    pub event: Event,
    pub encoded: OnceLock<Bytes>,
}

/// The sending side; cheap to clone. A subscriber that falls `backlog` events behind is told how
/// many it missed and goes on from the present: publishing never waits.
#[derive(Clone, Debug)]
pub struct Bus(broadcast::Sender<Arc<Published>>);

impl Bus {
    pub fn new(backlog: usize) -> Self {
        Self(broadcast::Sender::new(backlog))
    }

    pub fn publish(&self, event: Event) {
        // No subscriber is no error.
        let _ = self.0.send(Arc::new(Published { event, encoded: OnceLock::new() }));
    }

    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Published>> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tokio::sync::broadcast::error::TryRecvError;

    use super::*;
    use crate::model::{AgentId, SessionId, SessionKey};

    fn publish(bus: &Bus, update: &str) {
        let key = SessionKey::new(AgentId::new("a"), SessionId::new("s"));
        bus.publish(Event::SessionUpdate { key, update: update.into() });
    }

    fn update(published: &Published) -> &str {
        let Event::SessionUpdate { update, .. } = &published.event else { panic!("another event") };
        update
    }

    #[test]
    fn events_are_shared_and_a_late_subscriber_is_told_what_it_missed() {
        let bus = Bus::new(2);
        publish(&bus, "1");
        let (mut quick, mut late) = (bus.subscribe(), bus.subscribe());
        for text in ["2", "3", "4"] {
            publish(&bus, text);
            let event = quick.try_recv().unwrap();
            assert_eq!(update(&event), text);
            event.encoded.set(Bytes::from(text)).unwrap();
        }
        assert_eq!(late.try_recv().unwrap_err(), TryRecvError::Lagged(1));
        assert_eq!(late.try_recv().unwrap().encoded.get().unwrap(), "3");
        assert_eq!(update(&late.try_recv().unwrap()), "4");
    }
}
