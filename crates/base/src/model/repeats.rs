//! Rate limit for repeated log messages.

use std::collections::BTreeMap;

/// Counts each cause, so that repeated ones are logged rarely.
#[derive(Clone, Default, Debug)]
pub struct Repeats(BTreeMap<&'static str, u64>);

/// The first ones are all logged; after them one for each power of ten.
const FIRST: u64 = 3;

impl Repeats {
    /// Counts a cause; returns the count if it should be logged.
    pub fn count(&mut self, cause: &'static str) -> Option<u64> {
        let count = self.0.entry(cause).or_default();
        *count = count.saturating_add(1);
        let is_power = *count == 10_u64.saturating_pow(count.ilog10());
        (*count <= FIRST || is_power).then_some(*count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn millions_are_logged_a_few_times_and_each_cause_for_itself() {
        let mut repeats = Repeats::default();
        let logged: Vec<u64> = (0..1_000_000).filter_map(|_| repeats.count("a")).collect();
        assert_eq!(logged, [1, 2, 3, 10, 100, 1000, 10_000, 100_000, 1_000_000]);
        assert_eq!(repeats.count("b"), Some(1));
    }
}
