//! The agent that a client sees in OpenCode's server: the client's messages → tasks for the server, and
//! what came of them. Pure.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::api::ApiError;
use super::client::{BridgeParams, ClientMessage, ModelName, OpenedSession, PromptBody, part};
use super::session::{BridgedSession, answer, error, replay};
use super::shapes::SessionInfo;
use super::show::Shows;
use super::tasks::{Opened, ServerTask, SessionOpening, Settings, TaskOutcome};
use crate::acp;
use crate::line;

/// Sessions of one client.
const MOST_SESSIONS: usize = 1000;
/// Folders whose events are followed.
const MOST_FOLDERS: usize = 16;

const INVALID_REQUEST: i64 = -32600;
const NO_METHOD: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
const NOT_FOUND: i64 = -32002;

#[derive(Debug)]
pub(super) enum BridgeStep {
    /// To the client.
    Say(Value),
    Do(ServerTask),
    /// Follow the events of this folder.
    Follow(String),
}

#[derive(Default, Debug)]
pub(super) struct Bridge {
    pub(super) sessions: HashMap<String, BridgedSession>,
    /// Requests to the client, by their ids: who asks.
    pub(super) asked: HashMap<u64, PutPermission>,
    /// The server's.
    version: Option<String>,
    /// The followed folders; true: their events come.
    folders: HashMap<String, bool>,
    /// Messages to say once the events of their folder come.
    held: Vec<(String, Value)>,
    last: u64,
}

/// A request for permission that the client was asked.
#[derive(Debug)]
pub(super) struct PutPermission {
    pub(super) session: String,
    pub(super) permission: String,
}

type Steps = Result<Vec<BridgeStep>, (i64, String)>;

impl Bridge {
    pub(super) fn new(version: Option<String>) -> Self {
        Self { version, ..Self::default() }
    }

    /// Takes a line of the client.
    pub(super) fn client(&mut self, line: &[u8]) -> Vec<BridgeStep> {
        let message: Value = match line::read(line) {
            Ok(message) => message,
            Err(error) => {
                tracing::warn!(%error, "a line that is no message is left out");
                return Vec::new();
            }
        };
        let ClientMessage { id, method, params, result } = acp::read(&message);
        let (id, params) = (&id, &params);
        let Some(method) = method.as_deref() else {
            return id.as_u64().map_or_else(Vec::new, |id| self.decided(id, &result));
        };
        if id.is_null() {
            return if method == "session/cancel" { self.cancel(params) } else { Vec::new() };
        }
        let steps = match method {
            "initialize" => Ok(vec![BridgeStep::Say(answer(id, &self.introduction()))]),
            "authenticate" => Ok(vec![BridgeStep::Say(answer(id, &json!({})))]),
            "session/new" => self.open(id, params, SessionOpening::New),
            "session/load" => {
                id_of(params).and_then(|of| self.open(id, params, SessionOpening::Load(of)))
            }
            "session/resume" => {
                id_of(params).and_then(|of| self.open(id, params, SessionOpening::Resume(of)))
            }
            "session/list" => self.list(id, params),
            "session/prompt" => self.prompt(id, params),
            "session/set_mode" => self.set_mode(id, params, params.mode_id.as_ref()),
            "session/set_config_option" => match params.config_id.as_deref() {
                Some("model") => self.set_model(id, params),
                Some("mode") => self.set_mode(id, params, params.value.as_ref()),
                _ => Err((INVALID_PARAMS, "there is no such option".to_owned())),
            },
            _ => Err((NO_METHOD, format!("`{method}` is not known"))),
        };
        steps.unwrap_or_else(|(code, why)| vec![BridgeStep::Say(error(id, code, &why))])
    }

