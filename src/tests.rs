//! Owns the deadline of tests that poll.

use std::time::{Duration, Instant};

/// Never reached by code that does what is tested.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until `is_so` holds. The deadline is in real time: a paused clock jumps ahead while a
/// test polls.
#[track_caller]
pub(crate) fn eventually(
    what: &str,
    mut is_so: impl AsyncFnMut() -> bool,
) -> impl Future<Output = ()> {
    let (begun, caller) = (Instant::now(), std::panic::Location::caller());
    async move {
        while !is_so().await {
            assert!(begun.elapsed() < PATIENCE, "{caller}: not in time: {what}");
            tokio::task::yield_now().await;
        }
    }
}
