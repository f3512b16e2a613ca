//! The protocol's methods, as the scripted agent serves them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::io::AsyncWrite;
use tokio_util::sync::CancellationToken;

use super::agent::{Msg, RunningTurn, ScriptedAgent, ScriptedSession, TurnOver};
use super::turn::{Play, ScriptPart, ScriptedTurn, TurnEnd, TurnStage};
use super::wire::RpcError;
use crate::acp::{self, ContentBlock};
use crate::line::lenient;
use crate::model::code;

/// A response that is sent at once; None: a turn sends it at its end.
type ImmediateAnswer = Result<Option<Value>, RpcError>;

/// The params of all methods.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClientParams {
    #[serde(deserialize_with = "lenient")]
    session_id: Option<Arc<str>>,
    /// Any JSON.
    request_id: Value,
    #[serde(deserialize_with = "lenient")]
    method_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    cwd: Option<String>,
    #[serde(deserialize_with = "lenient")]
    mode_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    config_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    value: Option<String>,
    /// Content blocks.
    prompt: Value,
}

/// The answer to a request for a session.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionOpened {
    #[serde(skip_serializing_if = "Option::is_none")]
    modes: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    config_options: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<Arc<str>>,
}

impl<W: AsyncWrite + Unpin> ScriptedAgent<W> {
    pub(super) fn notification(&mut self, method: &str, params: &Value) {
        let params: ClientParams = acp::read(params);
        let cancelled = self.sessions.iter().find_map(|(name, session)| {
            let running = session.turn.as_ref()?;
            let matches = match method {
                "session/cancel" => params.session_id.as_deref() == Some(&**name),
                "$/cancel_request" => {
                    serde_json::from_str::<Value>(running.id.get()).ok()? == params.request_id
                }
                _ => false,
            };
            matches.then_some(&running.cancel)
        });
        if let Some(cancel) = cancelled {
            cancel.cancel();
        }
    }

    pub(super) fn request(
        &mut self,
        method: &str,
        id: &RawValue,
        params: &Value,
    ) -> ImmediateAnswer {
        let params = &acp::read(params);
        match method {
            "initialize" => Ok(self.initialize(id)),
            "authenticate" => self.authenticate(params),
            "session/new" => self.new_session(params).map(|answer| Some(json!(answer))),
            "session/load" if self.script.agent.load.is_some() => self.load_session(id, params),
            "session/fork" if self.script.agent.fork => {
                self.fork_session(params).map(|answer| Some(json!(answer)))
            }
            "session/set_mode" => self.set_mode(params),
            "session/set_config_option" => self.set_config_option(params),
            "session/prompt" => self.prompt(id, params),
            "session/list" => Ok(Some(self.list(params))),
            "session/close" => self.close(params),
            _ => {
                Err(RpcError::new(code::METHOD_NOT_FOUND, format!("there is no method `{method}`")))
            }
        }
    }

    fn initialize(&mut self, id: &RawValue) -> Option<Value> {
        let script = self.script.clone();
        let agent = &script.agent;
        let methods: Vec<_> =
            agent.auth_methods.iter().map(|id| json!({"id": id, "name": id})).collect();
        let sessions = if agent.fork {
            json!({"list": {}, "close": {}, "fork": {}})
        } else {
            json!({"list": {}, "close": {}})
        };
        let answer = json!({
            "protocolVersion": 1,
            "agentCapabilities": {
                "loadSession": agent.load.is_some(),
                "promptCapabilities": {"image": false, "audio": false, "embeddedContext": true},
                "sessionCapabilities": sessions,
            },
            "agentInfo": {"name": agent.name, "version": agent.version},
            "authMethods": methods,
        });
        if agent.start.is_empty() {
            return Some(answer);
        }
        self.begin(&"".into(), Play::of(ScriptPart::Start), id, Some(answer));
        None
    }

    fn authenticate(&mut self, params: &ClientParams) -> ImmediateAnswer {
        let known = &self.script.agent.auth_methods;
        if !known.iter().any(|method| params.method_id.as_deref() == Some(method)) {
            return Err(RpcError::invalid_params("there is no such `methodId`"));
        }
        self.authenticated = true;
        Ok(Some(json!({})))
    }

