//! From a new agent to an open session: `initialize`, `authenticate`, `session/new` (or the last
//! session restored), mode and model. Runs in the caller's task, over the host's mailbox.

mod choice;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::messages::HostMsg;
use super::{HostError, HostHandle};
use crate::model::SessionId;
use crate::model::code;
use choice::{Choice, ChoiceRequest};

const PROTOCOL_VERSION: u64 = 1;
const AUTH_REQUIRED: i64 = code::AUTH_REQUIRED as i64;

/// The agent's own description, from its answer to `initialize`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentInfo {
    pub name: Option<String>,
    pub version: Option<String>,
    /// `session/load` is offered.
    pub load_session: bool,
    /// `session/resume` is offered.
    pub resume_session: bool,
    /// Ids of the authentication methods.
    pub auth_methods: Vec<String>,
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
        match answer["protocolVersion"].as_u64() {
            Some(PROTOCOL_VERSION) => {}
            Some(other) => return Err(HostError::Version(other)),
            None => return Err(HostError::malformed("initialize", &"it has no `protocolVersion`")),
        }
        let methods = choice::auth_methods(&answer);
        // If a run is initialized twice, the first answer is kept.
        let _ = self.shared.agent.set(AgentInfo {
            name: text(&answer["agentInfo"]["name"]),
            version: text(&answer["agentInfo"]["version"]),
            load_session: answer["agentCapabilities"]["loadSession"] == true,
            // An object means that it is offered, null that it is not.
            resume_session: answer["agentCapabilities"]["sessionCapabilities"]["resume"]
                .is_object(),
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
        let settings = &self.shared.settings;
        let params = json!({ "cwd": settings.cwd, "mcpServers": settings.mcp_servers });
        let answer =
            self.step("session/new", params).await.map_err(|error| self.name_auth(error))?;
        let id = match answer["sessionId"].as_str() {
            Some(id) if !id.is_empty() => id,
            _ => return Err(HostError::malformed("session/new", &"it has no `sessionId`")),
        };
        self.configure(id, &answer).await?;
        self.opened(SessionId::new(id)).await
    }

    /// Restores the session of an earlier run if the agent can; otherwise, or on failure, opens a
    /// new one.
    pub async fn restore_session(&self, last: SessionId) -> Result<SessionId, HostError> {
        let method = match self.agent_info() {
            // Preferred: a load replays the whole conversation.
            Some(AgentInfo { resume_session: true, .. }) => "session/resume",
            Some(AgentInfo { load_session: true, .. }) => "session/load",
            _ => return self.new_session().await,
        };
        let settings = &self.shared.settings;
        let params = json!({
            "sessionId": last.as_str(),
            "cwd": settings.cwd,
            "mcpServers": settings.mcp_servers,
        });
        let session = last.as_str();
        let answer = match self.step(method, params).await {
            Ok(answer) => answer,
            Err(error @ HostError::Gone(_)) => return Err(error),
            Err(error) => {
                tracing::warn!(session, %error, "the last session is lost: a new one begins");
                return self.new_session().await;
            }
        };
        match self.configure(session, &answer).await {
            // Some agents do not repeat their options here.
            Err(error @ HostError::NotOffered { .. }) => {
                tracing::warn!(session, %error, "cannot configure the restored session: it keeps its own settings");
            }
            configured => configured?,
        }
        self.opened(last).await
    }

    /// Sets mode and model as configured, from the options in the agent's `answer`.
    async fn configure(&self, session: &str, answer: &Value) -> Result<(), HostError> {
        let settings = &self.shared.settings;
        if let Some(mode) = &settings.mode {
            self.set(session, choice::choose("mode", mode, &choice::modes(answer))?).await?;
        }
        if let Some(model) = &settings.model {
            self.set(session, choice::choose("model", model, &choice::models(answer))?).await?;
        }
        Ok(())
    }

    /// Makes a session available for prompts.
    async fn opened(&self, session: SessionId) -> Result<SessionId, HostError> {
        self.send(HostMsg::Opened { session: session.clone() }).await?;
        Ok(session)
    }

    async fn set(&self, session: &str, choice: &Choice) -> Result<(), HostError> {
        let (method, params) = match &choice.how {
            ChoiceRequest::Auth => return Ok(()),
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
        self.step(method, params).await.map(drop)
    }

    /// Sends one request of the handshake, with the configured timeout: a silent agent must not
    /// stay `connecting` for ever.
    async fn step(&self, method: &'static str, params: Value) -> Result<Value, HostError> {
        let after = self.shared.settings.initialize_timeout;
        let call = self.ask(|reply| HostMsg::Call { method, params, reply });
        let answer = match self.shared.vitals.get() {
            Some(vitals) => vitals.within(after, call).await,
            None => timeout(after, call).await.ok(),
        };
        let answer: Box<RawValue> = answer.ok_or(HostError::Timeout { method, after })??;
        serde_json::from_str(answer.get()).map_err(|error| HostError::malformed(method, &error))
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

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
