use expect_test::expect_file;

use super::*;
use crate::metrics::catalog::MetricKind;
use crate::metrics::labels::{self, OTHER};
use crate::model::AgentState;

const DOCS: &str = include_str!("../../../../../docs/metrics.md");

const HEAD: &str = "| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n";

#[test]
fn the_table_is_the_catalog() {
    let (before, rest) = DOCS.split_once(HEAD).unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let rows: String = Metric::ALL.iter().map(|metric| row(*metric)).collect();
    expect_file!["../../../../../docs/metrics.md"]
        .assert_eq(&format!("{before}{HEAD}{rows}\n{after}"));
}

fn row(metric: Metric) -> String {
    let spec = metric.spec();
    let kind = match spec.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram(_) => "histogram",
        MetricKind::Info => "info",
    };
    let labels: Vec<_> = spec.labels.iter().map(|label| format!("`{label}`")).collect();
    format!("| `{}` | {kind} | {} | {} |\n", spec.full_name(), labels.join(", "), spec.help)
}

#[test]
fn every_value_of_a_closed_list_is_explained() {
    let values = [
        AgentState::ALL.map(AgentState::as_str).to_vec(),
        Via::ALL.map(Via::as_str).to_vec(),
        BlockedStatus::ALL.map(BlockedStatus::as_str).to_vec(),
        labels::TOOL_KINDS.to_vec(),
        labels::STOP_REASONS.to_vec(),
        vec!["input", "cached_read", "cached_write", "output", "reasoning", OTHER],
        labels::OUTCOMES.to_vec(),
        vec!["to_agent", "to_client", labels::HELPERS],
    ];
    for value in values.concat() {
        assert!(DOCS.contains(&format!("`{value}`")), "docs/metrics.md does not name `{value}`");
    }
}

#[test]
fn names_follow_the_conventions() {
    for metric in Metric::ALL {
        let spec = metric.spec();
        assert!(spec.name.starts_with("eisen_"), "{spec:?}");
        assert!(spec.help.ends_with('.') && spec.help.len() < 100, "{spec:?}");
        let named = spec.labels.iter().all(|label| {
            !["path", "session", "call", "id", "pid"].iter().any(|it| label.contains(it))
        });
        assert!(named, "{spec:?}");
    }
}
