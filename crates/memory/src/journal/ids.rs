//! Ids of events and sessions: `UUIDv7`, each greater than all before it.

use uuid::Builder;

use crate::model::TimestampMs;

/// The random bits of an id below its time.
const RANDOM: u128 = (1 << 74) - 1;

#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Ids {
    last_ms: TimestampMs,
    random: u128,
}

impl Ids {
    /// Continues behind an id that was written before.
    pub(super) fn after(id: &str) -> Self {
        let millis = id.get(..8).zip(id.get(9..13)).map(|(high, low)| format!("{high}{low}"));
        let millis = millis.and_then(|hex| u64::from_str_radix(&hex, 16).ok());
        Self { last_ms: millis.unwrap_or(0), random: RANDOM }
    }

    /// The next id, and its time: that of the clock, unless it went back.
    pub(super) fn next(&mut self, now: TimestampMs) -> (String, TimestampMs) {
        let step = fastrand::u128(1..1 << 32);
        if now > self.last_ms {
            (self.last_ms, self.random) = (now, fastrand::u128(..) & (RANDOM >> 1));
        } else if self.random + step > RANDOM {
            (self.last_ms, self.random) = (self.last_ms + 1, fastrand::u128(..) & (RANDOM >> 1));
        } else {
            self.random += step;
        }
        let mut bytes = [0; 10];
        // 12 bits, a gap for the version, 62 bits below a gap for the variant.
        let high = u16::try_from(self.random >> 62).unwrap_or(0) & 0xfff;
        let low = u64::try_from(self.random & ((1 << 62) - 1)).unwrap_or(0);
        bytes[..2].copy_from_slice(&high.to_be_bytes());
        bytes[2..].copy_from_slice(&low.to_be_bytes());
        let id = Builder::from_unix_timestamp_millis(self.last_ms, &bytes).into_uuid();
        (id.hyphenated().to_string(), self.last_ms)
    }
}

/// The least id of a time, to compare with.
pub(super) fn least(at: TimestampMs) -> String {
    let id = Builder::from_unix_timestamp_millis(at & 0xffff_ffff_ffff, &[0; 10]).into_uuid();
    id.hyphenated().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_also_when_the_clock_goes_back() {
        let mut ids = Ids::default();
        let mut last = String::new();
        for now in [5, 5, 5, 9, 7, 7, 1_700_000_000_000, 0] {
            let (id, at) = ids.next(now);
            assert!(id > last && at >= now, "{id} {last}");
            let parsed = uuid::Uuid::try_parse(&id).map(|id| id.get_version_num());
            assert_eq!(parsed, Ok(7));
            last = id;
        }
        let mut later = Ids::after(&last);
        assert!(later.next(3).0 > last);
        assert!(least(1_700_000_000_000) <= last && least(1_700_000_000_001) > last);
    }
}
