//! Claude's control requests: what it asks its client for, and how that is answered.

use std::collections::HashMap;

use eisen_plugin::Records;
use serde_json::{Value, json};

use crate::tool::Tool;

/// Requests that may be open at once; past that, a further one is refused at once.
const MOST_ASKS: usize = 256;

/// The requests that are not answered.
#[derive(Default)]
pub(crate) struct Asks(HashMap<String, Ask>);

enum Ask {
    /// `can_use_tool`: allowed by giving the tool's input back.
    Permission { input: Value },
    /// The hook that runs before each tool.
    Hook,
}

/// The request that begins a conversation. `PreToolUse` is asked before each use of a tool, also of
/// those that Claude allows itself (reading below its folder); without it, a zone would only bind
/// what is written. An ask may wait for a person: the time limit is a day.
pub(crate) fn initialize(asks_always: bool) -> Value {
    if asks_always {
        let hook = json!({"hookCallbackIds": ["gate"], "timeout": 86_400});
        json!({"subtype": "initialize", "hooks": {"PreToolUse": [hook]}})
    } else {
        json!({"subtype": "initialize"})
    }
}

impl Asks {
    /// Takes in a control request: asks the host, or answers what nobody has to be asked for.
    pub(crate) fn asked(&mut self, message: &Value, records: &mut Records<'_>) {
        let Some(id) = message["request_id"].as_str() else { return };
        let request = &message["request"];
        let (tool, ask) = match request["subtype"].as_str() {
            Some("can_use_tool") => {
                let input = request["input"].clone();
                (tool(&request["tool_name"], &input), Ask::Permission { input })
            }
            Some("hook_callback") => {
                let input = &request["input"];
                let tool = tool(&input["tool_name"], &input["tool_input"]);
                // No decision: what Claude wants to ask for, it asks for.
                if !tool.touches() || input["hook_event_name"] != "PreToolUse" {
                    return records.line(answer(id, &json!({})));
                }
                (tool, Ask::Hook)
            }
            // Left unanswered, Claude would wait for good.
            _ => {
                let error = json!({
                    "subtype": "error",
                    "request_id": id,
                    "error": "this client can't do that",
                });
                return records.line(response(&error));
            }
        };
        if self.0.len() >= MOST_ASKS {
            return records.line(ask.denied(id, "Too much waits for an answer."));
        }
        self.0.insert(id.to_owned(), ask);
        let title = tool.title();
        if let Some(command) = &tool.command {
            return records.ask_to_run(id, &title, command);
        }
        let accesses: Vec<_> = tool.paths.iter().map(|path| (tool.asks(), &**path)).collect();
        records.ask(id, &title, &accesses);
    }

    /// Forgets a request that Claude took back.
    pub(crate) fn withdrawn(&mut self, message: &Value, records: &mut Records<'_>) {
        if let Some(id) = message["request_id"].as_str()
            && self.0.remove(id).is_some()
        {
            records.withdrawn(id);
        }
    }

    /// Returns the line that allows what was asked for, unless it was taken back.
    pub(crate) fn allow(&mut self, id: &str) -> Option<String> {
        Some(match self.0.remove(id)? {
            Ask::Permission { input } => {
                answer(id, &json!({"behavior": "allow", "updatedInput": input}))
            }
            Ask::Hook => hooked(id, &json!({"permissionDecision": "allow"})),
        })
    }

    pub(crate) fn deny(&mut self, id: &str, why: &str) -> Option<String> {
        Some(self.0.remove(id)?.denied(id, why))
    }
}

impl Ask {
    fn denied(&self, id: &str, why: &str) -> String {
        match self {
            Self::Permission { .. } => answer(id, &json!({"behavior": "deny", "message": why})),
            Self::Hook => {
                hooked(id, &json!({"permissionDecision": "deny", "permissionDecisionReason": why}))
            }
        }
    }
}

fn tool(name: &Value, input: &Value) -> Tool {
    Tool::new(name.as_str().unwrap_or("a tool"), input)
}

fn hooked(id: &str, decision: &Value) -> String {
    let mut output = json!({"hookEventName": "PreToolUse"});
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
