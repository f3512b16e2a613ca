//! Rebuilds the `update` objects of `session/update` from events of a journal, as far as it has
//! them.

use serde_json::{Map, Value, json};

use crate::journal::{CallPayload, Event, MessagePayload, PlanPayload, UpdatePayload};

/// The updates of an event; none for types that came in another way.
pub(super) fn updates(event: &Event) -> Vec<Value> {
    match event.kind.as_str() {
        "message.user" => chunks("user_message_chunk", event.read()),
        "message.assistant" => chunks("agent_message_chunk", event.read()),
        "message.thought" => chunks("agent_thought_chunk", event.read()),
        "tool.call" => {
            let payload: CallPayload = event.read();
            let mut update = call("tool_call", &payload);
            put(&mut update, "status", json!("in_progress"));
            if !update.contains_key("title") {
                put(&mut update, "title", json!(payload.tool_call_id));
            }
            vec![update.into()]
        }
        "tool.result" => {
            let payload: CallPayload = event.read();
            let mut update = call("tool_call_update", &payload);
            let is_completed = payload.status.as_deref() == Some("completed");
            put(&mut update, "status", json!(if is_completed { "completed" } else { "failed" }));
            put(&mut update, "content", json!(payload.content));
            put(&mut update, "rawOutput", json!(payload.output));
            vec![update.into()]
        }
        "plan" => {
            let PlanPayload { entries, .. } = event.read();
            let entries = entries.filter(Value::is_array).unwrap_or_else(|| json!([]));
            vec![json!({ "sessionUpdate": "plan", "entries": entries })]
        }
        "update" => {
            let UpdatePayload { update, .. } = event.read();
            update.filter(Value::is_object).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn chunks(kind: &str, payload: MessagePayload) -> Vec<Value> {
    let text = payload.text.filter(|text| !text.is_empty());
    let text = text.map(|text| json!({ "type": "text", "text": text }));
    let blocks = payload.blocks.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
    let chunk = |content| {
        let mut chunk = Map::new();
        put(&mut chunk, "sessionUpdate", json!(kind));
        put(&mut chunk, "content", content);
        put(&mut chunk, "messageId", json!(payload.message_id));
        chunk.into()
    };
    text.into_iter().chain(blocks).map(chunk).collect()
}

fn call(kind: &str, payload: &CallPayload) -> Map<String, Value> {
    let mut update = Map::new();
    put(&mut update, "sessionUpdate", json!(kind));
    put(&mut update, "toolCallId", json!(payload.tool_call_id));
    put(&mut update, "title", json!(payload.title));
    put(&mut update, "kind", json!(payload.kind));
    put(&mut update, "locations", payload.locations.clone());
    put(&mut update, "rawInput", json!(payload.input));
    update
}

/// Adds a member that is not null.
fn put(object: &mut Map<String, Value>, name: &str, value: Value) {
    if !value.is_null() {
        object.insert(name.to_owned(), value);
    }
}
