use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use expect_test::expect_file;

use super::*;
use crate::line::Direction;
use crate::metrics::cpu::CpuClock;
use crate::metrics::{AgentFigures, Figures, JournalFigures, PortFigures, Tally};
use crate::model::AgentState;

pub(super) fn agent(id: &str, is_helper: bool, state: AgentState) -> AgentFigures {
    AgentFigures {
        agent: AgentId::new(id),
        is_helper,
        state,
        pid: Some(1),
        queued: 1,
        memory_bytes: Some(4096),
        cpu_ms: Some(1500),
    }
}

/// A series of each metric.
fn everything() -> Series {
    let mut bench = Bench::default();
    bench.record("s", Record::TurnBegan).pass(800);
    bench.update("s", r#"{"sessionUpdate":"agent_message_chunk","content":{}}"#);
    bench.tool("s", "1", r#""kind":"edit""#).pass(200);
    bench.tool("s", "1", r#""status":"failed""#).pass(9000).ends("s", "end_turn");
    bench.record("s", Record::Spent(spending("sonnet", "USD", 0.125)));
    let pending = access("b1", BlockedStatus::Pending, bench.now);
    bench.blocked(&pending).pass(3000);
    bench.decided(&BlockedAccess { status: BlockedStatus::Answered, ..pending });
    bench.record("", Record::Dropped(2));
    bench.fold.missed(5);
    let mut series = bench.fold.series().clone();

    let tally = Tally::default();
    tally.start();
    tally.relayed(Direction::ToAgent, b"{}\n");
    tally.relayed(Direction::ToClient, b"{\"a\":1}\n{}\n{");
    tally.rang(Duration::from_micros(20));
    tally.rang(Duration::from_secs(2));
    tally.add_to(&mut series);

    let agents = vec![
        agent("lead", false, AgentState::Ready),
        agent("ui", false, AgentState::Error),
        agent("ui-h1", true, AgentState::Ready),
        agent("ui-h2", true, AgentState::Connecting),
    ];
    let mut cpu = CpuClock::default();
    cpu.measure(&agents);
    cpu.add_to(&mut series);
    let port = PortFigures { clients: 3, lags: 1, missed_events: 4096 };
    let journal = JournalFigures { lag: 2, queued: 1, queued_bytes: 99, gaps: 1, lost_events: 7 };
    let figures = Figures { agents, pending: 2, events: 1234, port, journal: Some(journal) };
    figures.add_to(&mut series);
    series
}

/// Without buckets, which only repeat themselves.
fn brief(page: &str) -> String {
    let lines = page.lines().filter(|line| !line.contains("_bucket{") || line.contains("+Inf"));
    lines.map(|line| line.replace(env!("CARGO_PKG_VERSION"), "VERSION") + "\n").collect()
}

#[test]
fn the_text_format_has_every_metric_with_its_help() {
    let series = everything();
    for metric in Metric::ALL {
        assert!(series.of(*metric).next().is_some(), "{metric:?} has no sample");
    }
    expect_file!["page.txt"].assert_eq(&brief(&text(series)));
}

#[test]
fn open_metrics_has_the_same_samples() {
    let rendered = MetricsPage::new(everything()).render(Format::OpenMetrics);
    assert_eq!(rendered.content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let page = rendered.body;
    assert!(page.ends_with("# EOF\n"), "{page}");
    // Their order within a histogram differs, and how bounds are written.
    let samples = |page: &str| {
        let lines = page.lines().filter(|line| !line.starts_with('#') && !line.contains("le=\""));
        lines.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    assert_eq!(samples(&page), samples(&text(everything())));
    for line in ["# TYPE eisen_relay_bytes counter", "# UNIT eisen_relay_bytes bytes"] {
        assert!(page.contains(&format!("{line}\n")), "{page}");
    }
}

#[test]
fn buckets_add_up() {
    let page = text(everything());
    let of = |bound: &str| {
        let name = format!("eisen_doorbell_call_duration_seconds_bucket{{le=\"{bound}\"}} ");
        let line = page.lines().find_map(|line| line.strip_prefix(&name));
        line.unwrap_or_else(|| panic!("no {name} in {page}")).to_owned()
    };
    assert_eq!([of("1e-05"), of("2.5e-05"), of("1"), of("+Inf")], ["0", "1", "1", "2"]);
}

#[test]
fn promtool_has_no_complaint() {
    promtool(&text(everything()));
}

/// Has Prometheus's own tool check a page, where it is installed.
pub(super) fn promtool(page: &str) {
    let tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut tool = match tool {
        Ok(tool) => tool,
        Err(error) => {
            eprintln!("skipped: promtool cannot be started: {error}");
            return;
        }
    };
    tool.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = tool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.trim().is_empty(), "{said}\n{page}");
}
