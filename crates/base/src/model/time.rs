//! Wall-clock time, and the names of turns.

/// Milliseconds since the Unix epoch.
pub type TimestampMs = u64;

/// Returns the time by the wall clock.
pub fn now_ms() -> TimestampMs {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// How long something still waits, such as `4 min left`.
pub fn left(until_ms: TimestampMs, now_ms: TimestampMs) -> String {
    let seconds = until_ms.saturating_sub(now_ms) / 1000;
    match seconds {
        0 => "no time left".to_owned(),
        1..60 => format!("{seconds} s left"),
        60..3600 => format!("{} min left", (seconds + 30) / 60),
        3600..86_400 => format!("{} h left", (seconds + 1800) / 3600),
        _ => format!("{} d left", seconds / 86_400),
    }
}

/// A turn as people read it: the wire, `--turn` and JSON count from 0.
pub fn turn_name(turn: u64) -> String {
    let place = turn.saturating_add(1);
    let ending = match (place % 10, place % 100) {
        _ if place == 1 => return "first turn".to_owned(),
        _ if place == 2 => return "second turn".to_owned(),
        _ if place == 3 => return "third turn".to_owned(),
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{place}{ending} turn")
}

/// The end of a turn as people read it.
pub fn turn_ended(turn: u64, stop: &str, reason: Option<&str>) -> String {
    let because = reason.map(|why| format!(": {why}")).unwrap_or_default();
    format!("{} ended: {stop}{because}", turn_name(turn))
}

/// Formats seconds since 1970 as UTC, with Howard Hinnant's `civil_from_days`.
pub fn rfc3339(seconds: u64) -> String {
    let (days, time) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_named_from_the_first_one_on() {
        let names = [0, 1, 2, 3, 10, 20, 21, 22, 111].map(turn_name);
        let expected = ["first", "second", "third", "4th", "11th", "21st", "22nd", "23rd", "112th"];
        assert_eq!(names, expected.map(|name| format!("{name} turn")));
    }

    #[test]
    fn what_is_left_is_told_in_one_unit() {
        for (seconds, text) in [
            (0, "no time left"),
            (59, "59 s left"),
            (119, "2 min left"),
            (5400, "2 h left"),
            (200_000, "2 d left"),
        ] {
            assert_eq!(left(1_000_000 + seconds * 1000, 1_000_000), text);
        }
        assert_eq!(left(1, 2), "no time left");
    }
}
