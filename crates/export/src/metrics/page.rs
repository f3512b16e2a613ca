//! The page of a scrape: all series as text.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeMetric as _, MetricEncoder, NoLabelSet, prometheus_text, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::accept::Format;
use super::catalog::{Metric, MetricKind, Spec};
use super::series::{LabelValues, Sample, Series};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The body of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rendered {
    pub content_type: &'static str,
    pub body: String,
}

#[derive(Debug)]
pub(super) struct MetricsPage(Series);

impl MetricsPage {
    pub(super) fn new(series: Series) -> Self {
        Self(series)
    }

    pub(super) fn render(self, format: Format) -> Rendered {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut body = String::new();
        // Fails only if writing does, and a string takes all.
        let (content_type, _) = match format {
            Format::Text => {
                let written = prometheus_text::encode(&mut body, &registry);
                (prometheus_text::CONTENT_TYPE, written)
            }
            Format::OpenMetrics => (OPEN_METRICS, text::encode(&mut body, &registry)),
        };
        Rendered { content_type, body }
    }
}

impl Collector for MetricsPage {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for metric in Metric::ALL {
            let mut samples = self.0.of(*metric).peekable();
            if samples.peek().is_none() {
                continue;
            }
            let Spec { name, kind, unit, labels: names, help } = metric.spec();
            let metric_type = match kind {
                MetricKind::Counter => MetricType::Counter,
                MetricKind::Gauge => MetricType::Gauge,
                MetricKind::Histogram(_) => MetricType::Histogram,
                MetricKind::Info => MetricType::Info,
            };
            let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), metric_type)?;
            for (values, sample) in samples {
                let labels = labels(names, values);
                if *kind == MetricKind::Info {
                    family.encode_info(&labels)?;
                } else {
                    encode(sample, *kind, family.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }
}

fn labels<'a>(names: &[&'a str], values: &'a LabelValues) -> Vec<(&'a str, &'a str)> {
    names.iter().zip(values).map(|(name, value)| (*name, value.as_ref())).collect()
}

fn encode(sample: &Sample, kind: MetricKind, mut encoder: MetricEncoder<'_>) -> fmt::Result {
    match (sample, kind) {
        (Sample::Histogram(histogram), _) => {
            let (sum, count) = (histogram.sum, histogram.count());
            encoder.encode_histogram::<NoLabelSet>(sum, count, &histogram.buckets, None)
        }
        (Sample::Whole(number), MetricKind::Counter) => ConstCounter::new(*number).encode(encoder),
        (Sample::Whole(number), _) => ConstGauge::new(*number).encode(encoder),
        (Sample::Real(number), MetricKind::Counter) => ConstCounter::new(*number).encode(encoder),
        (Sample::Real(number), _) => ConstGauge::new(*number).encode(encoder),
    }
}
