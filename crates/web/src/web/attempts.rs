//! Counts failed attempts to show a credential.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Failed attempts that are let pass within [`WITHIN`]; further ones are answered with 429.
const MOST: usize = 20;
const WITHIN: Duration = Duration::from_secs(60);

/// The failed attempts of the last minute, of all clients together.
#[derive(Default, Debug)]
pub(super) struct Attempts(VecDeque<Instant>);

impl Attempts {
    /// Counts one; true if there were too many before it.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        while self.0.front().is_some_and(|first| now.duration_since(*first) >= WITHIN) {
            self.0.pop_front();
        }
        if self.0.len() >= MOST {
            return true;
        }
        self.0.push_back(now);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_may_fail_within_a_minute() {
        let (mut attempts, start) = (Attempts::default(), Instant::now());
        for second in 0..20 {
            assert!(!attempts.failed(start + Duration::from_secs(second)));
        }
        assert!(attempts.failed(start + Duration::from_secs(59)));
        // The first is a minute old.
        assert!(!attempts.failed(start + Duration::from_secs(60)));
        assert!(attempts.failed(start + Duration::from_secs(60)));
        assert!(!attempts.failed(start + Duration::from_secs(61)));
    }
}
