//! Owns the slots of the port's clients. When all are taken, the client with the lowest rank that
//! was silent longest is dropped, but never a person's.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Caller;

/// A client's rank by the token it showed, from the lowest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(super) enum Rank {
    /// No token, on a connection that requires one.
    Stranger,
    /// No token yet.
    Nameless,
    /// An agent's token, one with a scope, or one of the web that controls nothing.
    Agent,
    /// The control token.
    Person,
}

impl From<&Caller> for Rank {
    fn from(caller: &Caller) -> Self {
        match caller {
            caller if caller.is_person() => Self::Person,
            _ => Self::Agent,
        }
    }
}

/// One client's slot, for as long as it is connected.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    rank: AtomicU8,
    /// When its last line came, in milliseconds since the first slot.
    heard: AtomicU64,
    begun: Instant,
    /// Cancelled when another client gets the slot.
    pub(super) lost: CancellationToken,
}

impl ConnectionSlot {
    pub(super) fn set_rank(&self, rank: Rank) {
        self.rank.store(rank as u8, Ordering::Relaxed);
    }

    /// Records that a line came.
    pub(super) fn touch(&self) {
        let millis = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard.store(millis, Ordering::Relaxed);
    }

    fn rank(&self) -> (u8, u64) {
        (self.rank.load(Ordering::Relaxed), self.heard.load(Ordering::Relaxed))
    }
}

/// All slots of a port.
#[derive(Debug)]
pub(super) struct ConnectionSlots {
    most: usize,
    begun: Instant,
    /// In the order of connection. Closed ones are removed when slots are short.
    taken: Mutex<Vec<Arc<ConnectionSlot>>>,
}

impl ConnectionSlots {
    pub(super) fn new(most: usize) -> Self {
        Self { most, begun: Instant::now(), taken: Mutex::default() }
    }

    /// Takes a slot, if need be another client's; None if all are persons'.
    pub(super) fn take(&self) -> Option<Arc<ConnectionSlot>> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.len() >= self.most {
            taken.retain(|place| Arc::strong_count(place) > 1);
        }
        if taken.len() >= self.most {
            let last = taken.iter().enumerate().min_by_key(|(_, place)| place.rank());
            let (at, _) = last.filter(|(_, place)| place.rank().0 < Rank::Person as u8)?;
            taken.remove(at).lost.cancel();
        }
        let place = Arc::new(ConnectionSlot {
            rank: AtomicU8::new(Rank::Nameless as u8),
            heard: AtomicU64::default(),
            begun: self.begun,
            lost: CancellationToken::new(),
        });
        place.touch();
        taken.push(Arc::clone(&place));
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WebScope;

    #[test]
    fn a_client_of_the_web_that_controls_nothing_gives_way() {
        let rank = |scope| Rank::from(&Caller::Web(scope));
        assert_eq!(rank(WebScope::Read), Rank::Agent);
        assert_eq!(rank(WebScope::Decide), Rank::Agent);
        assert_eq!(rank(WebScope::Control), Rank::Person);
        assert_eq!(Rank::from(&Caller::Person), Rank::Person);
    }
}
