//! Figures of many times.

use std::time::Duration;

pub(crate) fn median(times: impl IntoIterator<Item = f64>) -> f64 {
    let times = sorted(times);
    times[times.len() / 2]
}

/// The time within which this part of all ended.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index"
)]
pub(crate) fn within(part: f64, times: impl IntoIterator<Item = f64>) -> f64 {
    let times = sorted(times);
    times[((times.len() - 1) as f64 * part) as usize]
}

pub(crate) fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

fn sorted(times: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut times: Vec<f64> = times.into_iter().collect();
    times.sort_unstable_by(f64::total_cmp);
    times
}
