//! Owns the methods that steer the team.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::watch;

use super::{json, wrong};
use crate::client_host::Said;
use crate::mcp::text_pages;
use crate::model::{AgentId, BlockedId, BlockedStatus, Order, SessionId, SessionKey, Via};
use crate::routing::{self, Decision, ResolveError};
use crate::serve::progress::Progress;
use crate::serve::shared::Shared;
use crate::serve::{self, Caller, owned, rights};
use crate::wire::{
    self, AddAgentParams, AgentParams, AttachParams, CancelParams, Cancelled, DecisionParam,
    GrantScope, NewSession, PromptParams, Prompted, ResolveParams, RpcError,
};

/// Longest lifetime of a grant: 100 years. Beyond that clocks overflow.
const LONGEST_TTL_S: f64 = 100.0 * 366.0 * 86_400.0;

pub(super) async fn prompt(
    shared: &Shared,
    caller: Option<&Caller>,
    params: PromptParams,
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

pub(super) async fn cancel(shared: &Shared, params: CancelParams) -> Result<Value, RpcError> {
    let session = params.session_id.map(SessionId::new);
    let queued = params.queued.unwrap_or(true);
    let cancelled = shared.team.cancel(AgentId::new(params.agent_id), session, queued).await?;
    json(&Cancelled { turns: cancelled.turns, prompts: cancelled.prompts })
}

pub(super) async fn new_session(
    shared: &Shared,
    caller: Option<&Caller>,
    params: AgentParams,
) -> Result<Value, RpcError> {
    let agent = AgentId::new(params.agent_id);
    let session = shared.team.new_session(agent.clone()).await?;
    owned::note_session(shared, caller, &SessionKey::new(agent, session.clone())).await;
    json(&NewSession { session_id: session.to_string() })
}

/// None: the client attaches to the team as a whole.
pub(super) async fn attach(
    shared: &Shared,
    params: AttachParams,
) -> Result<Option<DuplexStream>, RpcError> {
    let Some(agent) = params.agent_id else { return Ok(None) };
    Ok(Some(shared.team.attach(AgentId::new(agent)).await?))
}

pub(super) async fn resolve_blocked(
    shared: &Shared,
    caller: Option<&Caller>,
    params: ResolveParams,
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

pub(super) async fn order(
    shared: &Shared,
    order: Order,
    params: AgentParams,
) -> Result<Value, RpcError> {
    let status = shared.team.order(AgentId::new(params.agent_id), order).await?;
    json(&wire::Agent::from(&status))
}

pub(super) async fn add_agent(shared: &Shared, params: AddAgentParams) -> Result<Value, RpcError> {
    let status = shared.team.add_agent(params.config.0).await?;
    json(&wire::Agent::from(&status))
}

pub(super) async fn remove_agent(shared: &Shared, params: AgentParams) -> Result<Value, RpcError> {
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
                    None | Some(GrantScope::Once) => routing::Scope::Once,
                    Some(GrantScope::Session) => routing::Scope::Session,
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
