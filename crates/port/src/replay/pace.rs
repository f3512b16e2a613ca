//! The pace of a replay: the pauses between events, divided by the speed. Long ones are cut.

use std::str::FromStr;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Milliseconds of the longest pause, before the speed counts; longer ones are cut to it.
const LONGEST_PAUSE: u64 = 5_000;

/// Events after which a replay without pauses rests, and the length of the rest, so that clients
/// follow.
const BURST: u32 = 256;
const REST: Duration = Duration::from_millis(10);

/// The speed of a replay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Speed {
    /// So many times as fast as it was.
    Times(f64),
    /// Without pauses.
    Max,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the speed is a number from 0.01 to 1000, or `max`, not `{0}`")]
pub struct SpeedError(String);

/// Waits between events.
#[derive(Debug)]
pub(super) struct Pace {
    speed: Speed,
    /// When the next event without a pause is due, and the time of the last event.
    due: Instant,
    last: Option<u64>,
    burst: u32,
}

impl Speed {
    pub fn new(times: f64) -> Result<Self, SpeedError> {
        let fits = (0.01..=1000.0).contains(&times);
        if fits { Ok(Self::Times(times)) } else { Err(SpeedError(times.to_string())) }
    }

    pub(super) fn scaled(self, span: Duration) -> Duration {
        match self {
            Self::Times(times) => span.div_f64(times),
            Self::Max => Duration::ZERO,
        }
    }

    pub(super) fn pace(self) -> Pace {
        Pace { speed: self, due: Instant::now(), last: None, burst: 0 }
    }
}

impl FromStr for Speed {
    type Err = SpeedError;

    fn from_str(text: &str) -> Result<Self, SpeedError> {
        match text {
            "max" => Ok(Self::Max),
            _ => text
                .parse()
                .ok()
                .and_then(|times| Self::new(times).ok())
                .ok_or_else(|| SpeedError(text.chars().take(40).collect())),
        }
    }
}

impl Pace {
    /// Waits until the event of that time is due.
    pub(super) async fn wait(&mut self, at_ms: u64) {
        let pause = self.last.map_or(0, |last| at_ms.saturating_sub(last)).min(LONGEST_PAUSE);
        self.last = Some(at_ms);
        if self.speed == Speed::Max {
            self.burst += 1;
            if self.burst.is_multiple_of(BURST) {
                tokio::time::sleep(REST).await;
            }
            return;
        }
        // Time that a slow client took is not made up for.
        self.due = self.due.max(Instant::now() - REST);
        self.due += self.speed.scaled(Duration::from_millis(pause));
        sleep_until(self.due).await;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_are_divided_by_the_speed_and_long_ones_are_cut() {
        for (speed, expected) in [("1", 6_000), ("2", 3_000), ("max", 0)] {
            let start = Instant::now();
            let mut pace = speed.parse::<Speed>().unwrap().pace();
            for at in [1_000, 2_000, 3_600_000, 3_000] {
                pace.wait(at).await;
            }
            assert_eq!(start.elapsed().as_millis(), expected, "{speed}");
        }
        for wrong in ["0", "-1", "fast", "NaN", "1e9", ""] {
            assert!(wrong.parse::<Speed>().is_err(), "{wrong}");
        }
    }
}
