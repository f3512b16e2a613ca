//! From a new agent to an open session: `initialize`, `authenticate`, `session/new` (or the last
//! session restored), mode and model. Runs in the caller's task, over the host's mailbox.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::choice::{self, Choice, ChoiceRequest};
use super::messages::HostMsg;
use super::{HostError, HostHandle, HostSettings, TeamTools};
use crate::acp::{self, AgentIntroduction};
use crate::line::{self, lenient};
use crate::model::{SessionId, ToolsForm, code};
use crate::proxy::Opening;

/// The version of ACP.
pub const PROTOCOL_VERSION: u64 = 1;
const AUTH_REQUIRED: i64 = code::AUTH_REQUIRED as i64;
const INVALID_PARAMS: i64 = code::INVALID_PARAMS as i64;

/// The agent's own description, from its answer to `initialize`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a capability of its own")]
pub struct AgentInfo {
    pub name: Option<String>,
    pub version: Option<String>,
    /// `session/load` is offered.
    pub load_session: bool,
    /// `session/resume` is offered.
    pub resume_session: bool,
    /// `session/fork` is offered.
    pub fork_session: bool,
    /// Prompts may have embedded resources.
    pub embedded_context: bool,
    /// Prompts may have images.
    pub images: bool,
    /// Ids of the authentication methods.
    pub auth_methods: Vec<String>,
}

/// A session that the agent has opened.
pub(super) struct Opened {
    pub(super) session: SessionId,
    /// The whole answer.
    pub(super) answer: Value,
    /// The form in which a new one has the tools of the team; None: it goes on from another one.
    pub(super) form: Option<ToolsForm>,
}

/// The id in the answer to a request for a session.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OpenedId {
    #[serde(deserialize_with = "lenient")]
    session_id: Option<String>,
}

/// The settings in the answer to a request for a session, as the agent sent them.
#[derive(Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SessionSettings {
    modes: Value,
    models: Value,
    config_options: Value,
}

