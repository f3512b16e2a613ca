//! One line for an event: the main fields of its payload, by its type.

use serde_json::Value;

use crate::journal::Event;
use crate::model::one_line;

/// Characters of a text that are shown.
const LONGEST: usize = 120;

pub(super) fn summary(event: &Event) -> String {
    let payload: Value = serde_json::from_str(event.payload.get()).unwrap_or_default();
    let text = |name: &str| match &payload[name] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let words = match event.kind.as_str() {
        "session.start" => text("session"),
        "session.end" => text("reason"),
        "session.fork" => format!("{} of {}", text("how"), text("from_event_id")),
        "session.rewind" => format!("to {}", text("to_event_id")),
        kind if kind.starts_with("message.") && payload["text"].is_string() => text("text"),
        kind if kind.starts_with("message.") => format!("{} bytes", text("bytes")),
        "tool.call" => first([text("title"), text("kind"), text("tool_call_id")]),
        "tool.result" => {
            let what = first([text("title"), text("kind"), text("tool_call_id")]);
            format!("{} after {} ms: {what} {}", text("status"), text("duration_ms"), text("error"))
        }
        "plan" => format!("{} steps", text("count")),
        "usage" => format!("{} of {} tokens", text("used"), text("size")),
        "usage.spent" => {
            let (total, amount) = (&payload["tokens"]["total"], &payload["cost"]["amount"]);
            let known = |value: &Value| (!value.is_null()).then(|| value.to_string());
            let tokens = known(total).map(|total| format!("{total} tokens "));
            let currency = payload["cost"]["currency"].as_str().unwrap_or_default();
            let cost = known(amount).map(|amount| format!("{amount} {currency} "));
            format!("{}{}{}", tokens.unwrap_or_default(), cost.unwrap_or_default(), text("model"))
        }
        "turn.end" | "turn.failed" => format!("{} {}", text("stop_reason"), text("reason")),
        "permission" => {
            format!("{} {}: {}", text("outcome"), text("option_kind"), text("title"))
        }
        "blocked" => {
            let by = first([text("decided_by"), text("via")]);
            let id = text("blocked_id");
            format!("{} {id}: {} {} ({by})", text("status"), text("action"), text("path"))
        }
        "grant" => format!("{} {} {}", text("scope"), text("action"), text("path")),
        "file.rename" => format!("{} to {}", text("from"), text("path")),
        kind if kind.starts_with("file.") => text("path"),
        "loop" => format!("{} {} times {}", text("kind"), text("times"), text("action")),
        "budget" | "agent.state" => format!("{} {}", text("state"), text("reason")),
        "conflict" => format!("{} {}", text("status"), text("message")),
        "report" => text("text"),
        "task" => {
            format!("{} of {} {}: {}", text("task"), text("by"), text("state"), text("reason"))
        }
        "subagent.spawn" => format!("{} {}", text("agent_id"), payload["zone"]),
        "subagent.complete" => {
            format!("{} {}", text("state"), first([text("reason"), text("result")]))
        }
        "config.change" => format!("{} {}", text("by"), text("agent_id")),
        "gap" if payload["events"] == 0 => text("reason"),
        "gap" => format!("{} events are missing: {}", text("events"), text("reason")),
        "update" => text("kind"),
        _ => String::new(),
    };
    let line = one_line(words.trim());
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn first<const N: usize>(texts: [String; N]) -> String {
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}
