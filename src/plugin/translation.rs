//! ACP on one side, a plugin's records on the other: what a client says becomes a wish to the
//! plugin, what the plugin tells becomes what an ACP agent would say. Pure.

mod counted;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use eisen_plugin::Record;
use serde_json::{Map, Value, json};

use self::counted::Counted;

/// Permissions that may be open at once; past that a further one is refused at once.
const MOST_ASKS: usize = 256;

const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;

/// Ids of the options of a permission.
const ALLOW: &str = "allow";
const REJECT: &str = "reject";

/// One conversation between a client and an agent.
pub(super) struct Translation {
    /// Of the plugin.
    name: String,
    model: Option<String>,
    /// Once it is opened.
    session: Option<String>,
    cwd: PathBuf,
    /// The agent's own word for the session.
    known_as: Option<String>,
    /// The id of the prompt that is not answered.
    prompt: Option<Value>,
    /// Its client has cancelled it.
    is_cancelled: bool,
    /// What the agent asks its client, by our ids.
    asks: BTreeMap<u64, String>,
    last_id: u64,
    counted: Counted,
}

/// What the plugin is asked to put into the agent's own words. The id is that of the request that
/// waits for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Wish {
    Start { id: Value, settings: String },
    Prompt { text: String },
    Cancel,
    Deny { ask: String, why: String },
    Allow { ask: String },
}

/// What comes of a line or a record.
#[derive(Default, Debug)]
pub(super) struct Said {
    pub(super) to_client: Vec<u8>,
    pub(super) to_agent: Vec<Vec<u8>>,
    pub(super) wishes: Vec<Wish>,
}

impl Said {
    fn client(&mut self, message: &Value) {
        self.to_client.extend(message.to_string().bytes());
        self.to_client.push(b'\n');
    }

    fn answer(&mut self, id: &Value, result: &Value) {
        self.client(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn refuse(&mut self, id: &Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        self.client(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }
}

impl Translation {
    pub(super) fn new(name: String, model: Option<String>) -> Self {
        Self {
            name,
            model,
            session: None,
            cwd: PathBuf::new(),
            known_as: None,
            prompt: None,
            is_cancelled: false,
            asks: BTreeMap::new(),
            last_id: 0,
            counted: Counted::default(),
        }
    }

    /// Takes in a line of the client.
    pub(super) fn hear(&mut self, line: &[u8], said: &mut Said) {
        let Ok(message) = serde_json::from_slice::<Map<String, Value>>(line) else { return };
        let id = message.get("id").filter(|id| !id.is_null());
        let params = message.get("params").unwrap_or(&Value::Null);
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(method), Some(id)) => self.request(method, id, params, said),
            (Some("session/cancel"), None) if self.prompt.is_some() => {
                self.is_cancelled = true;
                said.wishes.push(Wish::Cancel);
            }
            (Some(_), None) => {}
            (None, id) => self.answered(id, &message, said),
        }
    }

    fn request(&mut self, method: &str, id: &Value, params: &Value, said: &mut Said) {
        match method {
            "initialize" => {
                said.answer(
                    id,
                    &json!({
                        "protocolVersion": 1,
                        "agentCapabilities": {"promptCapabilities": {"embeddedContext": true}},
                        "agentInfo": {"name": self.name, "version": env!("CARGO_PKG_VERSION")},
                        "authMethods": [],
                    }),
                );
            }
            "session/new" if self.session.is_some() => {
                said.refuse(id, INVALID_REQUEST, "this agent has one session, which is open");
            }
            "session/new" => {
                let cwd = params["cwd"].as_str().unwrap_or_default();
                if !Path::new(cwd).is_absolute() {
                    return said.refuse(id, INVALID_PARAMS, "`cwd` is not an absolute path");
                }
                self.cwd = cwd.into();
                let mut settings = json!({"cwd": cwd});
                if let Some(model) = &self.model {
                    settings["model"] = model.as_str().into();
                }
                said.wishes.push(Wish::Start { id: id.clone(), settings: settings.to_string() });
            }
            "session/prompt" if self.prompt.is_some() => {
                said.refuse(id, INVALID_REQUEST, "a prompt is running");
            }
            "session/prompt" => match words(&params["prompt"]) {
                Some(text) if self.is_session(params) => {
                    self.prompt = Some(id.clone());
                    self.is_cancelled = false;
                    said.wishes.push(Wish::Prompt { text });
                }
                Some(_) => said.refuse(id, INVALID_PARAMS, "there is no such session"),
                None => said.refuse(id, INVALID_PARAMS, "`prompt` is no list of content blocks"),
            },
            _ => said.refuse(id, METHOD_NOT_FOUND, &format!("this agent has no {method}")),
        }
    }

    fn is_session(&self, params: &Value) -> bool {
        self.session.is_some() && self.session.as_deref() == params["sessionId"].as_str()
    }

    /// Takes in the answer to a permission that was asked for.
    fn answered(&mut self, id: Option<&Value>, message: &Map<String, Value>, said: &mut Said) {
        let ask = id.and_then(Value::as_u64).and_then(|id| self.asks.remove(&id));
        let Some(ask) = ask else { return };
        let outcome = &message.get("result").unwrap_or(&Value::Null)["outcome"];
        let why = match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
            (Some("selected"), Some(ALLOW)) => return said.wishes.push(Wish::Allow { ask }),
            (Some("cancelled"), _) => "The turn was cancelled.",
            _ => {
                let error = message.get("error").and_then(|error| error["message"].as_str());
                error.unwrap_or("This is outside your zone, or was refused.")
            }
        };
        said.wishes.push(Wish::Deny { ask, why: why.to_owned() });
    }