    fn introduction(&self) -> Value {
        json!({
            "protocolVersion": 1,
            "agentInfo": { "name": "opencode", "title": "OpenCode", "version": self.version.as_deref().unwrap_or("unknown") },
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": { "image": true, "embeddedContext": true },
                "sessionCapabilities": { "resume": {}, "list": {} },
            },
            "authMethods": [],
        })
    }

    fn open(&mut self, id: &Value, params: &BridgeParams, how: SessionOpening) -> Steps {
        let cwd = cwd_of(params)?;
        if !params.mcp_servers.is_empty() {
            let why = "an OpenCode server has the MCP servers of its own configuration, and takes no others";
            return Err((INVALID_PARAMS, why.to_owned()));
        }
        if let SessionOpening::Load(of) | SessionOpening::Resume(of) = &how
            && self.sessions.get(of).is_some_and(|session| session.turn.is_some())
        {
            return Err((INVALID_REQUEST, "the session works on a prompt".to_owned()));
        }
        if self.sessions.len() >= MOST_SESSIONS {
            return Err((INVALID_REQUEST, format!("there are {MOST_SESSIONS} sessions already")));
        }
        let mut steps = Vec::new();
        if !self.folders.contains_key(&cwd) {
            if self.folders.len() >= MOST_FOLDERS {
                let why = format!("there are sessions in {MOST_FOLDERS} folders already");
                return Err((INVALID_REQUEST, why));
            }
            self.folders.insert(cwd.clone(), false);
            steps.push(BridgeStep::Follow(cwd.clone()));
        }
        steps.push(BridgeStep::Do(ServerTask::Open { id: id.clone(), how, cwd }));
        Ok(steps)
    }

    fn list(&self, id: &Value, params: &BridgeParams) -> Steps {
        // Without a folder those of any session.
        let cwd = match params.cwd {
            Some(_) => cwd_of(params)?,
            None => self.folders.keys().next().cloned().unwrap_or_default(),
        };
        Ok(vec![BridgeStep::Do(ServerTask::List { id: id.clone(), cwd })])
    }

    fn prompt(&mut self, id: &Value, params: &BridgeParams) -> Steps {
        let number = self.next();
        let (name, session) = self.known(params)?;
        if session.turn.is_some() {
            return Err((INVALID_REQUEST, "the session works on another prompt".to_owned()));
        }
        let parts: Vec<Value> = params.prompt.iter().cloned().filter_map(part).collect();
        if parts.is_empty() {
            return Err((
                INVALID_PARAMS,
                "the prompt has nothing that the server takes".to_owned(),
            ));
        }
        let model = session.model.as_ref().and_then(|id| id.split_once('/'));
        let body = json!(PromptBody {
            parts,
            agent: &session.mode,
            model: model.map(|(provider, model)| ModelName { provider, model }),
        });
        session.begin(id.clone(), number);
        let cwd = session.cwd.clone();
        Ok(vec![BridgeStep::Do(ServerTask::Prompt { session: name, cwd, turn: number, body })])
    }

    fn cancel(&mut self, params: &BridgeParams) -> Vec<BridgeStep> {
        let Ok((session, known)) = self.known(params) else { return Vec::new() };
        let Some(turn) = &mut known.turn else { return Vec::new() };
        turn.is_cancelled = true;
        let cwd = known.cwd.clone();
        let check =
            ServerTask::Check { session: session.clone(), cwd: cwd.clone(), after: super::A_WHILE };
        vec![BridgeStep::Do(ServerTask::Abort { session, cwd }), BridgeStep::Do(check)]
    }

    fn set_mode(&mut self, id: &Value, params: &BridgeParams, wanted: Option<&String>) -> Steps {
        let (session, known) = self.known(params)?;
        let mode = known.settings.modes.iter().find(|mode| wanted == Some(&mode.name));
        let mode = mode.ok_or((INVALID_PARAMS, "there is no such mode".to_owned()))?.clone();
        let cwd = known.cwd.clone();
        Ok(vec![BridgeStep::Do(ServerTask::SetMode { id: id.clone(), session, cwd, mode })])
    }

    fn set_model(&mut self, id: &Value, params: &BridgeParams) -> Steps {
        let (_, session) = self.known(params)?;
        let wanted =
            session.settings.models.iter().find(|model| params.value.as_ref() == Some(&model.id));
        let wanted = wanted.ok_or((INVALID_PARAMS, "there is no such model".to_owned()))?;
        session.model = Some(wanted.id.clone());
        let options = json!({ "configOptions": options(session) });
        Ok(vec![BridgeStep::Say(answer(id, &options))])
    }

    fn known(
        &mut self,
        params: &BridgeParams,
    ) -> Result<(String, &mut BridgedSession), (i64, String)> {
        let id = id_of(params)?;
        match self.sessions.get_mut(&id) {
            Some(session) => Ok((id, session)),
            None => Err((NOT_FOUND, format!("there is no session {id:?}"))),
        }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Takes what came of a task.
    pub(super) fn done(&mut self, done: TaskOutcome) -> Vec<BridgeStep> {
        match done {
            TaskOutcome::Opened { id, cwd, how, opened } => match opened {
                Ok(opened) => self.opened(&id, &cwd, &how, *opened),
                Err(failure) => {
                    let is_lost = matches!(failure, ApiError::Refused { status: 404, .. });
                    let code = if is_lost { NOT_FOUND } else { INTERNAL };
                    vec![BridgeStep::Say(error(&id, code, &failure.to_string()))]
                }
            },
            TaskOutcome::Listed { id, listed } => vec![BridgeStep::Say(match listed {
                Ok(listed) => answer(
                    &id,
                    &json!({ "sessions": listed.iter().map(listing).collect::<Vec<_>>() }),
                ),
                Err(failure) => error(&id, INTERNAL, &failure.to_string()),
            })],
            TaskOutcome::Prompted { session, turn, accepted: Err(failure) } => {
                let Some(known) = self.sessions.get_mut(&session) else { return Vec::new() };
                match known.turn.take_if(|known| known.number == turn) {
                    Some(turn) => {
                        vec![BridgeStep::Say(error(&turn.id, INTERNAL, &failure.to_string()))]
                    }
                    None => Vec::new(),
                }
            }
            TaskOutcome::ModeSet { id, session, mode, set } => {
                let Some(known) = self.sessions.get_mut(&session) else { return Vec::new() };
                vec![BridgeStep::Say(match set {
                    Ok(()) => {
                        known.mode = mode;
                        answer(&id, &json!({ "configOptions": options(known) }))
                    }
                    Err(failure) => error(&id, INTERNAL, &failure.to_string()),
                })]
            }
            TaskOutcome::Checked { session, checked: Ok(checked) } => {
                self.checked(&session, *checked)
            }
            TaskOutcome::Checked { session, checked: Err(failure) } => {
                tracing::warn!(%failure, session, "cannot read how a session stands");
                self.check_again(&session)
            }
            TaskOutcome::Found { asked, message } => {
                self.found(&asked, message.map(|message| *message))
            }
            TaskOutcome::Prompted { .. } | TaskOutcome::Nothing => Vec::new(),
        }
    }

    fn opened(
        &mut self,
        id: &Value,
        cwd: &str,
        how: &SessionOpening,
        mut opened: Opened,
    ) -> Vec<BridgeStep> {
        let name = opened.session.id.clone();
        let mut lines = Vec::new();
        let messages = std::mem::take(&mut opened.messages);
        let session = BridgedSession::new(cwd.to_owned(), opened, &messages);
        if matches!(how, SessionOpening::Load(_)) {
            let updates = replay(&mut Shows::default(), messages);
            lines.extend(updates.into_iter().map(|update| update_of(&name, &update)));
        }
        let result = json!(OpenedSession {
            modes: modes(&session),
            config_options: options(&session),
            session_id: (*how == SessionOpening::New).then(|| name.clone()),
        });
        lines.push(answer(id, &result));
        if let Some(mut old) = self.sessions.insert(name, session) {
            lines.extend(old.end());
        }
        if self.folders.get(cwd) == Some(&true) {
            return lines.into_iter().map(BridgeStep::Say).collect();
        }
        self.held.extend(lines.into_iter().map(|line| (cwd.to_owned(), line)));
        Vec::new()
    }

    /// The events of a folder come.
    pub(super) fn connected(&mut self, cwd: &str) -> Vec<BridgeStep> {
        self.folders.insert(cwd.to_owned(), true);
        let (ready, held) =
            std::mem::take(&mut self.held).into_iter().partition(|(of, _)| of == cwd);
        self.held = held;
        let ready: Vec<(String, Value)> = ready;
        let mut steps: Vec<_> = ready.into_iter().map(|(_, line)| BridgeStep::Say(line)).collect();
        steps.extend(self.missed(cwd));
        steps
    }

    /// Sessions that work, with their folders.
    pub(super) fn working(&self) -> Vec<(String, String)> {
        let working = self.sessions.iter().filter(|(_, session)| session.turn.is_some());
        working.map(|(name, session)| (name.clone(), session.cwd.clone())).collect()
    }
}

