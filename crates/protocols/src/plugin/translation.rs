//! Translates between ACP and a plugin's records: a client's lines become intents for the plugin,
//! and records become an agent's ACP lines. Pure.

mod client;
mod conversation;
mod counted;
mod permissions;
mod transcript;
mod updates;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use eisen_plugin::Record;
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::client::{ClientMessage, ClientParams, words};
pub use self::conversation::Conversation;
use self::conversation::ResumableSession;
use self::counted::Counted;
pub(super) use self::transcript::{Heard, Transcript};
use crate::acp;
use crate::line;
use crate::model::code::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND};

/// One conversation between a client and an agent.
pub(super) struct Translation {
    /// The plugin's name.
    name: String,
    model: Option<String>,
    /// Set once the session is open.
    session: Option<String>,
    cwd: PathBuf,
    /// The agent's own id of the session.
    known_as: Option<String>,
    conversation: Conversation,
    is_kept: bool,
    /// The session to resume, until the plugin has answered.
    resumed: Option<ResumableSession>,
    /// The plugin has begun a conversation.
    is_begun: bool,
    /// The id of the unanswered prompt.
    prompt: Option<Value>,
    /// The client has cancelled the prompt.
    is_cancelled: bool,
    /// The agent's open requests, by our ids.
    asks: BTreeMap<u64, String>,
    last_id: u64,
    counted: Counted,
}

/// The settings with which the plugin begins a conversation.
#[derive(Serialize)]
struct StartSettings<'a> {
    cwd: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resume: Option<&'a str>,
}

/// A message for the plugin to express in the agent's own protocol. `id` is the client's request
/// that waits for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Intent {
    Start { id: Value, settings: String },
    Prompt { text: String },
    Cancel,
    Deny { ask: String, why: String },
    Allow { ask: String },
}

/// The translation of a line or a record.
#[derive(Default, Debug)]
pub(super) struct Translated {
    pub(super) to_client: Vec<u8>,
    pub(super) to_agent: Vec<Vec<u8>>,
    pub(super) intents: Vec<Intent>,
}

impl Translated {
    fn client(&mut self, message: &Value) {
        self.to_client.extend(message.to_string().bytes());
        self.to_client.push(b'\n');
    }

