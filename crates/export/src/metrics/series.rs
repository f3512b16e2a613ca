//! The samples of all metrics, each under its metric and the values of its labels.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::catalog::{Metric, MetricKind};
use super::histogram::Histogram;

/// The values of a metric's labels, in their order.
pub(super) type LabelValues = Vec<Cow<'static, str>>;

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Sample {
    Whole(u64),
    Real(f64),
    Histogram(Histogram),
}

/// Sorted, so that a page has the same order each time.
#[derive(Clone, Default, PartialEq, Debug)]
pub(super) struct Series(BTreeMap<(Metric, LabelValues), Sample>);

impl Series {
    /// Adds to a counter, or to a gauge that sums up; zero makes its sample known.
    pub(super) fn add<const N: usize>(
        &mut self,
        metric: Metric,
        labels: [Cow<'static, str>; N],
        more: u64,
    ) {
        let sample = self.0.entry((metric, labels.into())).or_insert(Sample::Whole(0));
        if let Sample::Whole(sum) = sample {
            *sum = sum.saturating_add(more);
        }
    }

    /// Adds a number that is not whole. One that can't be added is left out.
    pub(super) fn add_real<const N: usize>(
        &mut self,
        metric: Metric,
        labels: [Cow<'static, str>; N],
        more: f64,
    ) {
        if !more.is_finite() || more < 0.0 {
            return;
        }
        let sample = self.0.entry((metric, labels.into())).or_insert(Sample::Real(0.0));
        if let Sample::Real(sum) = sample {
            *sum = (*sum + more).min(f64::MAX);
        }
    }

    pub(super) fn observe<const N: usize>(
        &mut self,
        metric: Metric,
        labels: [Cow<'static, str>; N],
        value: f64,
    ) {
        let MetricKind::Histogram(bounds) = metric.spec().kind else { return };
        let new = || Sample::Histogram(Histogram::new(bounds));
        let sample = self.0.entry((metric, labels.into())).or_insert_with(new);
        if let Sample::Histogram(histogram) = sample {
            histogram.observe(value);
        }
    }

    pub(super) fn set_histogram(&mut self, metric: Metric, histogram: Histogram) {
        self.0.insert((metric, Vec::new()), Sample::Histogram(histogram));
    }

    /// The samples of a metric.
    pub(super) fn of(&self, metric: Metric) -> impl Iterator<Item = (&LabelValues, &Sample)> {
        let first = (metric, LabelValues::new());
        let from = self.0.range(first..);
        let own = from.take_while(move |((of, _), _)| *of == metric);
        own.map(|((_, labels), sample)| (labels, sample))
    }
}
