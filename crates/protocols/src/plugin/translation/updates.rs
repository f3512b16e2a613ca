//! Builds the `update` of a `session/update` from a record.

use std::path::Path;

use serde_json::{Value, json};

pub(super) fn text(body: &str, reason: &str) -> Value {
    let kind = if reason == "thought" { "agent_thought_chunk" } else { "agent_message_chunk" };
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": body}})
}

pub(super) fn touched(action: &str, path: &Path, call: &str) -> Value {
    let (kind, verb) = match action {
        "write" => ("edit", "Write"),
        "search" => ("search", "Search"),
        _ => ("read", "Read"),
    };
    json!({
        "sessionUpdate": "tool_call",
        "toolCallId": call,
        "title": format!("{verb} {}", path.display()),
        "kind": kind,
        "status": "completed",
        "locations": [{"path": path}],
    })
}

pub(super) fn runs(command: &str, call: &str) -> Value {
    json!({
        "sessionUpdate": "tool_call",
        "toolCallId": call,
        "title": command,
        "kind": "execute",
        "status": "completed",
        "rawInput": {"command": command},
    })
}

/// The model that an agent uses, as the only option there is.
pub(super) fn model(id: &str, name: &str) -> Value {
    let name = if name.is_empty() { id } else { name };
    json!({
        "sessionUpdate": "config_option_update",
        "configOptions": [{
            "type": "select",
            "id": "model",
            "category": "model",
            "name": "Model",
            "currentValue": id,
            "options": [{"value": id, "name": name}],
        }],
    })
}
