//! Owns the methods that steer the team.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::io::DuplexStream;
use tokio::sync::watch;

use super::object::Object;
use super::{json, wrong};
use crate::client_host::Said;
use crate::mcp::text_pages;
use crate::model::{AgentId, BlockedId, BlockedStatus, Order, SessionId, SessionKey, Via};
use crate::routing::{self, Decision, ResolveError};
use crate::serve::progress::Progress;
use crate::serve::shared::Shared;
use crate::serve::wire::{self, RpcError};
use crate::serve::{self, Caller, owned, rights};

/// Longest lifetime of a grant: 100 years. Beyond that clocks overflow.
const LONGEST_TTL_S: f64 = 100.0 * 366.0 * 86_400.0;

/// Params that name one agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AgentParams")]
pub(in crate::serve) struct Agent {
    agent_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AttachParams")]
pub(in crate::serve) struct Attach {
    /// The team as one agent if left out.
    agent_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "CancelParams")]
pub(in crate::serve) struct Cancel {
    agent_id: String,
    /// All sessions of the agent if left out.
    #[serde(default, deserialize_with = "super::name")]
    session_id: Option<String>,
    /// Also withdraw queued prompts: true if left out.
    queued: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "PromptParams")]
pub(in crate::serve) struct Prompt {
    agent_id: String,
    /// The agent's default session if left out.
    #[serde(default, deserialize_with = "super::name")]
    session_id: Option<String>,
    /// Short for one text block.
    text: Option<String>,
    /// ACP content blocks; either these or `text`.
    blocks: Option<Vec<Map<String, Value>>>,
    /// Send the turn's progress, in `rpc_progress` lines.
    stream: Option<bool>,
}

/// A turn that ended.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct Prompted {
    session_id: String,
    /// A stop reason of ACP.
    stop_reason: String,
    /// Why it ended in an error, as in its `turn` line.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The agent's message chunks, joined.
    text: String,
    /// Accesses denied during the turn, for a prompt made with the orchestrator's token.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<Vec<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AddAgentParams")]