pub(super) fn update_of(session: &str, update: &Value) -> Value {
    let params = json!({ "sessionId": session, "update": update });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })
}

fn id_of(params: &BridgeParams) -> Result<String, (i64, String)> {
    let id = params.session_id.clone().filter(|id| !id.is_empty());
    id.ok_or((INVALID_PARAMS, "it has no `sessionId`".to_owned()))
}

fn cwd_of(params: &BridgeParams) -> Result<String, (i64, String)> {
    let cwd = params.cwd.clone().filter(|cwd| cwd.starts_with('/'));
    cwd.ok_or((INVALID_PARAMS, "its `cwd` is no absolute path".to_owned()))
}

fn listing(session: &SessionInfo) -> Value {
    json!({ "sessionId": session.id, "cwd": session.directory, "title": session.title })
}

fn modes(session: &BridgedSession) -> Value {
    let modes = session.settings.modes.iter();
    let mode = modes
        .map(|mode| json!({ "id": mode.name, "name": mode.name, "description": mode.description }));
    json!({ "currentModeId": session.mode, "availableModes": mode.collect::<Vec<_>>() })
}

fn options(session: &BridgedSession) -> Value {
    let settings: &Arc<Settings> = &session.settings;
    let Some(now) = session.model.as_ref().or(settings.model.as_ref()) else { return json!([]) };
    let mut seen = HashSet::new();
    let models = settings.models.iter().filter(|model| seen.insert(&model.id));
    let models: Vec<_> =
        models.map(|model| json!({ "value": model.id, "name": model.name })).collect();
    json!([{
        "id": "model",
        "name": "Model",
        "category": "model",
        "type": "select",
        "currentValue": now,
        "options": models,
    }])
}
