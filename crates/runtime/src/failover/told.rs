//! Why candidates can't work, in words.

use std::fmt::Write as _;

use crate::config::TierCandidate;
use crate::model::{TimestampMs, now_ms};

/// How a reason begins that names each candidate.
const NONE_LEFT: &str = "no candidate of the tier ";

/// Why a candidate was not taken, or did not come to an end.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) candidate: TierCandidate,
    pub(crate) what: String,
    pub(crate) again_at: Option<TimestampMs>,
}

/// Whether a reason says that no candidate can work.
pub(crate) fn is_none_left(reason: &str) -> bool {
    reason.starts_with(NONE_LEFT)
}

/// The reason where no candidate can work: each with its own, and when to try again.
pub(crate) fn none_left(tier: &str, all: &[&Failed]) -> String {
    let reasons: Vec<_> = all.iter().map(|failed| told(failed)).collect();
    let mut reason = format!("{NONE_LEFT}`{tier}` can work now: {}", reasons.join("; "));
    if let Some(at) = all.iter().filter_map(|failed| failed.again_at).min() {
        let _ = write!(reason, "; try again at {}", clock(at));
    }
    reason
}

pub(crate) fn told(failed: &Failed) -> String {
    let Failed { candidate, what, again_at } = failed;
    // `has no credit`, but `is rate limited`.
    let said = match what.as_str() {
        "no credit" => "has no credit".to_owned(),
        "usage limit reached" => "has reached its usage limit".to_owned(),
        "model unknown" => "does not know its model".to_owned(),
        what => format!("is {what}"),
    };
    match again_at {
        Some(at) => format!("{candidate} {said} (try again at {})", clock(*at)),
        None => format!("{candidate} {said}"),
    }
}

/// A time of today as on a clock, another one with its day.
pub fn clock(at: TimestampMs) -> String {
    let zone = jiff::tz::TimeZone::system();
    let time = |at: TimestampMs| {
        let at = jiff::Timestamp::from_millisecond(i64::try_from(at).ok()?).ok()?;
        Some(at.to_zoned_datetime(zone.clone()))
    };
    let (Some(at), Some(now)) = (time(at), time(now_ms())) else { return "some time".to_owned() };
    let form = if at.date() == now.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    at.strftime(form).to_string()
}
