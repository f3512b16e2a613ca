//! Finds the time of the next useful attempt in an error's text.

mod clock;

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;

use crate::model::{TimestampMs, rfc3339};

/// When to try again.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Retry {
    In(Duration),
    /// A time in the text's own words, or RFC 3339.
    At(String),
}

/// Longer waits are taken for a misreading.
const LONGEST: f64 = 366.0 * 86_400.0;

const UNIT: &str = "(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)";

/// `retry-after: 20`, `retryAfterMs":1500`, `retry_after_seconds = 3`.
static AFTER: LazyLock<Regex> = LazyLock::new(|| {
    regex(&format!(
        r"(?i)(?:retry[-_ ]?after|(?:retry|resets?)_in)[-_ ]?(ms|milliseconds|s|secs|seconds)?\W{{1,6}}(\d+(?:\.\d+)?)\s*({UNIT}\b)?"
    ))
});

/// `try again in 5 days 22 hours`, `retry in 20.5s`, `retryDelay":"20s"`, `Please wait 3 hours`.
static IN: LazyLock<Regex> = LazyLock::new(|| {
    regex(&format!(
        r"(?i)(?:try(?:ing)? again|retry(?:ing)?|retrydelay|wait|resets?|available(?: again)?)(?: (?:in|after|for|about))*\W{{1,6}}((?:\d+(?:\.\d+)?\s?{UNIT}\b\W{{0,2}}(?:and )?|\d+(?:\.\d+)?(?:h|m|s))+)"
    ))
});

static PART: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?i)(\d+(?:\.\d+)?)\s?(milliseconds?|ms|d|h|mi?n?|s)"));

/// An RFC 3339 time that belongs to a reset or a retry.
static INSTANT: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)(?:resets?|again|until|retry|available)[^{}]{0,40}?(\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?)",
    )
});

/// Seconds since 1970: `limit reached|1760000400`, `"resets_at":1760000400`.
static EPOCH: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?i)(?:reached\||resets?[-_ ]?(?:at)?\W{1,6})(1[5-9]\d{8}|[2-4]\d{9})\b")
});

/// `resets 3pm (Europe/Warsaw)`, `try again at Oct 9th, 2026 5:00 PM`, an HTTP date.
static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)(?:resets?|try again|retry[-_ ]after)\W{1,4}(?:(?:at|on) )?((?:(?:(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* \d{1,2}|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? \d{1,2} [a-z]{3})(?:st|nd|rd|th)?(?:,? \d{4})?(?:,? (?:at )?)?)?(?:\d{1,2}(?::\d\d){0,2}(?: ?(?:[ap]m|gmt|utc)\b)?)?(?: ?\([\w/+-]+\))?)",
    )
});

impl Retry {
    /// Returns the hint in a text.
    pub(super) fn of(text: &str) -> Option<Self> {
        let after = || {
            let found = AFTER.captures(text)?;
            let unit = found.get(1).or(found.get(3)).map_or("s", |unit| unit.as_str());
            seconds(&found[2], unit).and_then(wait)
        };
        let within = || {
            let found = IN.captures(text)?;
            let parts = PART.captures_iter(found.get(1)?.as_str());
            wait(parts.map(|part| seconds(&part[1], &part[2])).sum::<Option<f64>>()?)
        };
        let instant = || Some(Self::At(INSTANT.captures(text)?[1].to_uppercase()));
        let epoch = || Some(Self::At(rfc3339(EPOCH.captures(text)?[1].parse().ok()?)));
        let clock = || {
            let at = CLOCK.captures_iter(text).map(|found| found[1].trim().to_owned());
            let digit = |at: &String| at.contains(|c: char| c.is_ascii_digit());
            // A bare number is not a time of day.
            let time = |at: &String| at.contains(|c: char| c == ':' || c.is_alphabetic());
            at.into_iter().find(|at| digit(at) && time(at)).map(Self::At)
        };
        epoch().or_else(instant).or_else(clock).or_else(within).or_else(after)
    }

    /// The time that is meant; None if the text can't be told, or it is past.
    pub(super) fn time(&self, now: TimestampMs) -> Option<TimestampMs> {
        let time = match self {
            Self::In(wait) => now.checked_add(u64::try_from(wait.as_millis()).ok()?),
            Self::At(text) => clock::time(text, now),
        };
        time.filter(|time| *time > now)
    }
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wait = match self {
            Self::At(time) => return write!(f, "try again at {time}"),
            Self::In(wait) => *wait,
        };
        if wait < Duration::from_secs(1) {
            return write!(f, "try again in {} ms", wait.as_millis());
        }
        f.write_str("try again in")?;
        // Fractions are rounded up.
        let mut rest = if wait.subsec_nanos() > 0 { wait.as_secs() + 1 } else { wait.as_secs() };
        for (unit, length) in [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)] {
            if rest >= length {
                write!(f, " {} {unit}", rest / length)?;
                rest %= length;
            }
        }
        Ok(())
    }
}

/// Converts to seconds; None if `number` is not one.
fn seconds(number: &str, unit: &str) -> Option<f64> {
    let unit = unit.to_lowercase();
    let length = match unit.as_bytes() {
        [b'm', b's', ..] | [b'm', b'i', b'l', ..] => 0.001,
        [b's', ..] => 1.0,
        [b'm', ..] => 60.0,
        [b'h', ..] => 3600.0,
        _ => 86_400.0,
    };
    Some(number.parse::<f64>().ok()? * length)
}

fn wait(seconds: f64) -> Option<Retry> {
    (0.0 < seconds && seconds < LONGEST).then(|| Retry::In(Duration::from_secs_f64(seconds)))
}

#[expect(clippy::unwrap_used, reason = "fixed patterns, which tests compile")]
fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}
