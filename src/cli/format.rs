//! Human-readable amounts: bytes, durations, tokens, money.

use std::time::Duration;

/// Returns e.g. `98.4 MiB`.
pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    #[expect(clippy::cast_precision_loss, reason = "four digits are shown")]
    let mut amount = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be printed as 1024.0.
    while amount >= 1023.95 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    format!("{amount:.1} {}", UNITS[unit])
}

/// Returns e.g. `0.4s`, `12s`, `3m05s`, `2h10m`, `3d04h`.
pub(super) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!(
            "{:.1}s",
            f64::from(duration.subsec_millis() / 100) / 10.0 + seconds_of(seconds)
        ),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[expect(clippy::cast_precision_loss, reason = "fewer than ten")]
fn seconds_of(seconds: u64) -> f64 {
    seconds as f64
}

/// Returns e.g. `950`, `12.0k`, `1.5M`.
pub(super) fn tokens(count: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a few digits are shown")]
    let amount = count as f64;
    match count {
        0..1000 => count.to_string(),
        1000..999_950 => format!("{:.1}k", amount / 1e3),
        _ => format!("{:.1}M", amount / 1e6),
    }
}

/// Returns e.g. `0.04 USD`; amounts below a cent have four decimals.
pub(super) fn money(amount: f64, currency: &str) -> String {
    if amount != 0.0 && amount.abs() < 0.01 {
        format!("{amount:.4} {currency}")
    } else {
        format!("{amount:.2} {currency}")
    }
}

/// Returns e.g. `1 turn`, `2 turns`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_the_unit_that_fits() {
        for (amount, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_048_575, "1.0 MiB"),
            (103_179_878, "98.4 MiB"),
            (5 << 30, "5.0 GiB"),
            (u64::MAX, "16777216.0 TiB"),
        ] {
            assert_eq!(bytes(amount), text);
        }
    }

    #[test]
    fn durations_have_two_units_at_most() {
        for (millis, text) in [
            (0, "0.0s"),
            (449, "0.4s"),
            (9_999, "9.9s"),
            (10_000, "10s"),
            (59_999, "59s"),
            (185_000, "3m05s"),
            (3_600_000, "1h00m"),
            (7_830_000, "2h10m"),
            (273_600_000, "3d04h"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn tokens_and_money_are_short() {
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1.0k"),
            (12_345, "12.3k"),
            (999_949, "999.9k"),
            (999_950, "1.0M"),
            (1_500_000, "1.5M"),
        ] {
            assert_eq!(tokens(count), text);
        }
        for (amount, text) in [
            (0.0, "0.00 USD"),
            (0.0042, "0.0042 USD"),
            (0.042, "0.04 USD"),
            (1234.5, "1234.50 USD"),
        ] {
            assert_eq!(money(amount, "USD"), text);
        }
        assert_eq!((counted(0, "turn"), counted(1, "turn")), ("0 turns".into(), "1 turn".into()));
    }
}
