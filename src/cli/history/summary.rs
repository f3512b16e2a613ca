//! One line for an event: the main fields of its payload, by its type.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::journal::{Event, MessagePayload};
use crate::line::lenient;
use crate::model::{HARMLESS, one_line};

/// Characters of a text that are shown.
const LONGEST: usize = 120;

/// A value of a payload, of any type, in words: null and nothing are empty.
#[derive(Default, Deserialize)]
#[serde(from = "Value")]
struct Word(String);

impl From<Value> for Word {
    fn from(value: Value) -> Self {
        Self(match value {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        })
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The fields of all payloads that are shown.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Words {
    reason: Word,
    session: Word,
    how: Word,
    from_event_id: Word,
    to_event_id: Word,
    text: Word,
    bytes: Word,
    title: Word,
    kind: Word,
    tool_call_id: Word,
    status: Word,
    duration_ms: Word,
    error: Word,
    count: Word,
    used: Word,
    size: Word,
    model: Word,
    stop_reason: Word,
    outcome: Word,
    option_kind: Word,
    decided_by: Word,
    revoked_by: Word,
    via: Word,
    blocked_id: Word,
    action: Word,
    path: Word,
    #[serde(rename = "match")]
    pattern: Word,
    scope: Word,
    from: Word,
    times: Word,
    state: Word,
    message: Word,
    task: Word,
    by: Word,
    agent_id: Word,
    result: Word,
    events: Word,
    #[serde(deserialize_with = "lenient")]
    tokens: SpentTokens,
    #[serde(deserialize_with = "lenient")]
    cost: SpentCost,
    zone: Value,
    #[serde(deserialize_with = "lenient")]
    harmless: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SpentTokens {
    total: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SpentCost {
    amount: Option<Value>,
    currency: Word,
}

pub(super) fn summary(event: &Event) -> String {
    let it: Words = event.read();
    let words = match event.kind.as_str() {
        "session.start" => it.session.0,
        "session.end" => it.reason.0,
        "session.fork" => format!("{} of {}", it.how, it.from_event_id),
        "session.rewind" => format!("to {}", it.to_event_id),
        kind if kind.starts_with("message.") => match event.read::<MessagePayload>().text {
            Some(text) => text,
            None => format!("{} bytes", it.bytes),
        },
        "tool.call" => first([it.title, it.kind, it.tool_call_id]),
        "tool.result" => {
            let what = first([it.title, it.kind, it.tool_call_id]);
            format!("{} after {} ms: {what} {}", it.status, it.duration_ms, it.error)
        }
        "plan" => format!("{} steps", it.count),
        "usage" => format!("{} of {} tokens", it.used, it.size),
        "usage.spent" => {
            let tokens = it.tokens.total.map(|total| format!("{total} tokens "));
            let currency = it.cost.currency;
            let cost = it.cost.amount.map(|amount| format!("{amount} {currency} "));
            format!("{}{}{}", tokens.unwrap_or_default(), cost.unwrap_or_default(), it.model)
        }
        "turn.end" | "turn.failed" => format!("{} {}", it.stop_reason, it.reason),
        "permission" => {
            format!("{} {}: {}", it.outcome, it.option_kind, it.title)
        }
        "blocked" => {
            let by = first([it.decided_by, it.via]);
            let id = it.blocked_id;
            let status = if it.harmless { HARMLESS } else { &it.status.0 };
            format!("{status} {id}: {} {} ({by})", it.action, it.path)
        }
        "grant.revoke" => {
            let what = first([it.pattern, it.path]);
            format!("{} {what} by {}", it.action, it.revoked_by)
        }
        "grant" => {
            let what = first([it.pattern, it.path]);
            format!("{} {} {what}", it.scope, it.action)
        }
        "file.rename" => format!("{} to {}", it.from, it.path),
        kind if kind.starts_with("file.") => it.path.0,
        "loop" => format!("{} {} times {}", it.kind, it.times, it.action),
        "budget" | "agent.state" => format!("{} {}", it.state, it.reason),
        "conflict" => format!("{} {}", it.status, it.message),
        "report" => it.text.0,
        "task" => {
            format!("{} of {} {}: {}", it.task, it.by, it.state, it.reason)
        }
        "subagent.spawn" => format!("{} {}", it.agent_id, it.zone),
        "subagent.complete" => {
            format!("{} {}", it.state, first([it.reason, it.result]))
        }
        "config.change" => format!("{} {}", it.by, it.agent_id),
        "gap" if it.events.0 == "0" => it.reason.0,
        "gap" => format!("{} events are missing: {}", it.events, it.reason),
        "update" => it.kind.0,
        _ => String::new(),
    };
    let line = one_line(words.trim());
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn first<const N: usize>(texts: [Word; N]) -> String {
    texts.into_iter().map(|text| text.0).find(|text| !text.is_empty()).unwrap_or_default()
}
