//! Tests of spans, and of how they are sent.
#![allow(clippy::unwrap_used, clippy::format_push_string)]

mod decisions;
mod hostile;
mod sending;
mod tasks;
mod turns;

use std::collections::HashMap;
use std::sync::Arc;

use super::fold::SpanFold;
use super::span::cut;
use super::{AgentFacts, FoldSettings, Traceparent, names};
use crate::model::{
    AgentId, Event, Record, SessionId, SessionKey, SessionMode, Spent, TaskId, TaskReport,
    TaskState, TurnEnd,
};
use crate::otlp::{Span, Value};

const DOCS: &str = include_str!("../../../../docs/telemetry.md");

fn key(agent: &str) -> SessionKey {
    SessionKey::new(AgentId::new(agent), SessionId::new(format!("{agent}-s1")))
}

fn record(agent: &str, record: Record, timestamp_ms: u64) -> Event {
    Event::Record { key: key(agent), record, turn: None, timestamp_ms }
}

fn update(agent: &str, update: &str, at: u64) -> Event {
    record(agent, Record::Update(update.into()), at)
}

fn turn_end(agent: &str, stop_reason: &str, reason: Option<&str>) -> Event {
    let reason = reason.map(Into::into);
    let (mode, turn, stop_reason) = (SessionMode::SingleAgent, 0, stop_reason.into());
    Event::Turn(TurnEnd {
        key: key(agent),
        mode,
        turn,
        stop_reason,
        reason,
        spent: Spent::default(),
    })
}

fn task(by: &str, agent: &str, session: bool, state: TaskState, timestamp_ms: u64) -> Event {
    Event::Task(TaskReport {
        id: TaskId::new("t-1"),
        by: AgentId::new(by),
        owner: None,
        agent: AgentId::new(agent),
        session: session.then(|| key(agent).session),
        state,
        reason: Some("because of src/secret.rs".to_owned()),
        timestamp_ms,
    })
}

/// A team `shop` with an agent `ui` whose program is known.
fn settings(contents: bool) -> FoldSettings {
    let facts = AgentFacts { program: Some("OpenCode".to_owned()), model: None };
    let agents = HashMap::from([(AgentId::new("ui"), facts)]);
    FoldSettings { team: "shop".to_owned(), contents, agents }
}

/// A fold whose ids count from 1: the run is trace 2, span 3.
fn fold(contents: bool, parent: Option<Traceparent>) -> SpanFold {
    let mut last = 0;
    let ids = Box::new(move || {
        last += 1;
        last
    });
    SpanFold::new(settings(contents), ids, parent, 1_000)
}

/// Folds events; each but a record happens when its number says.
fn fold_all(fold: &mut SpanFold, events: &[(u64, Event)]) -> String {
    for (at, event) in events {
        fold.event(event, *at);
    }
    shown(&fold.take())
}

/// Spans, each in lines: trace and span with the parent, name, kind and times; then what it says.
fn shown(spans: &[Span]) -> String {
    let mut text = String::new();
    for span in spans {
        let parent = number(&span.parent_span_id);
        let parent = if parent == 0 { String::new() } else { format!(" in {parent}") };
        let kind = if span.kind == 3 { "client" } else { "internal" };
        let (from, to) =
            (span.start_time_unix_nano / 1_000_000, span.end_time_unix_nano / 1_000_000);
        let place = format!("{}/{}{parent}", number(&span.trace_id), number(&span.span_id));
        text.push_str(&format!("{place} {} ({kind}, {from}-{to})\n", span.name));
        for link in &span.links {
            text.push_str(&format!(
                "  links {}/{}\n",
                number(&link.trace_id),
                number(&link.span_id)
            ));
        }
        if let Some(status) = &span.status {
            text.push_str(&format!("  error {:?}\n", status.message));
        }
        for attribute in &span.attributes {
            let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
            text.push_str(&format!("  {} = {}\n", attribute.key, value_shown(value)));
        }
    }
    text
}

fn value_shown(value: Option<&Value>) -> String {
    match value {
        Some(Value::StringValue(text)) => cut(text, 200).to_owned(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        Some(Value::BoolValue(flag)) => flag.to_string(),
        Some(Value::ArrayValue(array)) => {
            let all = array.values.iter().map(|value| value_shown(value.value.as_ref()));
            format!("[{}]", all.collect::<Vec<_>>().join(", "))
        }
        None => panic!("an attribute without a value"),
    }
}

/// The last eight bytes as a number.
fn number(id: &[u8]) -> u64 {
    let last = id.last_chunk::<8>();
    last.map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

fn text(text: &str) -> Arc<str> {
    text.into()
}

#[test]
fn the_documentation_has_each_name_and_the_revision() {
    let documented: Vec<_> =
        DOCS.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let attributes: Vec<_> = documented.iter().filter(|name| name.contains('.')).copied().collect();
    assert_eq!(attributes, names::ALL);
    assert!(DOCS.contains(names::REVISION), "docs/telemetry.md names another revision");
}

#[test]
fn a_provider_is_found_by_the_model_else_by_the_program() {
    for (model, program, provider) in [
        (Some("claude-sonnet-4-5"), None, "anthropic"),
        (Some("openrouter/anthropic/claude-x"), Some("OpenCode"), "anthropic"),
        (Some("google/gemini-3-pro"), None, "gcp.gemini"),
        (Some("GPT-5"), Some("Claude Code"), "openai"),
        (Some("my-own"), Some("Claude Code"), "anthropic"),
        (Some("my-own"), Some("Qwen Code"), "qwen_code"),
        (None, None, "unknown"),
    ] {
        assert_eq!(names::provider(model, program), provider, "{model:?} {program:?}");
    }
}
