/// Ten percent off.
const PERCENT: u64 = 90;

/// The amount with the discount taken off, in cents.
pub fn apply(cents: u64) -> u64 {
    cents * PERCENT / 100
}
