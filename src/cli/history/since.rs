//! `--since`: a span before now, a time in UTC, or an event.

use std::str::FromStr;

use crate::model::{TimestampMs, now_ms};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::cli) enum Since {
    Time(TimestampMs),
    /// The beginning of an id.
    Event(String),
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(span) = span_ms(text) {
            return Ok(Self::Time(now_ms().saturating_sub(span)));
        }
        if let Some(time) = utc(text) {
            return Ok(Self::Time(time));
        }
        let is_id = |text: &str| {
            text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        };
        if is_id(text) {
            return Ok(Self::Event(text.to_ascii_lowercase()));
        }
        Err("write a span such as 90s, 10m, 2h or 3d, a time in UTC such as 2026-11-24 or \
             2026-11-24T09:30, or the id of an event"
            .to_owned())
    }
}

/// `90s`, `10m`, `2h`, `3d`, in milliseconds.
pub(in crate::cli) fn span_ms(text: &str) -> Option<u64> {
    let last = text.chars().last()?;
    let unit = match last {
        's' => 1_000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _ => return None,
    };
    let count: u64 = text.strip_suffix(last)?.parse().ok()?;
    count.checked_mul(unit)
}

/// `2026-11-24`, `2026-11-24T09:30`, `2026-11-24T09:30:00` with or without `Z`.
fn utc(text: &str) -> Option<TimestampMs> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let numbers = |text: &str, by: char| -> Option<Vec<u64>> {
        text.split(by).map(|part| part.parse().ok()).collect()
    };
    let [year, month, day] = numbers(date, '-')?[..] else { return None };
    let clock = numbers(clock.split('.').next()?, ':')?;
    let [hour, minute] = [*clock.first()?, *clock.get(1)?];
    let second = clock.get(2).copied().unwrap_or(0);
    let is_so = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60
        && clock.len() <= 3;
    if !is_so {
        return None;
    }
    // Howard Hinnant's `days_from_civil`.
    let shifted = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let era = shifted / 400;
    let of_era = shifted % 400;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year;
    let days = days.checked_sub(719_468)?;
    Some(((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::model::rfc3339;

    #[test]
    fn times_are_read_as_they_are_written() {
        for text in ["1970-01-01", "2024-02-29", "2026-11-24", "1999-12-31"] {
            assert_eq!(rfc3339(utc(text).unwrap() / 1000), format!("{text}T00:00:00Z"));
        }
        assert_eq!(rfc3339(utc("2026-11-24T09:30:05Z").unwrap() / 1000), "2026-11-24T09:30:05Z");
        for text in ["2026-13-01", "2026-11", "x", "2026-11-24T25:00", "", "2026-11-24T", "0-0-0"] {
            assert_eq!(utc(text), None, "{text}");
        }
        assert_eq!(span_ms("2h"), Some(7_200_000));
        assert_eq!(span_ms("h"), None);
        assert_eq!(span_ms("99999999999999999999d"), None);
        let id = "0192f3a1-0000-7000-8000-000000000000";
        assert_eq!(id.parse(), Ok(Since::Event(id.to_owned())));
        assert!("yesterday".parse::<Since>().is_err());
        assert!("é".parse::<Since>().is_err());
    }
}
