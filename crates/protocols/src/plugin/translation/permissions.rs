//! Owns the permissions that an agent asks its client for, and their answers.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use super::client::{ClientAnswer, ClientMessage};
use super::{Intent, Translated, Translation};

/// Permissions that may be open at once; further ones are refused.
pub(super) const MOST_ASKS: usize = 256;

/// Ids of the options of a permission.
const ALLOW: &str = "allow";
const REJECT: &str = "reject";

/// The tool call of a permission.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AskedCall<'a> {
    tool_call_id: String,
    title: &'a str,
    kind: &'static str,
    status: &'static str,
    locations: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_input: Option<Value>,
}

impl Translation {
    /// Translates the client's answer to a permission.
    pub(super) fn answered(
        &mut self,
        id: Option<&Value>,
        message: &ClientMessage,
        said: &mut Translated,
    ) {
        let ask = id.and_then(Value::as_u64).and_then(|id| self.asks.remove(&id));
        let Some(ask) = ask else { return };
        let ClientAnswer { outcome, meta } = &message.result;
        let why = match (outcome.outcome.as_deref(), outcome.option_id.as_deref()) {
            (Some("selected"), Some(ALLOW)) => return said.intents.push(Intent::Allow { ask }),
            (Some("cancelled"), _) => "The turn was cancelled.",
            _ => {
                let why = meta.why.as_deref().or(message.error.message.as_deref());
                why.unwrap_or("This was refused.")
            }
        };
        said.intents.push(Intent::Deny { ask, why: why.to_owned() });
    }

    /// Asks the client for a permission. A malformed ask is refused, and the error says why.
    pub(super) fn ask(
        &mut self,
        id: &str,
        title: &str,
        accesses: &[(Cow<'_, str>, Cow<'_, str>)],
        command: &str,
        said: &mut Translated,
    ) -> Result<(), String> {
        let Some(session) = self.session.clone().filter(|_| self.asks.len() < MOST_ASKS) else {
            let why = "Nobody can answer this now.".to_owned();
            said.intents.push(Intent::Deny { ask: id.to_owned(), why });
            return Ok(());
        };
        // One answer would count for both asks, so both are denied with one answer.
        let is_denied = |intent: &Intent| matches!(intent, Intent::Deny { ask, .. } if ask == id);
        let is_denied = said.intents.iter().any(is_denied);
        if is_denied || self.asks.values().any(|open| open == id) {
            self.withdrawn(id, said);
            if !is_denied {
                let why = "Two things were asked for under one id.".to_owned();
                said.intents.push(Intent::Deny { ask: id.to_owned(), why });
            }
            return Err(format!("it asks under the id `{id}` for two things at once"));
        }
        let is_all = |these: &[&str]| accesses.iter().all(|(action, _)| these.contains(&&**action));
        let kind = match () {
            () if !command.is_empty() => "execute",
            () if accesses.is_empty() => "other",
            () if is_all(&["read"]) => "read",
            () if is_all(&["read", "search"]) => "search",
            () => "edit",
        };
        let paths = accesses.iter().map(|(_, path)| json!({"path": self.cwd.join(&**path)}));
        self.last_id += 1;
        let call = AskedCall {
            // Agents reuse their ids, and paths of an earlier call would stay attached to the id.
            tool_call_id: format!("{id}/ask{}", self.last_id),
            title,
            kind,
            status: "pending",
            locations: paths.collect(),
            raw_input: (!command.is_empty()).then(|| json!({"command": command})),
        };
        self.asks.insert(self.last_id, id.to_owned());
        said.client(&json!({
            "jsonrpc": "2.0",
            "id": self.last_id,
            "method": "session/request_permission",
            "params": {
                "sessionId": session,
                "toolCall": call,
                "options": [
                    {"optionId": ALLOW, "name": "Allow", "kind": "allow_once"},
                    {"optionId": REJECT, "name": "Reject", "kind": "reject_once"},
                ],
            },
        }));
        Ok(())
    }

    /// Withdraws a permission request; its answer is no longer awaited.
    pub(super) fn withdrawn(&mut self, ask: &str, said: &mut Translated) {
        for (id, _) in self.asks.extract_if(.., |_, open| open == ask) {
            let params = json!({"requestId": id});
            said.client(&json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params}));
        }
    }
}
