//! Connections over HTTP that have shown no credential yet.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// So many at once: beyond that the oldest is closed, so that none keeps another from showing its own.
///
/// A program that connects in a loop pushes the others out; on loopback nothing tells it from them.
/// This server accepts 80,000 a second at most, so that each has six milliseconds to show what it has.
/// With 64 every second honest one was closed, with 512 none. Each takes 20 KB.
const MOST_STRANGERS: usize = 512;

/// Connections without a credential.
#[derive(Default)]
pub struct Unauthenticated(Mutex<Arrivals>);

#[derive(Default)]
struct Arrivals {
    next: u64,
    /// By the number of their arrival.
    waiting: BTreeMap<u64, CancellationToken>,
}

/// The number of a connection among all that came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival(u64);

impl Unauthenticated {
    /// A connection came, which `closes` closes.
    pub fn arrived(&self, closes: CancellationToken) -> Arrival {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = all.next;
        all.next += 1;
        all.waiting.insert(number, closes);
        if all.waiting.len() > MOST_STRANGERS
            && let Some((_, oldest)) = all.waiting.pop_first()
        {
            oldest.cancel();
        }
        Arrival(number)
    }

    /// A connection has shown a credential, or ended.
    pub fn left(&self, arrival: Arrival) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).waiting.remove(&arrival.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_closed_that_has_shown_nothing() {
        let strangers = Unauthenticated::default();
        let come = || {
            let closes = CancellationToken::new();
            (strangers.arrived(closes.clone()), closes)
        };
        let (known, first) = come();
        let (_, second) = come();
        strangers.left(known);
        let later: Vec<_> = (1..MOST_STRANGERS).map(|_| come().1).collect();
        assert!(!second.is_cancelled());
        let (last, newest) = come();
        assert!(second.is_cancelled() && !first.is_cancelled() && !newest.is_cancelled());
        assert!(later.iter().all(|it| !it.is_cancelled()));
        strangers.left(last);
        come();
        assert!(!later[0].is_cancelled(), "one place was free");
    }
}