    fn answer(&mut self, id: &Value, result: &Value) {
        self.client(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn refuse(&mut self, id: &Value, code: i32, message: &str) {
        let error = json!({"code": code, "message": message});
        self.client(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }
}

impl Translation {
    pub(super) fn new(name: String, model: Option<String>, conversation: Conversation) -> Self {
        Self {
            name,
            model,
            session: None,
            cwd: PathBuf::new(),
            known_as: None,
            conversation,
            is_kept: false,
            resumed: None,
            is_begun: false,
            prompt: None,
            is_cancelled: false,
            asks: BTreeMap::new(),
            last_id: 0,
            counted: Counted::default(),
        }
    }

    /// Translates a line of the client.
    pub(super) fn on_client_line(&mut self, line: &[u8], said: &mut Translated) {
        let Ok(message) = line::read::<Map<String, Value>>(line) else { return };
        let message: ClientMessage = acp::read(&message.into());
        let id = Some(&message.id).filter(|id| !id.is_null());
        match (message.method.as_deref(), id) {
            (Some(method), Some(id)) => self.request(method, id, &message.params, said),
            (Some("session/cancel"), None) if self.prompt.is_some() => {
                self.is_cancelled = true;
                said.intents.push(Intent::Cancel);
            }
            (Some(_), None) => {}
            (None, id) => self.answered(id, &message, said),
        }
    }

    fn request(&mut self, method: &str, id: &Value, params: &ClientParams, said: &mut Translated) {
        match method {
            "initialize" => {
                let able = if self.conversation.is_kept() {
                    json!({
                        "promptCapabilities": {"embeddedContext": true},
                        "sessionCapabilities": {"resume": {}},
                    })
                } else {
                    json!({"promptCapabilities": {"embeddedContext": true}})
                };
                said.answer(
                    id,
                    &json!({
                        "protocolVersion": 1,
                        "agentCapabilities": able,
                        "agentInfo": {"name": self.name, "version": env!("CARGO_PKG_VERSION")},
                        "authMethods": [],
                    }),
                );
            }
            "session/new" | "session/resume" if self.session.is_some() => {
                said.refuse(id, INVALID_REQUEST, "this agent has one session, which is open");
            }
            "session/new" => self.open(id, params, None, said),
            "session/resume" => {
                let session = params.session_id.as_deref().unwrap_or_default();
                match self.conversation.take(session) {
                    Some(kept) => self.open(id, params, Some(kept), said),
                    None => said.refuse(id, INVALID_PARAMS, "there is no such session"),
                }
            }
            "session/prompt" if self.prompt.is_some() => {
                said.refuse(id, INVALID_REQUEST, "a prompt is running");
            }
            "session/prompt" => match words(&params.prompt) {
                Some(text) if self.is_session(params) => {
                    self.prompt = Some(id.clone());
                    self.is_cancelled = false;
                    said.intents.push(Intent::Prompt { text });
                }
                Some(_) => said.refuse(id, INVALID_PARAMS, "there is no such session"),
                None => said.refuse(id, INVALID_PARAMS, "`prompt` is no list of content blocks"),
            },
            _ => said.refuse(id, METHOD_NOT_FOUND, &format!("this agent has no {method}")),
        }
    }

    /// Has the plugin begin or resume a conversation.
    fn open(
        &mut self,
        id: &Value,
        params: &ClientParams,
        resumed: Option<ResumableSession>,
        said: &mut Translated,
    ) {
        let cwd = &*params.cwd;
        if !Path::new(cwd).is_absolute() {
            return said.refuse(id, INVALID_PARAMS, "`cwd` is not an absolute path");
        }
        self.cwd = cwd.into();
        self.resumed = resumed;
        // A conversation was begun if an earlier resume failed.
        if self.is_begun {
            return self.opened(id, said);
        }
        let settings = self.settings(self.resumed.as_ref().map(|kept| &*kept.known_as));
        said.intents.push(Intent::Start { id: id.clone(), settings });
    }

    /// The settings of a conversation, as JSON for `start`.
    fn settings(&self, resume: Option<&str>) -> String {
        let settings = StartSettings { cwd: &self.cwd, model: self.model.as_deref(), resume };
        json!(settings).to_string()
    }

    /// The settings by which a replacing instance resumes the conversation; None before there is
    /// one.
    pub(super) fn resume_settings(&self) -> Option<String> {
        self.session.as_ref().map(|_| self.settings(self.known_as.as_deref()))
    }

    fn opened(&mut self, id: &Value, said: &mut Translated) {
        self.is_begun = true;
        let session = match self.resumed.take() {
            Some(kept) if self.known_as.as_ref() == Some(&kept.known_as) => {
                said.answer(id, &json!({}));
                kept.session
            }
            Some(_) => {
                let why = "the plugin does not go on with an earlier conversation";
                return said.refuse(id, INVALID_REQUEST, why);
            }
            None => {
                let made = || format!("{}-{:016x}", self.name, fastrand::u64(..));
                let session = self.known_as.clone().unwrap_or_else(made);
                said.answer(id, &json!({"sessionId": session}));
                session
            }
        };
        self.session = Some(session);
    }

    /// Lets a later run resume the session.
    fn keep(&mut self) {
        if let (false, Some(session), Some(known_as)) =
            (self.is_kept, &self.session, &self.known_as)
        {
            let (session, known_as) = (session.clone(), known_as.clone());
            self.conversation.keep(ResumableSession { session, known_as });
            self.is_kept = true;
        }
    }

    fn is_session(&self, params: &ClientParams) -> bool {
        self.session.is_some() && self.session == params.session_id
    }

    /// Applies the outcome of an intent: the plugin produced lines, or failed.
    pub(super) fn fulfilled(
        &mut self,
        intent: Intent,
        outcome: Result<(), String>,
        said: &mut Translated,
    ) {
        match (intent, outcome) {
            (Intent::Start { id, .. }, Ok(())) => self.opened(&id, said),
            (Intent::Start { id, .. }, Err(why)) => {
                said.refuse(&id, INTERNAL_ERROR, &format!("the plugin can't begin: {why}"));
            }
            (Intent::Prompt { .. }, Err(why)) => {
                if let Some(id) = self.prompt.take() {
                    said.refuse(&id, INTERNAL_ERROR, &format!("the plugin can't prompt: {why}"));
                }
            }
            _ => {}
        }
    }

    /// Translates a record. The error says what is wrong with it.
    pub(super) fn translate(
        &mut self,
        record: Record<'_>,
        said: &mut Translated,
    ) -> Result<(), String> {
        match record {
            // Only `describe` puts descriptions, and errors are counted elsewhere.
            Record::Description { .. } | Record::Error { .. } | Record::TurnBegan => {}
            Record::Line { body } => said.to_agent.push(body.to_vec()),
            Record::Session { id } => {
                self.is_kept &= self.known_as.as_deref() == Some(&*id);
                self.known_as = Some(id.into_owned());
            }
            Record::TurnEnded { reason, body } => {
                // A conversation that only fails is not resumed.
                if reason != "error" {
                    self.keep();
                }
                self.turn_ended(&reason, &body, said);
            }
            Record::Ask { id, title, accesses, command } => {
                self.ask(&id, &title, &accesses, &command, said)?;
            }
            Record::Withdrawn { id } => {
                // A withdrawn request needs no refusal.
                said.intents
                    .retain(|intent| !matches!(intent, Intent::Deny { ask, .. } if *ask == id));
                self.withdrawn(&id, said);
            }
            Record::Text { body, reason } => self.update(&updates::text(&body, &reason), said),
            Record::Touched { action, path, call } => {
                let (call, path) = (self.call(&call), self.cwd.join(&*path));
                self.update(&updates::touched(&action, &path, &call), said);
            }
            Record::Runs { command, call } => {
                let call = self.call(&call);
                self.update(&updates::runs(&command, &call), said);
            }
            Record::Usage(usage) => {
                self.counted.take(usage).iter().for_each(|update| self.update(update, said));
            }
            Record::Model { id, name } => self.update(&updates::model(&id, &name), said),
        }
        Ok(())
    }

    /// Makes an id for an ACP tool call: one call of the agent may touch many files.
    fn call(&mut self, of: &str) -> String {
        self.last_id += 1;
        format!("{}{}{}", of, if of.is_empty() { "" } else { "/" }, self.last_id)
    }

    fn turn_ended(&mut self, reason: &str, error: &str, said: &mut Translated) {
        // A turn that the agent began by itself has no prompt to answer.
        let Some(id) = self.prompt.take() else { return };
        match reason {
            // ACP requires `cancelled` after a cancellation, even if the agent reports otherwise.
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

    fn update(&self, update: &Value, said: &mut Translated) {
        // Without a session there is nothing to update.
        let Some(session) = &self.session else { return };
        let params = json!({"sessionId": session, "update": update});
        said.client(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }
}

#[cfg(test)]
mod tests;
