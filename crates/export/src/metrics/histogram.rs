//! A histogram with fixed bounds.

/// Observations by the smallest bound that holds them.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Histogram {
    /// With the upper bound of each, in order; the last is infinite.
    pub(super) buckets: Vec<(f64, u64)>,
    pub(super) sum: f64,
}

impl Histogram {
    pub(super) fn new(bounds: &[f64]) -> Self {
        let bounds = bounds.iter().copied().chain([f64::INFINITY]);
        Self { buckets: bounds.map(|bound| (bound, 0)).collect(), sum: 0.0 }
    }

    pub(super) fn observe(&mut self, value: f64) {
        if let Some((_, count)) = self.buckets.iter_mut().find(|(bound, _)| value <= *bound) {
            *count += 1;
            self.sum += value;
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }
}
