//! A session's view of the server's messages: parts → updates of the protocol. Pure.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::shapes::{Info, MessagePart, PartDelta, Role, Todo, ToolState};

/// Messages and parts of a turn that are kept; what is past them is not shown.
const MOST_PARTS: usize = 10_000;

/// A tool call.
#[derive(Debug)]
pub(super) struct ToolUse {
    /// The part's, which is unique in a session.
    pub(super) id: String,
    pub(super) message: String,
    pub(super) call: String,
    /// Empty when it has ended.
    pub(super) input: Value,
    has_ended: bool,
}

#[derive(Debug)]
enum ShownPart {
    /// Bytes that were sent. `is_held`: some were lost, so that the rest comes with the whole text.
    Text {
        sent: usize,
        is_thought: bool,
        is_held: bool,
        has_ended: bool,
    },
    ToolUse(ToolUse),
}

#[derive(Default, Debug)]
pub(super) struct Shows {
    /// Messages of earlier turns, of which late news may come.
    before: HashSet<String>,
    roles: HashMap<String, Role>,
    parts: HashMap<String, ShownPart>,
}

impl Shows {
    /// A turn begins: what is still said of earlier ones is not shown.
    pub(super) fn begin(&mut self) {
        self.before = std::mem::take(&mut self.roles).into_keys().collect();
        self.parts.clear();
    }

    /// Whether the message is of this turn.
    pub(super) fn message(&mut self, info: &Info) -> bool {
        let is_of_turn = !self.before.contains(&info.id);
        if is_of_turn && self.roles.len() < MOST_PARTS {
            self.roles.insert(info.id.clone(), info.role);
        }
        is_of_turn
    }

    /// Parts may have been lost.
    pub(super) fn hold(&mut self) {
        for part in self.parts.values_mut() {
            if let ShownPart::Text { is_held, .. } = part {
                *is_held = true;
            }
        }
    }

    /// The call that a request for permission is about.
    pub(super) fn call(&self, message: &str, call: &str) -> Option<&ToolUse> {
        self.parts.values().find_map(|part| match part {
            ShownPart::ToolUse(known) if known.message == message && known.call == call => {
                Some(known)
            }
            _ => None,
        })
    }

    /// `replays`: what the user said is shown, too.
    pub(super) fn part(&mut self, part: MessagePart, replays: bool) -> Vec<Value> {
        let role = self.roles.get(&part.message).copied();
        let is_new = !self.parts.contains_key(&part.id);
        if is_new && self.parts.len() >= MOST_PARTS {
            return Vec::new();
        }
        match (&*part.kind, role) {
            ("text" | "reasoning", Some(Role::Assistant)) => self.text(part),
            ("text", Some(Role::User)) if replays && part.synthetic != Some(true) => {
                let text = part.text.unwrap_or_default();
                let is_shown = !text.is_empty() && part.ignored != Some(true);
                is_shown.then(|| chunk("user_message_chunk", &text)).into_iter().collect()
            }
            ("tool", Some(Role::Assistant)) => self.tool(part),
            _ => Vec::new(),
        }
    }

    fn text(&mut self, part: MessagePart) -> Vec<Value> {
        if part.ignored == Some(true) {
            return Vec::new();
        }
        let is_thought = part.kind == "reasoning";
        let text = part.text.unwrap_or_default();
        let ends = part.time.is_some_and(|time| time.end.is_some());
        let shown = self.parts.entry(part.id).or_insert(ShownPart::Text {
            sent: 0,
            is_thought,
            is_held: false,
            has_ended: false,
        });
        let ShownPart::Text { sent, has_ended, .. } = shown else { return Vec::new() };
        *has_ended |= ends;
        let rest = text.get(*sent..).unwrap_or_default().to_owned();
        *sent = (*sent).max(text.len());
        (!rest.is_empty()).then(|| chunk(of_text(is_thought), &rest)).into_iter().collect()
    }