impl HostHandle {
    /// Sends `initialize`, then `authenticate` if a method is configured.
    pub async fn initialize(&self) -> Result<(), HostError> {
        let settings = &self.shared.settings;
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": {
                "fs": { "readTextFile": settings.files, "writeTextFile": settings.files },
                "terminal": settings.terminals,
                "elicitation": { "form": {} },
            },
            "clientInfo": { "name": "eisen-core", "version": env!("CARGO_PKG_VERSION") },
        });
        let answer = self.step("initialize", params).await?;
        let AgentIntroduction { protocol_version, agent_info, agent_capabilities, .. } =
            acp::read(&answer);
        let version = protocol_version.to_string();
        match line::integer(&version).and_then(|version| u64::try_from(version).ok()) {
            Some(PROTOCOL_VERSION) => {}
            Some(other) => return Err(HostError::Version(other)),
            None => return Err(HostError::malformed("initialize", &"it has no `protocolVersion`")),
        }
        let methods = choice::auth_methods(&answer);
        let takes_http = agent_capabilities.mcp_capabilities.http;
        let is_open = |tools: &TeamTools| tools.http.is_some() && tools.first.is_none();
        if takes_http && settings.tools.as_ref().is_some_and(is_open) {
            self.shared.tool_form.prefer_http();
        }
        // If a run is initialized twice, the first answer is kept.
        let _ = self.shared.agent.set(AgentInfo {
            name: agent_info.name,
            version: agent_info.version,
            load_session: agent_capabilities.load_session,
            resume_session: agent_capabilities.session_capabilities.resume.0,
            fork_session: agent_capabilities.session_capabilities.fork.0,
            embedded_context: agent_capabilities.prompt_capabilities.embedded_context,
            images: agent_capabilities.prompt_capabilities.image,
            auth_methods: methods.iter().map(|method| method.id.clone()).collect(),
        });
        if let Some(wanted) = &settings.auth_method {
            let method = choice::choose("auth method", wanted, &methods)?;
            self.step("authenticate", json!({ "methodId": method.id })).await?;
        }
        Ok(())
    }

    /// Sends `session/new`, then sets mode and model as configured. The first session is the
    /// default for prompts.
    pub async fn new_session(&self) -> Result<SessionId, HostError> {
        let Opened { session, answer, form } = self.open("session/new", None, None).await?;
        self.configure(session.as_str(), &answer).await?;
        self.opened(session, form).await
    }

    /// Like `new_session`, for questions beside the agent's work: never the default for prompts.
    pub async fn session_beside(&self) -> Result<SessionId, HostError> {
        let Opened { session, answer, form } = self.open("session/new", None, None).await?;
        self.configure(session.as_str(), &answer).await?;
        let new = self.as_new(form);
        self.send(HostMsg::Opened { session: session.clone(), is_beside: true, new }).await?;
        Ok(session)
    }

    /// Has the agent open a new session that goes on under the name of another one.
    pub(super) async fn open_behind(&self, session: &SessionId) -> Result<(), HostError> {
        let opening = Some(Opening::Behind(session.clone()));
        let Opened { answer, form, .. } = self.open("session/new", None, opening).await?;
        self.configure(session.as_str(), &answer).await?;
        self.opened(session.clone(), form).await.map(drop)
    }

    /// The params of a request for a session, new or from this one.
    fn params(&self, from: Option<&SessionId>, form: ToolsForm) -> Value {
        let HostSettings { cwd, mcp_servers, tools, .. } = &self.shared.settings;
        let mut servers = mcp_servers.clone();
        if let Some(tools) = tools {
            tools.add(form, &mut servers);
        }
        match from {
            None => json!({ "cwd": cwd, "mcpServers": servers }),
            Some(from) => {
                json!({ "sessionId": from.as_str(), "cwd": cwd, "mcpServers": servers })
            }
        }
    }

    /// Sends a request for a session. An agent that finds the params of a new one invalid may do so for
    /// the form of the team's MCP server: it gets the next form. Those of another one may be invalid
    /// since the session is lost. Returns the form that a new one was opened with.
    async fn step_with_tools(
        &self,
        method: &'static str,
        from: Option<&SessionId>,
        opening: Option<Opening>,
    ) -> Result<(Value, Option<ToolsForm>), HostError> {
        loop {
            let form = self.shared.tool_form.current();
            let params = self.params(from, form);
            match self.step_opening(method, params, opening.clone()).await {
                Err(HostError::Refused { code: INVALID_PARAMS, .. })
                    if from.is_none()
                        && self.shared.settings.tools.is_some()
                        && self.shared.tool_form.next(form) => {}
                answer => return Ok((answer?, from.is_none().then_some(form))),
            }
        }
    }

    /// Has the agent open a session.
    pub(super) async fn open(
        &self,
        method: &'static str,
        from: Option<&SessionId>,
        opening: Option<Opening>,
    ) -> Result<Opened, HostError> {
        let answer = self.step_with_tools(method, from, opening).await;
        let (answer, form) = answer.map_err(|error| self.name_auth(error))?;
        match acp::read::<OpenedId>(&answer).session_id {
            Some(id) if !id.is_empty() => Ok(Opened { session: SessionId::new(id), answer, form }),
            _ => Err(HostError::malformed(method, &"it has no `sessionId`")),
        }
    }

    /// Restores the session of an earlier run if the agent can; otherwise, or on failure, opens a
    /// new one.
    pub async fn restore_session(&self, last: SessionId) -> Result<SessionId, HostError> {
        let Some(method) = self.restoring() else {
            self.shared.branches.begin_run(None);
            return self.new_session().await;
        };
        let session = last.as_str();
        let answer = match self.step_with_tools(method, Some(&last), None).await {
            Ok((answer, _)) => answer,
            Err(error @ HostError::Gone(_)) => return Err(error),
            Err(error) => {
                tracing::warn!(session, %error, "the last session is lost: a new one begins");
                self.shared.branches.begin_run(None);
                return self.new_session().await;
            }
        };
        self.configure_restored(&last, &answer).await?;
        self.opened(last, None).await
    }

    /// Goes on with a session of an earlier process of the agent.
    pub async fn resume_session(&self, session: &SessionId) -> Result<(), HostError> {
        let method = self.restoring().ok_or(HostError::NoResume)?;
        let (answer, _) = self.step_with_tools(method, Some(session), None).await?;
        self.configure_restored(session, &answer).await?;
        self.opened(session.clone(), None).await.map(drop)
    }

    /// The method by which the agent restores a session.
    fn restoring(&self) -> Option<&'static str> {
        match self.agent_info()? {
            // Preferred: a load replays the whole conversation.
            AgentInfo { resume_session: true, .. } => Some("session/resume"),
            AgentInfo { load_session: true, .. } => Some("session/load"),
            _ => None,
        }
    }

    /// Makes sure that a forked session takes prompts; returns the answer that has its settings.
    /// Some agents fork on disk only, and answer nothing but the id: such a session must be
    /// restored first.
    pub(super) async fn revive(
        &self,
        session: &SessionId,
        answer: Value,
    ) -> Result<Value, HostError> {
        let is_bare = acp::read::<SessionSettings>(&answer) == SessionSettings::default();
        let Some(method) = self.restoring().filter(|_| is_bare) else { return Ok(answer) };
        match self.step_with_tools(method, Some(session), None).await {
            Ok((restored, _)) => Ok(restored),
            Err(error @ HostError::Gone(_)) => Err(error),
            Err(error) => {
                tracing::warn!(%session, %error, "cannot restore the forked session: it may be open");
                Ok(answer)
            }
        }
    }

    /// Configures a session that may have its settings from before.
    pub(super) async fn configure_restored(
        &self,
        session: &SessionId,
        answer: &Value,
    ) -> Result<(), HostError> {
        match self.configure(session.as_str(), answer).await {
            // Some agents do not repeat their options here.
            Err(error @ HostError::NotOffered { .. }) => {
                tracing::warn!(%session, %error, "cannot configure the restored session: it keeps its own settings");
                Ok(())
            }
            configured => configured,
        }
    }

    /// Sets mode, model and thinking as configured, from the options in the agent's `answer`.
    pub(super) async fn configure(&self, session: &str, answer: &Value) -> Result<(), HostError> {
        let settings = &self.shared.settings;
        if let Some(mode) = &settings.mode {
            self.set(session, choice::choose("mode", mode, &choice::modes(answer))?).await?;
        } else if let Some(mode) = &settings.asking_mode
            && let Ok(choice) = choice::choose("mode", mode, &choice::modes(answer))
        {
            self.set(session, choice).await?;
        }
        let mut now = None;
        if let Some(model) = &settings.model {
            let models = choice::models(answer);
            let there = settings.model_there.as_deref();
            let chosen = choice::choose("model", model, &models);
            let chosen = chosen.or_else(|error| {
                let there = there.and_then(|there| choice::choose("model", there, &models).ok());
                there.ok_or(error)
            })?;
            now = self.set(session, chosen).await?;
        }
        if let Some(level) = &settings.thinking {
            // Which levels there are may depend on the model.
            match choice::thinking(now.as_ref().unwrap_or(answer)) {
                levels if levels.is_empty() => {
                    tracing::warn!(session, level, "the agent offers no choice of its thinking");
                }
                levels => {
                    self.set(session, choice::choose("thinking", level, &levels)?).await?;
                }
            }
        }
        Ok(())
    }

    /// Makes a session available for prompts; `form` is that of a new one.
    pub(super) async fn opened(
        &self,
        session: SessionId,
        form: Option<ToolsForm>,
    ) -> Result<SessionId, HostError> {
        let new = self.as_new(form);
        self.send(HostMsg::Opened { session: session.clone(), is_beside: false, new }).await?;
        Ok(session)
    }

    /// The form of the tools in a session, if it is new and they are offered at all.
    fn as_new(&self, form: Option<ToolsForm>) -> Option<ToolsForm> {
        form.filter(|_| self.shared.settings.tools.is_some())
    }

    /// Makes a choice; returns the answer if it has the options as they are now.
    pub(super) async fn set(
        &self,
        session: &str,
        choice: &Choice,
    ) -> Result<Option<Value>, HostError> {
        let (method, params) = match &choice.how {
            ChoiceRequest::Auth => return Ok(None),
            ChoiceRequest::Mode => {
                ("session/set_mode", json!({ "sessionId": session, "modeId": choice.id }))
            }
            ChoiceRequest::Model => {
                ("session/set_model", json!({ "sessionId": session, "modelId": choice.id }))
            }
            ChoiceRequest::Option(option) => (
                "session/set_config_option",
                json!({ "sessionId": session, "configId": option, "value": choice.id }),
            ),
        };
        let answer = self.step(method, params).await?;
        Ok(Some(answer)
            .filter(|answer| acp::read::<SessionSettings>(answer).config_options.is_array()))
    }

    /// Sends one request of the handshake, with the configured timeout: a silent agent must not
    /// stay `connecting` for ever.
    async fn step(&self, method: &'static str, params: Value) -> Result<Value, HostError> {
        self.step_opening(method, params, None).await
    }

    async fn step_opening(
        &self,
        method: &'static str,
        params: Value,
        opening: Option<Opening>,
    ) -> Result<Value, HostError> {
        let after = self.shared.settings.initialize_timeout;
        let call = self.ask(|reply| HostMsg::Call { method, params, opening, reply });
        let answer = match self.shared.vitals.get() {
            Some(vitals) => vitals.within(after, call).await,
            None => timeout(after, call).await.ok(),
        };
        let answer: Box<RawValue> = answer.ok_or(HostError::Timeout { method, after })??;
        line::read(answer.get().as_bytes()).map_err(|error| HostError::malformed(method, &error))
    }

    /// Adds the setting to configure to an error that demands authentication.
    fn name_auth(&self, error: HostError) -> HostError {
        match error {
            HostError::Refused { method, code: AUTH_REQUIRED, message } => {
                let offered = self.agent_info().map(|agent| choice::list(&agent.auth_methods));
                let offered = offered.unwrap_or_else(|| "none".to_owned());
                let message = format!(
                    "{message}; set `auth_method` to one that the agent offers ({offered}), or log in with its own command"
                );
                HostError::Refused { method, code: AUTH_REQUIRED, message }
            }
            other => other,
        }
    }
}
