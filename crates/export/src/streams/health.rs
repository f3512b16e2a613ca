//! How the deliveries of a stream go: failures in a row, what they make of it, and the pause before the
//! next try. Pure.

use std::time::Duration;

use crate::model::StreamState;

/// Failures in a row.
const DEGRADED: u32 = 5;
const UNAVAILABLE: u32 = 10;

/// The longest pause after a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The longest pause that a receiver gets by asking for it.
const LONGEST_ASKED: Duration = Duration::from_mins(5);

/// Why a delivery failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Failure {
    pub(super) why: String,
    /// The receiver is there, and refuses what it got: another batch may pass.
    pub(super) is_refusal: bool,
    /// The receiver may as well be broken, and refuse all.
    pub(super) is_doubtful: bool,
    /// How long the receiver wants to be left alone.
    pub(super) retry_after: Option<Duration>,
}

impl Failure {
    #[expect(clippy::needless_pass_by_value, reason = "as `map_err` calls it")]
    pub(super) fn new(why: impl ToString) -> Self {
        Self { why: why.to_string(), is_refusal: false, is_doubtful: false, retry_after: None }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Health {
    pub(super) failures: u32,
    /// The pause after the first failure.
    first_pause: Duration,
}

impl Health {
    pub(super) fn new(first_pause: Duration) -> Self {
        Self { failures: 0, first_pause }
    }

    pub(super) fn state(&self) -> StreamState {
        match self.failures {
            0..DEGRADED => StreamState::Ok,
            DEGRADED..UNAVAILABLE => StreamState::Degraded,
            UNAVAILABLE.. => StreamState::Unavailable,
        }
    }

    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Returns how long to wait before the next try.
    pub(super) fn failed(&mut self, failure: &Failure) -> Duration {
        let doubled = self.first_pause.saturating_mul(1 << self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        let asked = failure.retry_after.unwrap_or_default().min(LONGEST_ASKED);
        doubled.min(LONGEST_PAUSE).max(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_failures_in_a_row_degrade_and_a_success_mends() {
        let mut health = Health::new(Duration::from_millis(250));
        let mut pauses = Vec::new();
        let states: Vec<_> = (0..11)
            .map(|_| {
                pauses.push(health.failed(&Failure::new("away")).as_millis());
                health.state().as_str()
            })
            .collect();
        let expected = [["ok"; 4].as_slice(), &["degraded"; 5], &["unavailable"; 2]].concat();
        assert_eq!(states, expected);
        assert_eq!(pauses[..4], [250, 500, 1_000, 2_000]);
        assert_eq!(pauses[10], 60_000);
        health.succeeded();
        assert_eq!(health.state(), StreamState::Ok);
        let asks = Failure { retry_after: Some(Duration::from_secs(9)), ..Failure::new("busy") };
        assert_eq!(health.failed(&asks), Duration::from_secs(9));
        let asks = Failure { retry_after: Some(Duration::from_hours(9)), ..Failure::new("busy") };
        assert_eq!(health.failed(&asks), LONGEST_ASKED);
    }
}