    pub(super) fn delta(&mut self, delta: &PartDelta) -> Option<Value> {
        let Some(ShownPart::Text { sent, is_thought, is_held: false, has_ended: false }) =
            self.parts.get_mut(&delta.part)
        else {
            return None;
        };
        if delta.field != "text" || delta.delta.is_empty() {
            return None;
        }
        *sent = sent.saturating_add(delta.delta.len());
        Some(chunk(of_text(*is_thought), &delta.delta))
    }

    fn tool(&mut self, part: MessagePart) -> Vec<Value> {
        let (Some(tool), Some(call), Some(state)) = (part.tool, part.call, part.state) else {
            return Vec::new();
        };
        let mut updates = Vec::new();
        if !self.parts.contains_key(&part.id) {
            let mut begun = fields(&part.id, &tool, &state);
            begun["sessionUpdate"] = "tool_call".into();
            begun["status"] = "pending".into();
            updates.push(begun);
            let (id, message) = (part.id.clone(), part.message);
            let known = ToolUse { id, message, call, input: Value::Null, has_ended: false };
            self.parts.insert(part.id.clone(), ShownPart::ToolUse(known));
        }
        let Some(ShownPart::ToolUse(known)) = self.parts.get_mut(&part.id) else { return updates };
        if known.has_ended || state.status == "pending" {
            return updates;
        }
        let mut update = fields(&part.id, &tool, &state);
        update["sessionUpdate"] = "tool_call_update".into();
        let said = |text: &str| json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
        match &*state.status {
            "completed" => {
                update["status"] = "completed".into();
                let output = state.output.unwrap_or_default();
                update["content"] = said(&output);
                update["rawOutput"] = json!({ "output": output });
            }
            "error" => {
                update["status"] = "failed".into();
                let error = state.error.unwrap_or_default();
                update["content"] = said(&error);
                update["rawOutput"] = json!({ "error": error });
            }
            _ => update["status"] = "in_progress".into(),
        }
        known.has_ended = update["status"] != "in_progress";
        known.input = if known.has_ended { Value::Null } else { state.input };
        updates.push(update);
        updates
    }
}

/// The fields of a tool call that each update has.
fn fields(id: &str, tool: &str, state: &ToolState) -> Value {
    let mut fields = json!({ "toolCallId": id, "kind": kind_of(tool) });
    let title = state.title.as_deref().filter(|title| !title.is_empty());
    // A command reads as its title, where the protocol's readers look for one.
    let command = state.input["command"].as_str();
    fields["title"] = command.or(title).unwrap_or(tool).into();
    if state.input.as_object().is_some_and(|input| !input.is_empty()) {
        fields["rawInput"] = state.input.clone();
        let path = ["filePath", "path"].into_iter().find_map(|key| state.input[key].as_str());
        if let Some(path) = path {
            fields["locations"] = json!([{ "path": path }]);
        }
    }
    fields
}

/// The protocol's kind of a tool, or of what a permission is for.
pub(super) fn kind_of(tool: &str) -> &'static str {
    match tool {
        "bash" => "execute",
        "edit" | "write" | "apply_patch" | "multiedit" | "patch" => "edit",
        "read" => "read",
        "glob" | "grep" | "list" => "search",
        "webfetch" | "websearch" => "fetch",
        _ => "other",
    }
}

fn of_text(is_thought: bool) -> &'static str {
    if is_thought { "agent_thought_chunk" } else { "agent_message_chunk" }
}

fn chunk(update: &str, text: &str) -> Value {
    json!({ "sessionUpdate": update, "content": { "type": "text", "text": text } })
}

pub(super) fn plan(todos: &[Todo]) -> Value {
    let entry = |todo: &Todo| {
        let status = match &*todo.status {
            "completed" | "cancelled" => "completed",
            "in_progress" => "in_progress",
            _ => "pending",
        };
        let priority = match &*todo.priority {
            "high" => "high",
            "low" => "low",
            _ => "medium",
        };
        json!({ "content": todo.content, "status": status, "priority": priority })
    };
    let entries: Vec<_> = todos.iter().take(MOST_PARTS).map(entry).collect();
    json!({ "sessionUpdate": "plan", "entries": entries })
}