    fn new_session(&mut self, params: &ClientParams) -> Result<SessionOpened, RpcError> {
        let cwd = self.cwd_for_session(params)?;
        let id: Arc<str> = loop {
            self.sessions_opened += 1;
            let id = format!("{}-s{}", self.script.agent.name, self.sessions_opened);
            // One of an earlier process may have been loaded.
            if !self.sessions.contains_key(&*id) {
                break id.into();
            }
        };
        let mut answer = self.open(id.clone(), cwd);
        answer.session_id = Some(id);
        Ok(answer)
    }

    /// Opens a session that has the matches of another one.
    fn fork_session(&mut self, params: &ClientParams) -> Result<SessionOpened, RpcError> {
        let source = self.session(params)?;
        let (mode, model) = (source.mode.clone(), source.model.clone());
        let (matched, calls) = (source.matched.clone(), source.calls.load(Ordering::Relaxed));
        let answer = self.new_session(params)?;
        let id = answer.session_id.clone().unwrap_or_default();
        if let Some(fork) = self.sessions.get_mut(&id) {
            (fork.mode, fork.model, fork.matched) = (mode, model, matched);
            fork.calls.store(calls, Ordering::Relaxed);
        }
        Ok(answer)
    }

    /// Accepts any id: it may be from an earlier process.
    fn load_session(&mut self, id: &RawValue, params: &ClientParams) -> ImmediateAnswer {
        let cwd = self.cwd_for_session(params)?;
        let Some(session) = params.session_id.clone() else {
            return Err(RpcError::invalid_params("`sessionId` is missing"));
        };
        if self.sessions.get(&session).is_some_and(|session| session.turn.is_some()) {
            return Err(RpcError::new(code::INVALID_REQUEST, "a turn is running in this session"));
        }
        let answer = self.open(session.clone(), cwd);
        self.begin(&session, Play::of(ScriptPart::Load), id, Some(json!(answer)));
        Ok(None)
    }

    fn cwd_for_session(&self, params: &ClientParams) -> Result<PathBuf, RpcError> {
        if !self.authenticated && !self.script.agent.auth_methods.is_empty() {
            return Err(RpcError::new(code::AUTH_REQUIRED, "Authentication required"));
        }
        let cwd = params.cwd.as_ref().map(PathBuf::from).filter(|cwd| cwd.is_absolute());
        cwd.ok_or_else(|| RpcError::invalid_params("`cwd` must be an absolute path"))
    }

    /// Opens a session; returns the response without its id.
    fn open(&mut self, id: Arc<str>, cwd: PathBuf) -> SessionOpened {
        let agent = &self.script.agent;
        let session = ScriptedSession {
            cwd,
            mode: agent.modes.first().cloned(),
            model: agent.models.first().cloned(),
            matched: vec![0; self.script.rules.len()],
            calls: Arc::default(),
            turn: None,
        };
        let modes = session.mode.as_ref().map(|mode| {
            let modes: Vec<_> =
                agent.modes.iter().map(|mode| json!({"id": mode, "name": mode})).collect();
            json!({"currentModeId": mode, "availableModes": modes})
        });
        let config_options = session.model.as_ref().map(|model| self.config_options(model));
        let answer = SessionOpened { modes, config_options, session_id: None };
        self.sessions.insert(id, session);
        answer
    }

    fn config_options(&self, model: &str) -> Value {
        let models = &self.script.agent.models;
        let options: Vec<_> =
            models.iter().map(|model| json!({"value": model, "name": model})).collect();
        json!([{
            "id": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": model, "options": options,
        }])
    }

    fn set_mode(&mut self, params: &ClientParams) -> ImmediateAnswer {
        let mode = params.mode_id.as_deref().unwrap_or_default();
        if !self.script.agent.modes.iter().any(|known| known == mode) {
            return Err(RpcError::invalid_params(format!("there is no mode `{mode}`")));
        }
        self.session(params)?.mode = Some(mode.to_owned());
        Ok(Some(json!({})))
    }

    fn set_config_option(&mut self, params: &ClientParams) -> ImmediateAnswer {
        let model = params.value.as_deref().unwrap_or_default();
        let known = self.script.agent.models.iter().any(|known| known == model);
        if params.config_id.as_deref() != Some("model") || !known {
            return Err(RpcError::invalid_params("there is no such option or value"));
        }
        self.session(params)?.model = Some(model.to_owned());
        Ok(Some(json!({"configOptions": self.config_options(model)})))
    }

