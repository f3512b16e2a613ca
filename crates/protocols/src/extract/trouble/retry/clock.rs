//! Times as services write them: `Jul 10th, 2026 11:52 AM`, `1:30am (Asia/Dhaka)`, an HTTP date.

use std::sync::LazyLock;

use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use regex::Regex;

use crate::model::TimestampMs;

const DATED: [&str; 4] =
    ["%b %d %Y %I:%M %p", "%B %d %Y %I:%M %p", "%b %d %Y %H:%M", "%Y-%m-%d %H:%M:%S"];

/// Without a year.
const OF_THIS_YEAR: [&str; 4] =
    ["%Y %b %d %I:%M %p", "%Y %b %d %I %p", "%Y %B %d %I:%M %p", "%Y %b %d %H:%M"];

const OF_DAY: [&str; 3] = ["%I:%M %p", "%I %p", "%H:%M"];

#[expect(clippy::unwrap_used, reason = "fixed patterns, which tests compile")]
static ORDINAL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)\b(\d{1,2})(?:st|nd|rd|th)\b").unwrap());

#[expect(clippy::unwrap_used, reason = "fixed patterns, which tests compile")]
static HALF_OF_DAY: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?i)(\d) ?([ap]m)\b").unwrap());

/// The time that a text means; without a date the next one after `now`.
pub(super) fn time(text: &str, now: TimestampMs) -> Option<TimestampMs> {
    let now = Timestamp::from_millisecond(i64::try_from(now).ok()?).ok()?;
    let found = exact(text).or_else(|| by_words(text, now))?;
    u64::try_from(found.as_millisecond()).ok()
}

fn exact(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    text.parse().ok().or_else(|| {
        let dated = rfc2822::parse(&text.replace("GMT", "+0000").replace("UTC", "+0000"));
        dated.ok().map(|time| time.timestamp())
    })
}

fn by_words(text: &str, now: Timestamp) -> Option<Timestamp> {
    let (text, zone) = match text.split_once('(') {
        Some((text, zone)) => (text, TimeZone::get(zone.trim_end_matches(')').trim()).ok()?),
        None => (text, TimeZone::system()),
    };
    let utc = ["gmt", "utc"].iter().find_map(|name| text.to_lowercase().find(name));
    let (text, zone) = utc.map_or((text, zone), |at| (&text[..at], TimeZone::UTC));
    let text = ORDINAL.replace_all(text, "$1").replace([',', 'T'], " ").replace(" at ", " ");
    let text = HALF_OF_DAY.replace_all(&text, "$1 $2");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let in_zone = |time: DateTime| Some(time.to_zoned_datetime(zone.clone()).ok()?.timestamp());
    if let Some(dated) = DATED.iter().find_map(|form| DateTime::strptime(form, &text).ok()) {
        return in_zone(dated);
    }
    let today: Date = now.to_zoned_datetime(zone.clone()).date();
    let of_year = format!("{} {text}", today.year());
    let of_year = OF_THIS_YEAR.iter().find_map(|form| DateTime::strptime(form, &of_year).ok());
    let (time, step) = if let Some(time) = of_year {
        (time, Span::new().years(1))
    } else {
        let of_day = OF_DAY.iter().find_map(|form| Time::strptime(form, &text).ok())?;
        (today.to_datetime(of_day), Span::new().days(1))
    };
    let found = in_zone(time)?;
    if found > now { Some(found) } else { in_zone(time.checked_add(step).ok()?) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn times_are_read_as_services_write_them() {
        let now: Timestamp = "2026-07-09T12:00:00Z".parse().unwrap();
        let now = u64::try_from(now.as_millisecond()).unwrap();
        for (text, wanted) in [
            ("2026-07-09T13:00:00Z", "2026-07-09T13:00:00Z"),
            ("2026-08-27T19:00:00+08:00", "2026-08-27T11:00:00Z"),
            ("Wed, 21 Oct 2026 07:28:00 GMT", "2026-10-21T07:28:00Z"),
            ("1:30am (Asia/Dhaka)", "2026-07-09T19:30:00Z"),
            ("9am (America/Chicago)", "2026-07-09T14:00:00Z"),
            ("3pm (Europe/Warsaw)", "2026-07-09T13:00:00Z"),
            ("10am UTC", "2026-07-10T10:00:00Z"),
            ("14:05 UTC", "2026-07-09T14:05:00Z"),
            ("Jul 10th, 2026 11:52 AM UTC", "2026-07-10T11:52:00Z"),
            ("Jul 19, 2026, 1:42 PM (UTC)", "2026-07-19T13:42:00Z"),
            ("Jul 19 at 1pm (UTC)", "2026-07-19T13:00:00Z"),
            ("Jan 2 at 1pm (UTC)", "2027-01-02T13:00:00Z"),
        ] {
            let found = time(text, now).map(|time| time / 1000).map(crate::model::rfc3339);
            assert_eq!(found.as_deref(), Some(wanted), "{text}");
        }
        for text in ["", "soon", "25:99", "9am (Mars/Olympus)", "Feb 31 2026 1:00 PM"] {
            assert_eq!(time(text, now), None, "{text}");
        }
    }
}
