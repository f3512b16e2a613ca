//! Sets of line ranges of a file.

/// Ranges of one set; over it the two closest ones are merged.
const MOST_RANGES: usize = 64;

/// Lines of a file: sorted, disjoint ranges from 1, ends included. Empty if they are not known.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Lines(Vec<(u32, u32)>);

impl Lines {
    /// Every line that the file has.
    pub fn all() -> Self {
        Self::range(1, u32::MAX)
    }

    /// An invalid range, or one that begins before the first line, is empty.
    pub fn range(first: u32, last: u32) -> Self {
        let mut lines = Self::default();
        lines.add(first, last);
        lines
    }

    /// Whether the lines are known: the set has at least one.
    pub fn are_known(&self) -> bool {
        !self.0.is_empty()
    }

    /// First and last line of each range.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// Adds a range, both ends included. An invalid one, or one that begins at line 0, adds nothing.
    pub fn add(&mut self, first: u32, last: u32) {
        if first == 0 || first > last {
            return;
        }
        // Overlapping and adjacent ranges are merged.
        let begin = self.0.partition_point(|range| range.1.saturating_add(1) < first);
        let end = self.0.partition_point(|range| range.0 <= last.saturating_add(1));
        let met = &self.0[begin..end];
        let first = met.first().map_or(first, |range| range.0.min(first));
        let last = met.last().map_or(last, |range| range.1.max(last));
        self.0.splice(begin..end, [(first, last)]);
        if self.0.len() > MOST_RANGES {
            self.close_a_gap();
        }
    }

    /// Adds all ranges of another set.
    pub fn extend(&mut self, other: &Self) {
        other.0.iter().for_each(|range| self.add(range.0, range.1));
    }

    fn close_a_gap(&mut self) {
        let gaps = self.0.windows(2).map(|pair| pair[1].0 - pair[0].1);
        if let Some((place, _)) = gaps.enumerate().min_by_key(|(_, gap)| *gap) {
            self.0[place].1 = self.0[place + 1].1;
            self.0.remove(place + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_in_order_and_apart() {
        let of = |ranges: &[(u32, u32)]| {
            let mut lines = Lines::default();
            for range in ranges {
                lines.add(range.0, range.1);
            }
            lines.ranges().to_vec()
        };
        assert_eq!(of(&[(5, 7), (1, 2)]), [(1, 2), (5, 7)]);
        assert_eq!(of(&[(1, 2), (3, 4)]), [(1, 4)], "they touch");
        assert_eq!(of(&[(1, 2), (6, 7), (10, 12), (2, 10)]), [(1, 12)]);
        assert_eq!(of(&[(3, 9), (4, 5)]), [(3, 9)]);
        assert_eq!(of(&[(0, 3), (4, 2)]), [], "no lines of a file");
        assert_eq!(of(&[(7, 7), (1, u32::MAX)]), [(1, u32::MAX)]);
        assert!(!Lines::default().are_known() && Lines::all().are_known());
    }

    #[test]
    fn many_ranges_lose_their_smallest_gaps() {
        let mut lines = Lines::default();
        (0..200).for_each(|at| lines.add(1 + at * 10, 1 + at * 10));
        lines.add(100_000, 100_000);
        assert_eq!(lines.ranges().len(), MOST_RANGES);
        assert_eq!(lines.ranges().last(), Some(&(100_000, 100_000)));
        let holds = |line| lines.ranges().iter().any(|range| (range.0..=range.1).contains(&line));
        assert!((0..200).all(|at| holds(1 + at * 10)), "none is lost");
    }
}