    fn prompt(&mut self, id: &RawValue, params: &ClientParams) -> ImmediateAnswer {
        if !params.prompt.is_array() {
            return Err(RpcError::invalid_params("`prompt` must be a list of content blocks"));
        }
        let text = prompt_text(&params.prompt);
        let script = self.script.clone();
        let session = self.session(params)?;
        if session.turn.is_some() {
            return Err(RpcError::new(code::INVALID_REQUEST, "a turn is running in this session"));
        }
        let mut play = Play { prompt: text, ..Play::of(ScriptPart::Default) };
        for (index, (rule, matched)) in script.rules.iter().zip(&mut session.matched).enumerate() {
            if rule.times.is_some_and(|times| *matched >= times) {
                continue;
            }
            if let Some(captures) = rule.matches(&play.prompt) {
                *matched += 1;
                play.part = ScriptPart::Rule(index);
                play.captures = captures;
                play.cancellable = !rule.ignore_cancel;
                break;
            }
        }
        let name = params.session_id.clone().unwrap_or_default();
        self.begin(&name, play, id, None);
        Ok(None)
    }

    fn list(&self, params: &ClientParams) -> Value {
        let wanted = params.cwd.as_deref();
        let sessions = self.sessions.iter();
        let sessions: Vec<_> = sessions
            .filter(|(_, session)| wanted.is_none_or(|cwd| session.cwd.as_os_str() == cwd))
            .map(|(id, session)| json!({"sessionId": &**id, "cwd": session.cwd}))
            .collect();
        json!({"sessions": sessions})
    }

    fn close(&mut self, params: &ClientParams) -> ImmediateAnswer {
        if let Some(running) = self.session(params)?.turn.take() {
            running.cancel.cancel();
        }
        self.sessions.remove(params.session_id.as_deref().unwrap_or_default());
        Ok(Some(json!({})))
    }

    fn session(&mut self, params: &ClientParams) -> Result<&mut ScriptedSession, RpcError> {
        let id = params.session_id.as_deref().unwrap_or_default();
        self.sessions.get_mut(id).ok_or_else(|| {
            RpcError::new(code::RESOURCE_NOT_FOUND, format!("there is no session `{id}`"))
        })
    }

    /// Plays a part of the script in a task of its own. `answer` is the response if the part does
    /// not fail; None: the turn's stop reason.
    fn begin(&mut self, name: &Arc<str>, play: Play, id: &RawValue, answer: Option<Value>) {
        self.turns_begun += 1;
        let number = self.turns_begun;
        let cancel = CancellationToken::new();
        let session = self.sessions.get_mut(name);
        let (cwd, in_mode, by_model, calls) = session.map_or_else(Default::default, |session| {
            let cancel = cancel.clone();
            session.turn = Some(RunningTurn { number, id: id.to_owned(), cancel });
            let chosen = |choice: &Option<String>| choice.clone().unwrap_or_default();
            let (in_mode, by_model) = (chosen(&session.mode), chosen(&session.model));
            (session.cwd.clone(), in_mode, by_model, session.calls.clone())
        });
        let (script, mailbox, session) = (self.script.clone(), self.mailbox.clone(), name.clone());
        let stage = TurnStage {
            session: name.clone(),
            cwd,
            mode: in_mode,
            model: by_model,
            calls,
            mailbox: mailbox.clone(),
            cancel,
            stay: self.stay.clone(),
        };
        let id = id.to_owned();
        self.turns.spawn(async move {
            let (end, more) = ScriptedTurn::new(stage, &play).play(&script, &play).await;
            let answer = match (end, answer) {
                (TurnEnd::Failed(message), _) => Err(RpcError::new(code::INTERNAL_ERROR, message)),
                (TurnEnd::Stopped(reason), None) => {
                    let mut answer = Map::from_iter([("stopReason".to_owned(), json!(reason))]);
                    answer.extend(more);
                    Ok(answer.into())
                }
                (TurnEnd::Stopped(_), Some(answer)) => Ok(answer),
            };
            // Fails if the agent has ended.
            let _ = mailbox.send(Msg::TurnOver(TurnOver { session, number, id, answer })).await;
        });
    }
}

/// The text of a prompt: its text blocks, embedded resources and link URIs.
fn prompt_text(blocks: &Value) -> String {
    let texts =
        acp::list(blocks).into_iter().filter_map(|block: ContentBlock| match &*block.kind? {
            "text" => block.text,
            "resource" => block.resource.text,
            "resource_link" => block.uri,
            _ => None,
        });
    texts.collect::<Vec<_>>().join("\n")
}
