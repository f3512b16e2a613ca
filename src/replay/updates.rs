//! Rebuilds the `update` objects of `session/update` from events of a journal, as far as it has
//! them.

use serde_json::{Map, Value, json};

/// The updates of an event; none for types that came in another way.
pub(super) fn updates(kind: &str, payload: &Value) -> Vec<Value> {
    match kind {
        "message.user" => chunks("user_message_chunk", payload),
        "message.assistant" => chunks("agent_message_chunk", payload),
        "message.thought" => chunks("agent_thought_chunk", payload),
        "tool.call" => {
            let mut update = call("tool_call", payload);
            put(&mut update, "status", &json!("in_progress"));
            if !update.contains_key("title") {
                put(&mut update, "title", &payload["tool_call_id"]);
            }
            vec![update.into()]
        }
        "tool.result" => {
            let mut update = call("tool_call_update", payload);
            let status = if payload["status"] == "completed" { "completed" } else { "failed" };
            put(&mut update, "status", &json!(status));
            put(&mut update, "content", &payload["content"]);
            put(&mut update, "rawOutput", &payload["output"]);
            vec![update.into()]
        }
        "plan" => {
            let entries = payload["entries"].as_array().cloned().unwrap_or_default();
            vec![json!({ "sessionUpdate": "plan", "entries": entries })]
        }
        "update" if payload["update"].is_object() => vec![payload["update"].clone()],
        _ => Vec::new(),
    }
}

fn chunks(kind: &str, payload: &Value) -> Vec<Value> {
    let text = payload["text"].as_str().filter(|text| !text.is_empty());
    let text = text.map(|text| json!({ "type": "text", "text": text }));
    let blocks = payload["blocks"].as_array().into_iter().flatten().cloned();
    let chunk = |content| {
        let mut chunk = Map::new();
        put(&mut chunk, "sessionUpdate", &json!(kind));
        put(&mut chunk, "content", &content);
        put(&mut chunk, "messageId", &payload["message_id"]);
        chunk.into()
    };
    text.into_iter().chain(blocks).map(chunk).collect()
}

fn call(kind: &str, payload: &Value) -> Map<String, Value> {
    let mut update = Map::new();
    put(&mut update, "sessionUpdate", &json!(kind));
    for (name, field) in [
        ("toolCallId", "tool_call_id"),
        ("title", "title"),
        ("kind", "kind"),
        ("locations", "locations"),
        ("rawInput", "input"),
    ] {
        put(&mut update, name, &payload[field]);
    }
    update
}

/// Adds a member that is not null.
fn put(object: &mut Map<String, Value>, name: &str, value: &Value) {
    if !value.is_null() {
        object.insert(name.to_owned(), value.clone());
    }
}