pub(in crate::serve) struct AddAgent {
    /// An `[[agents]]` table of the configuration, as JSON.
    config: Object,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct Cancelled {
    /// Running turns that are asked to end.
    turns: usize,
    /// Queued prompts that were withdrawn.
    prompts: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct NewSession {
    session_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ResolveParams")]
pub(in crate::serve) struct Resolve {
    id: String,
    /// Only if the access still is as `show_blocked` showed it with this `version`.
    #[serde(default, deserialize_with = "super::name")]
    version: Option<String>,
    #[serde(flatten)]
    verdict: DecisionParam,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "snake_case")]
enum DecisionParam {
    /// Refuse it.
    Deny {
        /// Sent to the agent.
        message: Option<String>,
    },
    /// Allow it; after a denied try, allow the next.
    Allow {
        #[serde(default)]
        scope: Option<Scope>,
        /// Seconds that the grant lasts at most.
        ttl_s: Option<f64>,
        /// Also where a pattern of `denied` matches; requires the control token.
        #[serde(default)]
        even_denied: bool,
    },
    /// Answer with the result of the read.
    Answer {
        content: String,
        /// As for `allow`.
        #[serde(default)]
        even_denied: bool,
    },
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Scope {
    /// This access.
    Once,
    /// Exactly this path and action, until the session ends.
    Session,
}

pub(super) async fn prompt(
    shared: &Shared,
    caller: Option<&Caller>,
    params: Prompt,
    progress: &Progress,
) -> Result<Value, RpcError> {
    let blocks = match (params.text, params.blocks) {
        (Some(text), None) => vec![json!({ "type": "text", "text": text })],
        (None, Some(blocks)) if !blocks.is_empty() => {
            blocks.into_iter().map(Value::Object).collect()
        }
        _ => return Err(wrong("either `text` or `blocks`, not empty, must be given")),
    };
    let by_orchestrator = match caller {
        Some(Caller::Lead(_)) => true,
        Some(Caller::Holder(holder)) => {
            let asks = holder.agent_elsewhere();
            asks.is_some() && asks == shared.sources.lead_elsewhere().as_ref()
        }
        _ => false,
    };
    let (said, saying) = watch::channel(Said::default());
    let prompt = serve::Prompt {
        agent: AgentId::new(params.agent_id),
        session: params.session_id.map(SessionId::new),
        blocks,
        by_orchestrator,
        said,
    };
    let turn = shared.team.prompt(prompt);
    let outcome = match params.stream {
        Some(true) => progress.show(saying, turn).await?,
        _ => turn.await?,
    };
    let ids = || outcome.blocked.iter().map(ToString::to_string).collect();
    json(&Prompted {
        blocked: by_orchestrator.then(ids),
        session_id: outcome.session.to_string(),
        stop_reason: outcome.stop_reason,
        reason: outcome.reason.map(|reason| reason.to_string()),
        text: outcome.text,
    })
}

pub(super) async fn cancel(shared: &Shared, params: Cancel) -> Result<Value, RpcError> {
    let session = params.session_id.map(SessionId::new);
    let queued = params.queued.unwrap_or(true);
    let cancelled = shared.team.cancel(AgentId::new(params.agent_id), session, queued).await?;
    json(&Cancelled { turns: cancelled.turns, prompts: cancelled.prompts })
}

pub(super) async fn new_session(
    shared: &Shared,
    caller: Option<&Caller>,
    params: Agent,
) -> Result<Value, RpcError> {
    let agent = AgentId::new(params.agent_id);
    let session = shared.team.new_session(agent.clone()).await?;
    owned::note_session(shared, caller, &SessionKey::new(agent, session.clone())).await;
    json(&NewSession { session_id: session.to_string() })
}

/// None: the client attaches to the team as a whole.
pub(super) async fn attach(
    shared: &Shared,
    params: Attach,
) -> Result<Option<DuplexStream>, RpcError> {
    let Some(agent) = params.agent_id else { return Ok(None) };
    Ok(Some(shared.team.attach(AgentId::new(agent)).await?))
}

pub(super) async fn resolve_blocked(
    shared: &Shared,
    caller: Option<&Caller>,
    params: Resolve,
) -> Result<Value, RpcError> {
    let by = rights::decider(caller, params.verdict.is_even_denied());
    let (id, decision) = (BlockedId::new(params.id), params.verdict.try_into()?);
    if let Decision::Answer { content } = &decision
        && text_pages(content).len() > 1
        && is_request(shared, &id).await
    {
        return Err(wrong(
            "the agent asked by a tool, whose result has no room for so much `content`: allow the \
             access instead",
        ));
    }
    let access = match params.version {
        Some(version) => shared.sources.resolve_shown(id, decision, by, version).await?,
        None => shared.sources.resolve(id, decision, by).await?,
    };
    json(&wire::Blocked::from(&access))
}

/// Whether an agent waits for the decision in a call of `request_access`.
async fn is_request(shared: &Shared, id: &BlockedId) -> bool {
    let pending = shared.sources.blocked(Some(BlockedStatus::Pending)).await;
    pending.iter().any(|access| access.id == *id && access.via == Via::Request)
}

pub(super) async fn order(shared: &Shared, order: Order, params: Agent) -> Result<Value, RpcError> {
    let status = shared.team.order(AgentId::new(params.agent_id), order).await?;
    json(&wire::Agent::from(&status))
}

pub(super) async fn add_agent(shared: &Shared, params: AddAgent) -> Result<Value, RpcError> {
    let status = shared.team.add_agent(params.config.0).await?;
    json(&wire::Agent::from(&status))
}

pub(super) async fn remove_agent(shared: &Shared, params: Agent) -> Result<Value, RpcError> {
    let status = shared.team.remove_agent(AgentId::new(params.agent_id)).await?;
    json(&wire::Agent::from(&status))
}

pub(super) async fn reload(shared: &Shared) -> Result<Value, RpcError> {
    json(&shared.team.reload().await?)
}

impl DecisionParam {
    fn is_even_denied(&self) -> bool {
        match self {
            Self::Deny { .. } => false,
            Self::Allow { even_denied, .. } | Self::Answer { even_denied, .. } => *even_denied,
        }
    }
}

impl TryFrom<DecisionParam> for Decision {
    type Error = RpcError;

    fn try_from(verdict: DecisionParam) -> Result<Self, RpcError> {
        Ok(match verdict {
            DecisionParam::Deny { message } => Self::Deny { message },
            DecisionParam::Answer { content, .. } => Self::Answer { content },
            DecisionParam::Allow { scope, ttl_s, .. } => Self::Allow {
                scope: match scope {
                    None | Some(Scope::Once) => routing::Scope::Once,
                    Some(Scope::Session) => routing::Scope::Session,
                },
                ttl: match ttl_s {
                    None => None,
                    Some(seconds) if seconds > 0.0 && seconds <= LONGEST_TTL_S => {
                        Some(Duration::from_secs_f64(seconds))
                    }
                    Some(_) => {
                        return Err(wrong("`ttl_s` must be more than 0 and at most 100 years"));
                    }
                },
            },
        })
    }
}

impl From<ResolveError> for RpcError {
    fn from(error: ResolveError) -> Self {
        let code = match error {
            ResolveError::Unknown(_) => 404,
            ResolveError::Settled { .. } | ResolveError::Changed(_) | ResolveError::Stopping => 409,
            ResolveError::NotAnswerable | ResolveError::Sweep(_) => 400,
            ResolveError::NotGrantable(_)
            | ResolveError::Own { .. }
            | ResolveError::ForPerson { .. }
            | ResolveError::DeniedBy { .. } => 403,
        };
        Self::new(code, error.to_string())
    }
}
