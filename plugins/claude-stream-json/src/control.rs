//! Owns Claude's open control requests (permissions and hooks), and the answers to them.

use std::collections::VecDeque;

use eisen_plugin::Records;
use serde_json::{Value, json};

use crate::tool::Tool;

/// Requests that may be open at once; past that, the oldest is forgotten.
const MOST_ASKS: usize = 256;

/// The open requests with the inputs of their tools, by the ids that the host knows. An id is the
/// request's kind and its own id, so that a replacing instance, which knows no open request, can
/// answer it from the id alone.
#[derive(Default)]
pub(crate) struct Asks(VecDeque<(String, Value)>);

#[derive(Clone, Copy)]
enum Kind {
    /// `can_use_tool`: it is allowed by returning the tool's input.
    Permission,
    /// The hook that runs before each tool.
    Hook,
    /// The hook that may answer instead of a permission.
    Grant,
}

/// Hooks that decide nothing about a tool.
const HARMLESS: [&str; 11] = [
    "PostToolUse",
    "PostToolUseFailure",
    "Notification",
    "UserPromptSubmit",
    "SessionStart",
    "SessionEnd",
    "Setup",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
];

/// The request that begins a conversation. It registers the hook `PreToolUse`, which runs before each
/// use of a tool, also of tools that Claude allows by itself (reading below its folder); without it,
/// a zone would bind only writes. A person may have to answer, so the time limit is a day.
pub(crate) fn initialize(asks_always: bool) -> Value {
    if asks_always {
        let hook = json!({"hookCallbackIds": ["gate"], "timeout": 86_400});
        json!({"subtype": "initialize", "hooks": {"PreToolUse": [hook]}})
    } else {
        json!({"subtype": "initialize"})
    }
}

impl Asks {
    /// Handles a control request: asks the host, or answers it if no permission is needed.
    pub(crate) fn asked(
        &mut self,
        message: &Value,
        records: &mut Records<'_>,
    ) -> Result<(), String> {
        let id = message["request_id"].as_str().ok_or("a control request has no id")?;
        let request = &message["request"];
        let (tool, kind, input) = match request["subtype"].as_str() {
            Some("can_use_tool") => {
                let input = &request["input"];
                (tool(&request["tool_name"], input), Kind::Permission, input.clone())
            }
            Some("hook_callback") => {
                let input = &request["input"];
                let tool = tool(&input["tool_name"], &input["tool_input"]);
                let event = input["hook_event_name"].as_str().unwrap_or_default();
                // No decision: Claude asks by itself if it wants to.
                if !tool.touches() || HARMLESS.contains(&event) {
                    records.line(answer(id, &json!({})));
                    return Ok(());
                }
                let kind = match event {
                    "PreToolUse" => Kind::Hook,
                    "PermissionRequest" => Kind::Grant,
                    _ => return Err(format!("Claude asks a hook that is not known: {event}")),
                };
                (tool, kind, Value::Null)
            }
            // Without an answer Claude would wait forever.
            _ => {
                let error = json!({
                    "subtype": "error",
                    "request_id": id,
                    "error": "this client can't do that",
                });
                records.line(response(&error));
                return Ok(());
            }
        };
        let ask = kind.ask(id);
        let title = tool.title();
        if let Some(command) = &tool.command {
            records.ask_to_run(&ask, &title, command);
        } else {
            let accesses: Vec<_> = tool.paths.iter().map(|path| (tool.asks(), &**path)).collect();
            records.ask(&ask, &title, &accesses);
        }
        self.forget(&ask);
        if self.0.len() == MOST_ASKS {
            self.0.pop_front();
        }
        self.0.push_back((ask, input));
        Ok(())
    }

    /// Removes a request that Claude cancelled or that was answered. The message doesn't contain the
    /// kind, so both kinds are reported; the host knows which is open.
    pub(crate) fn closed(&mut self, message: &Value, records: &mut Records<'_>) {
        let Some(id) = message["request_id"].as_str() else { return };
        for kind in Kind::ALL {
            let ask = kind.ask(id);
            self.forget(&ask);
            records.withdrawn(&ask);
        }
    }

    /// Returns the line that allows a request.
    pub(crate) fn allow(&mut self, ask: &str) -> Option<String> {
        let input = self.forget(ask);
        let (kind, id) = Kind::of(ask)?;
        Some(match (kind, input) {
            (Kind::Permission, Some(input)) => {
                answer(id, &json!({"behavior": "allow", "updatedInput": input}))
            }
            (Kind::Permission, None) => kind.denied(id, "This was lost. Please ask again."),
            (Kind::Hook, _) => hooked(id, "PreToolUse", &json!({"permissionDecision": "allow"})),
            (Kind::Grant, _) => granted(id, &json!({"behavior": "allow"})),
        })
    }

    pub(crate) fn deny(&mut self, ask: &str, why: &str) -> Option<String> {
        self.forget(ask);
        Kind::of(ask).map(|(kind, id)| kind.denied(id, why))
    }

    fn forget(&mut self, ask: &str) -> Option<Value> {
        let place = self.0.iter().position(|(open, _)| open == ask)?;
        self.0.remove(place).map(|(_, input)| input)
    }
}

impl Kind {
    const ALL: [Self; 3] = [Self::Permission, Self::Hook, Self::Grant];

    fn prefix(self) -> &'static str {
        match self {
            Self::Permission => "tool/",
            Self::Hook => "hook/",
            Self::Grant => "grant/",
        }
    }

    /// The id that the host knows.
    fn ask(self, id: &str) -> String {
        format!("{}{id}", self.prefix())
    }

    /// Splits the id that the host knows into kind and request id.
    fn of(ask: &str) -> Option<(Self, &str)> {
        Self::ALL.into_iter().find_map(|kind| Some((kind, ask.strip_prefix(kind.prefix())?)))
    }

    fn denied(self, id: &str, why: &str) -> String {
        match self {
            Self::Permission => answer(id, &json!({"behavior": "deny", "message": why})),
            Self::Hook => {
                let decision =
                    json!({"permissionDecision": "deny", "permissionDecisionReason": why});
                hooked(id, "PreToolUse", &decision)
            }
            Self::Grant => granted(id, &json!({"behavior": "deny", "message": why})),
        }
    }
}

fn tool(name: &Value, input: &Value) -> Tool {
    Tool::new(name.as_str().unwrap_or("a tool"), input)
}

fn granted(id: &str, decision: &Value) -> String {
    hooked(id, "PermissionRequest", &json!({"decision": decision}))
}

fn hooked(id: &str, event: &str, decision: &Value) -> String {
    let mut output = json!({"hookEventName": event});
    if let (Some(output), Some(decision)) = (output.as_object_mut(), decision.as_object()) {
        output.extend(decision.clone());
    }
    answer(id, &json!({"hookSpecificOutput": output}))
}

fn answer(id: &str, answer: &Value) -> String {
    response(&json!({"subtype": "success", "request_id": id, "response": answer}))
}

fn response(response: &Value) -> String {
    json!({"type": "control_response", "response": response}).to_string()
}