    /// Takes in what came of a wish: whether the plugin put lines, or why it failed.
    pub(super) fn fulfilled(&mut self, wish: Wish, outcome: Result<(), String>, said: &mut Said) {
        match (wish, outcome) {
            (Wish::Start { id, .. }, Ok(())) => {
                let session = self
                    .known_as
                    .clone()
                    .unwrap_or_else(|| format!("{}-{:016x}", self.name, fastrand::u64(..)));
                said.answer(&id, &json!({"sessionId": session}));
                self.session = Some(session);
            }
            (Wish::Start { id, .. }, Err(why)) => {
                said.refuse(&id, INTERNAL_ERROR, &format!("the plugin can't begin: {why}"));
            }
            (Wish::Prompt { .. }, Err(why)) => {
                if let Some(id) = self.prompt.take() {
                    said.refuse(&id, INTERNAL_ERROR, &format!("the plugin can't prompt: {why}"));
                }
            }
            _ => {}
        }
    }

    /// Takes in what the plugin told.
    pub(super) fn tell(&mut self, record: Record<'_>, said: &mut Said) {
        match record {
            // Only `describe` puts the one, and errors are not the conversation's.
            Record::Description { .. } | Record::Error { .. } | Record::TurnBegan => {}
            Record::Line { body } => said.to_agent.push(body.to_vec()),
            Record::Session { id } => self.known_as = Some(id.into_owned()),
            Record::TurnEnded { reason, body } => self.turn_ended(&reason, &body, said),
            Record::Ask { id, title, accesses, command } => {
                self.ask(&id, &title, &accesses, &command, said);
            }
            Record::Text { body, reason } => {
                let thinks = reason == "thought";
                let kind = if thinks { "agent_thought_chunk" } else { "agent_message_chunk" };
                let content = json!({"type": "text", "text": body});
                self.update(&json!({"sessionUpdate": kind, "content": content}), said);
            }
            Record::Withdrawn { id } => self.withdrawn(&id, said),
            Record::Touched { action, path, call } => {
                let (kind, verb) = match &*action {
                    "write" => ("edit", "Write"),
                    "search" => ("search", "Search"),
                    _ => ("read", "Read"),
                };
                let call = self.call(&call);
                let path = self.cwd.join(&*path);
                let update = json!({
                    "sessionUpdate": "tool_call",
                    "toolCallId": call,
                    "title": format!("{verb} {}", path.display()),
                    "kind": kind,
                    "status": "completed",
                    "locations": [{"path": path}],
                });
                self.update(&update, said);
            }
            Record::Runs { command, call } => {
                let call = self.call(&call);
                let update = json!({
                    "sessionUpdate": "tool_call",
                    "toolCallId": call,
                    "title": command,
                    "kind": "execute",
                    "status": "completed",
                    "rawInput": {"command": command},
                });
                self.update(&update, said);
            }
            Record::Usage(usage) => {
                self.counted.take(usage).iter().for_each(|update| self.update(update, said));
            }
            Record::Model { id, name } => {
                let name = if name.is_empty() { &id } else { &name };
                let update = json!({
                    "sessionUpdate": "config_option_update",
                    "configOptions": [{
                        "type": "select",
                        "id": "model",
                        "category": "model",
                        "name": "Model",
                        "currentValue": id,
                        "options": [{"value": id, "name": name}],
                    }],
                });
                self.update(&update, said);
            }
        }
    }

