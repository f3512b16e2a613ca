//! The tasks that the bridge has the server do: each is a few requests, and ends with its outcome.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::api::{Api, ApiError, segment};
use super::rules::{self, MOST_RULES};
use super::shapes::{
    AgentMode, Permission, Providers, ServerConfig, ServerMessage, SessionInfo, SessionStatus,
};

/// Modes and models that are offered; the rest is left out.
const MOST_CHOICES: usize = 500;
/// Newest messages that are read again after events were lost.
const MISSED: usize = 200;

#[derive(Debug)]
pub(super) enum ServerTask {
    Open {
        id: Value,
        how: SessionOpening,
        cwd: String,
    },
    List {
        id: Value,
        cwd: String,
    },
    Prompt {
        session: String,
        cwd: String,
        turn: u64,
        body: Value,
    },
    Abort {
        session: String,
        cwd: String,
    },
    Reply {
        cwd: String,
        permission: String,
        body: Value,
    },
    /// Reads the news that a session missed, after a while.
    Check {
        session: String,
        cwd: String,
        after: Duration,
    },
    /// Reads the call that a request for permission is about, after a while.
    Find {
        cwd: String,
        asked: Permission,
        after: Duration,
    },
    SetMode {
        id: Value,
        session: String,
        cwd: String,
        mode: AgentMode,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum SessionOpening {
    New,
    /// With its messages.
    Load(String),
    Resume(String),
}

#[derive(Debug)]
pub(super) enum TaskOutcome {
    Opened { id: Value, cwd: String, how: SessionOpening, opened: Result<Box<Opened>, ApiError> },
    Listed { id: Value, listed: Result<Vec<SessionInfo>, ApiError> },
    Prompted { session: String, turn: u64, accepted: Result<(), ApiError> },
    Checked { session: String, checked: Result<Box<Checked>, ApiError> },
    Found { asked: Permission, message: Option<Box<ServerMessage>> },
    ModeSet { id: Value, session: String, mode: String, set: Result<(), ApiError> },
    Nothing,
}

/// The modes and models of a folder, the same for all its sessions.
#[derive(Debug)]
pub(super) struct Settings {
    /// The default one first.
    pub(super) modes: Vec<AgentMode>,
    pub(super) models: Vec<OfferedModel>,
    /// The id of the default one.
    pub(super) model: Option<String>,
}

#[derive(Debug)]
pub(super) struct OfferedModel {
    /// Provider and model, with a slash between.
    pub(super) id: String,
    pub(super) name: String,
    /// Tokens of its context; 0: not known.
    pub(super) context: u64,
}

#[derive(Debug)]
pub(super) struct Opened {
    pub(super) session: SessionInfo,
    pub(super) settings: Arc<Settings>,
    pub(super) messages: Vec<ServerMessage>,
}

#[derive(Debug)]
pub(super) struct Checked {
    pub(super) is_busy: bool,
    pub(super) permissions: Vec<Permission>,
    pub(super) messages: Vec<ServerMessage>,
}

impl Api {
    pub(super) async fn perform(self, task: ServerTask) -> TaskOutcome {
        match task {
            ServerTask::Open { id, how, cwd } => {
                let opened = self.open(&how, &cwd).await.map(Box::new);
                TaskOutcome::Opened { id, cwd, how, opened }
            }
            ServerTask::List { id, cwd } => {
                let query = [("roots", "true"), ("limit", "100")];
                let listed = self.get::<Vec<SessionInfo>>("session", &cwd, &query).await;
                TaskOutcome::Listed { id, listed }
            }
            ServerTask::Prompt { session, cwd, turn, body } => {
                let accepted = self.prompt(&session, &cwd, &body).await;
                if matches!(accepted, Err(ApiError::Unreachable(_))) {
                    // It may have begun.
                    let _ = self.abort(&session, &cwd).await;
                }
                TaskOutcome::Prompted { session, turn, accepted }
            }
            ServerTask::Abort { session, cwd } => {
                let aborted = self.abort(&session, &cwd).await;
                self.logged("cannot abort a session", aborted)
            }
            ServerTask::Reply { cwd, permission, body } => {
                let mut replied = self.reply(&permission, &cwd, &body).await;
                if let Err(ApiError::Refused { status: 404, .. }) = replied {
                    // It is settled: with one, the server refuses all that a session asks.
                    replied = Ok(());
                }
                self.logged("cannot answer a request for permission", replied)
            }
            ServerTask::Check { session, cwd, after } => {
                sleep(after).await;
                let checked = self.check(&session, &cwd).await.map(Box::new);
                TaskOutcome::Checked { session, checked }
            }
            ServerTask::Find { cwd, asked, after } => {
                sleep(after).await;
                let message = self.find(&asked, &cwd).await.map(Box::new);
                TaskOutcome::Found { asked, message }
            }
            ServerTask::SetMode { id, session, cwd, mode } => {
                let set = self.add_rules(&session, &cwd, &rules::of_session(&mode)).await;
                TaskOutcome::ModeSet { id, session, mode: mode.name, set }
            }
        }
    }

    #[expect(clippy::unused_self, reason = "reads as the end of a task")]
    fn logged(&self, what: &str, done: Result<(), ApiError>) -> TaskOutcome {
        if let Err(error) = done {
            tracing::warn!(%error, "{what}");
        }
        TaskOutcome::Nothing
    }

    async fn open(&self, how: &SessionOpening, cwd: &str) -> Result<Opened, ApiError> {
        let settings = self.settings(cwd).await?;
        // There is one: else the settings can't be read.
        let rules = settings.modes.first().map(rules::of_session).unwrap_or_default();
        let (id, most) = match how {
            SessionOpening::New => {
                let body = json!({ "permission": rules });
                let session = self.post("session", cwd, &body).await?;
                return Ok(Opened { session, settings: Arc::new(settings), messages: Vec::new() });
            }
            SessionOpening::Load(id) => (id, usize::MAX),
            SessionOpening::Resume(id) => (id, MISSED),
        };
        let session = self.get(&format!("session/{}", segment(id)), cwd, &[]).await?;
        if self.is_busy(id, cwd).await? {
            // Nobody waits for what it does.
            self.abort(id, cwd).await?;
        }
        self.add_rules(id, cwd, &rules).await?;
        let messages = self.messages(id, cwd, most).await?;
        Ok(Opened { session, settings: Arc::new(settings), messages })
    }

    async fn settings(&self, cwd: &str) -> Result<Settings, ApiError> {
        let agents: Vec<AgentMode> = self.get("agent", cwd, &[]).await?;
        let is_offered = |mode: &AgentMode| {
            mode.mode != "subagent"
                && mode.hidden != Some(true)
                && mode.permission.len() <= MOST_RULES
        };
        let agents: Vec<AgentMode> =
            agents.into_iter().filter(is_offered).take(MOST_CHOICES).collect();
        if agents.is_empty() {
            return Err(ApiError::Malformed("it has no agent for a session".to_owned()));
        }
        let Providers { providers, default } = self.get("config/providers", cwd, &[]).await?;
        let config: ServerConfig = self.get("config", cwd, &[]).await?;
        let of_providers = providers.iter().flat_map(|provider| {
            provider.models.iter().map(move |(id, model)| OfferedModel {
                id: format!("{}/{id}", provider.id),
                name: format!("{}: {}", provider.name, model["name"].as_str().unwrap_or(id)),
                context: model["limit"]["context"].as_u64().unwrap_or(0),
            })
        });
        let models: Vec<OfferedModel> = of_providers.take(MOST_CHOICES).collect();
        let by_default = || {
            let (provider, model) = default.iter().next()?;
            Some(format!("{provider}/{}", model.as_str()?))
        };
        let model = config.model.or_else(by_default);
        Ok(Settings { modes: agents, models, model })
    }

    async fn is_busy(&self, session: &str, cwd: &str) -> Result<bool, ApiError> {
        let states: HashMap<String, SessionStatus> = self.get("session/status", cwd, &[]).await?;
        Ok(states.get(session).is_some_and(|state| state.kind != "idle"))
    }

    async fn check(&self, session: &str, cwd: &str) -> Result<Checked, ApiError> {
        // First, so that an idle session has said all in its messages.
        let is_busy = self.is_busy(session, cwd).await?;
        let mut permissions: Vec<Permission> = self.get("permission", cwd, &[]).await?;
        permissions.retain(|asked| asked.session == session);
        let messages = self.messages(session, cwd, MISSED).await?;
        Ok(Checked { is_busy, permissions, messages })
    }

    async fn find(&self, asked: &Permission, cwd: &str) -> Option<ServerMessage> {
        let message = segment(&asked.tool.as_ref()?.message);
        let path = format!("session/{}/message/{message}", segment(&asked.session));
        let found = self.get(&path, cwd, &[]).await;
        found.inspect_err(|error| tracing::warn!(%error, "cannot read a tool call")).ok()
    }
}
