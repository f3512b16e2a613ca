//! Claude's control requests: what it asks its client for, and how that is answered.

use std::collections::HashMap;

use eisen_plugin::Records;
use serde_json::{Value, json};

use crate::tool::Tool;

/// Requests that may be open at once; past that, a further one is refused at once.
const MOST_ASKS: usize = 256;

/// The requests that are not answered, by the ids under which the host is asked, and what their tools
/// are given. An id is the request's behind its kind: an instance that takes the place of one that
/// died knows of none, and has to answer.
#[derive(Default)]
pub(crate) struct Asks(HashMap<String, Value>);

#[derive(Clone, Copy)]
enum Kind {
    /// `can_use_tool`: allowed by giving the tool's input back.
    Permission,
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
        let (tool, kind, input) = match request["subtype"].as_str() {
            Some("can_use_tool") => {
                let input = &request["input"];
                (tool(&request["tool_name"], input), Kind::Permission, input.clone())
            }
            Some("hook_callback") => {
                let input = &request["input"];
                let tool = tool(&input["tool_name"], &input["tool_input"]);
                // No decision: what Claude wants to ask for, it asks for.
                if !tool.touches() || input["hook_event_name"] != "PreToolUse" {
                    return records.line(answer(id, &json!({})));
                }
                (tool, Kind::Hook, Value::Null)
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
            return records.line(kind.denied(id, "Too much waits for an answer."));
        }
        let ask = kind.ask(id);
        let title = tool.title();
        if let Some(command) = &tool.command {
            records.ask_to_run(&ask, &title, command);
        } else {
            let accesses: Vec<_> = tool.paths.iter().map(|path| (tool.asks(), &**path)).collect();
            records.ask(&ask, &title, &accesses);
        }
        self.0.insert(ask, input);
    }

    /// Forgets a request that Claude took back. It does not say of which kind that was, and the host
    /// knows which is open.
    pub(crate) fn withdrawn(&mut self, message: &Value, records: &mut Records<'_>) {
        let Some(id) = message["request_id"].as_str() else { return };
        for kind in Kind::ALL {
            let ask = kind.ask(id);
            self.0.remove(&ask);
            records.withdrawn(&ask);
        }
    }

    /// Returns the line that allows what was asked for.
    pub(crate) fn allow(&mut self, ask: &str) -> Option<String> {
        let input = self.0.remove(ask);
        let (kind, id) = Kind::of(ask)?;
        Some(match (kind, input) {
            (Kind::Permission, Some(input)) => {
                answer(id, &json!({"behavior": "allow", "updatedInput": input}))
            }
            (Kind::Permission, None) => kind.denied(id, "This was lost. Please ask again."),
            (Kind::Hook, _) => hooked(id, &json!({"permissionDecision": "allow"})),
        })
    }

    pub(crate) fn deny(&mut self, ask: &str, why: &str) -> Option<String> {
        self.0.remove(ask);
        Kind::of(ask).map(|(kind, id)| kind.denied(id, why))
    }
}

impl Kind {
    const ALL: [Self; 2] = [Self::Permission, Self::Hook];

    fn prefix(self) -> &'static str {
        match self {
            Self::Permission => "tool/",
            Self::Hook => "hook/",
        }
    }

    /// The id under which the host is asked.
    fn ask(self, id: &str) -> String {
        format!("{}{id}", self.prefix())
    }

    /// The kind and the id of a request that the host was asked about.
    fn of(ask: &str) -> Option<(Self, &str)> {
        Self::ALL.into_iter().find_map(|kind| Some((kind, ask.strip_prefix(kind.prefix())?)))
    }

    fn denied(self, id: &str, why: &str) -> String {
        match self {
            Self::Permission => answer(id, &json!({"behavior": "deny", "message": why})),
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
