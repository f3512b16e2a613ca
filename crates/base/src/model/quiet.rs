//! A span of each day in which nobody is to be disturbed.

/// Minutes of a day.
const DAY: u32 = 24 * 60;

/// From one minute of the day until before another one; over midnight if that is earlier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuietSpan {
    /// Since midnight.
    pub from_min: u32,
    /// Since midnight; this minute is not in the span.
    pub until_min: u32,
}

impl QuietSpan {
    /// Reads `HH:MM-HH:MM`. None if it is something else, or no time at all.
    pub fn parse(text: &str) -> Option<Self> {
        let (from, until) = text.split_once('-')?;
        let span = Self { from_min: minute(from)?, until_min: minute(until)? };
        (span.from_min != span.until_min).then_some(span)
    }

    /// Seconds that are left of the span at a second of the day; None outside of it.
    pub fn left(&self, second: u32) -> Option<u32> {
        let since = |minute: u32| (second + DAY * 60 - minute * 60) % (DAY * 60);
        let length = (self.until_min + DAY - self.from_min) % DAY * 60;
        let gone = since(self.from_min);
        (gone < length).then(|| length - gone)
    }
}

fn minute(text: &str) -> Option<u32> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number = |text: &str, below: u32| {
        let is_plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|number| is_plain && *number < below)
    };
    Some(number(hours, 24)? * 60 + number(minutes, 60)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_within_a_day_or_over_midnight() {
        let left = |span: &str, hour: u32, minute: u32| {
            QuietSpan::parse(span).and_then(|span| span.left(hour * 3600 + minute * 60))
        };
        assert_eq!(left("12:00-13:30", 12, 0), Some(90 * 60));
        assert_eq!(left("12:00-13:30", 13, 29), Some(60));
        assert_eq!((left("12:00-13:30", 13, 30), left("12:00-13:30", 11, 59)), (None, None));
        assert_eq!(left("22:00-07:00", 23, 0), Some(8 * 3600));
        assert_eq!(left("22:00 - 07:00", 6, 59), Some(60));
        assert_eq!((left("22:00-07:00", 7, 0), left("22:00-07:00", 21, 59)), (None, None));
        assert_eq!(left("00:00-23:59", 0, 0), Some(86_340));
        for wrong in
            ["", "22:00", "22-07", "24:00-07:00", "7:00-8:00", "22:60-07:00", "08:00-08:00"]
        {
            assert_eq!(QuietSpan::parse(wrong), None, "{wrong}");
        }
    }
}