    /// An id of a tool call of its own: one call of the agent's may touch many files.
    fn call(&mut self, of: &str) -> String {
        self.last_id += 1;
        format!("{}{}{}", of, if of.is_empty() { "" } else { "/" }, self.last_id)
    }

    fn turn_ended(&mut self, reason: &str, error: &str, said: &mut Said) {
        // Nobody waits for what the agent did by itself.
        let Some(id) = self.prompt.take() else { return };
        match reason {
            // Whatever an agent makes of being cancelled: its client is to hear that it was.
            _ if self.is_cancelled => said.answer(&id, &json!({"stopReason": "cancelled"})),
            "error" => {
                let message = if error.is_empty() { "the turn failed" } else { error };
                said.refuse(&id, INTERNAL_ERROR, message);
            }
            "max_tokens" | "max_turn_requests" | "refusal" | "cancelled" => {
                said.answer(&id, &json!({"stopReason": reason}));
            }
            _ => said.answer(&id, &json!({"stopReason": "end_turn"})),
        }
    }

    fn ask(
        &mut self,
        id: &str,
        title: &str,
        accesses: &[(Cow<'_, str>, Cow<'_, str>)],
        command: &str,
        said: &mut Said,
    ) {
        let Some(session) = self.session.clone().filter(|_| self.asks.len() < MOST_ASKS) else {
            let why = "Nobody can answer this now.".to_owned();
            return said.wishes.push(Wish::Deny { ask: id.to_owned(), why });
        };
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
        let mut call = json!({
            // Agents use their ids again, and what one call named would stay named.
            "toolCallId": format!("{id}/ask{}", self.last_id),
            "title": title,
            "kind": kind,
            "status": "pending",
            "locations": paths.collect::<Vec<_>>(),
        });
        if !command.is_empty() {
            call["rawInput"] = json!({"command": command});
        }
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
    }

    /// Takes back a permission that was asked for; its answer is awaited no more.
    fn withdrawn(&mut self, ask: &str, said: &mut Said) {
        for (id, _) in self.asks.extract_if(.., |_, open| open == ask) {
            let params = json!({"requestId": id});
            said.client(&json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params}));
        }
    }

    fn update(&self, update: &Value, said: &mut Said) {
        // What comes before there is a session is about none.
        let Some(session) = &self.session else { return };
        let params = json!({"sessionId": session, "update": update});
        said.client(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }
}

/// The text of a prompt; what it links to is named, what it embeds is there.
fn words(prompt: &Value) -> Option<String> {
    let texts = prompt.as_array()?.iter().filter_map(|block| match block["type"].as_str()? {
        "text" => block["text"].as_str().map(str::to_owned),
        "resource_link" => block["uri"].as_str().map(|uri| format!("[{uri}]")),
        "resource" => {
            let resource = &block["resource"];
            let (uri, text) = (resource["uri"].as_str()?, resource["text"].as_str()?);
            Some(format!("{uri}:\n{text}"))
        }
        _ => None,
    });
    Some(texts.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests;
