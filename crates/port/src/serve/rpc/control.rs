//! Owns the methods that steer the team.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::watch;

use super::{MethodCall, Reply, reply};
use crate::client_host::Said;
use crate::mcp::text_pages;
use crate::model::{
    AgentId, BlockedId, BlockedStatus, GrantSpan, Order, SessionId, SessionKey, Via,
};
use crate::routing::{Decision, ResolveError};
use crate::runs::RefusedAccess;
use crate::serve::shared::Shared;
use crate::serve::{self, Caller, Refused, ownership, rights};
use crate::wire::{
    self, AddAgent, AddAgentParams, AgentParams, AttachParams, Cancel, CancelParams, Cancelled,
    DecisionParam, Empty, GrantScope, Method, NewSession, OpenedSession, PromptAgent, PromptParams,
    Prompted, Reload, RemoveAgent, ResolveBlocked, ResolveParams, RestartAgent, StartAgent,
    StopAgent,
};

/// Longest lifetime of a grant: 100 years. Beyond that clocks overflow.
const LONGEST_TTL_S: f64 = 100.0 * 366.0 * 86_400.0;

pub(super) async fn prompt(
    call: MethodCall<'_>,
    params: PromptParams,
) -> Result<Reply<PromptAgent>, Refused> {
    let MethodCall { shared, caller, progress } = call;
    let blocks = match (params.text, params.blocks) {
        (Some(text), None) => vec![json!({ "type": "text", "text": text })],
        (None, Some(blocks)) if !blocks.is_empty() => {
            blocks.into_iter().map(Value::Object).collect()
        }
        _ => return Err(Refused::wrong("either `text` or `blocks`, not empty, must be given")),
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
    let agent = AgentId::new(params.agent_id);
    let may_read = caller.is_some_and(|caller| rights::opens(caller, &agent));
    let prompt = serve::Prompt {
        agent,
        session: params.session_id.map(SessionId::new),
        blocks,
        by_orchestrator,
        by: Some(rights::decided_by(caller)),
        said,
    };
    let turn = shared.team.prompt(prompt);
    let outcome = match params.stream {
        Some(true) => progress.show(saying, turn).await?,
        _ => turn.await?,
    };
    let ids = || outcome.blocked.iter().map(|id| id.to_string().into()).collect();
    let refused = may_read.then(|| RefusedAccess::of_turn(&outcome.refused));
    reply(&Prompted {
        blocked: by_orchestrator.then(ids),
        refused: refused.unwrap_or_default(),
        session_id: outcome.session.to_string(),
        stop_reason: outcome.stop_reason,
        reason: outcome.reason.map(|reason| reason.to_string()),
        text: outcome.text,
    })
}

pub(super) async fn cancel(
    call: MethodCall<'_>,
    params: CancelParams,
) -> Result<Reply<Cancel>, Refused> {
    let shared = call.shared;
    let session = params.session_id.map(SessionId::new);
    let queued = params.queued.unwrap_or(true);
    let cancelled = shared.team.cancel(AgentId::new(params.agent_id), session, queued).await?;
    reply(&Cancelled { turns: cancelled.turns, prompts: cancelled.prompts })
}

pub(super) async fn new_session(
    call: MethodCall<'_>,
    params: AgentParams,
) -> Result<Reply<NewSession>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let agent = AgentId::new(params.agent_id);
    let session = shared.team.new_session(agent.clone()).await?;
    ownership::note_session(shared, caller, &SessionKey::new(agent, session.clone())).await;
    reply(&OpenedSession { session_id: session.to_string() })
}

/// None: the client attaches to the team as a whole.
pub(super) async fn attach(
    shared: &Shared,
    params: AttachParams,
) -> Result<Option<DuplexStream>, Refused> {
    let Some(agent) = params.agent_id else { return Ok(None) };
    Ok(Some(shared.team.attach(AgentId::new(agent)).await?))
}

pub(super) async fn resolve_blocked(
    call: MethodCall<'_>,
    params: ResolveParams,
) -> Result<Reply<ResolveBlocked>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let by = rights::decider(caller, params.verdict.is_even_denied());
    let (id, decision) = (BlockedId::new(params.id), decision(params.verdict)?);
    if let Decision::Answer { content } = &decision
        && text_pages(content).len() > 1
        && is_request(shared, &id).await
    {
        return Err(Refused::wrong(
            "the agent asked by a tool, whose result has no room for so much `content`: allow the \
             access instead",
        ));
    }
    let access = match params.version {
        Some(version) => shared.sources.resolve_shown(id, decision, by, version).await?,
        None => shared.sources.resolve(id, decision, by).await?,
    };
    reply(&wire::Blocked::from(&access))
}

/// Whether an agent waits for the decision in a call of `request_access`.
async fn is_request(shared: &Shared, id: &BlockedId) -> bool {
    let pending = shared.sources.blocked(Some(BlockedStatus::Pending)).await;
    pending.iter().any(|access| access.id == *id && access.via == Via::Request)
}

pub(super) async fn start_agent(
    call: MethodCall<'_>,
    params: AgentParams,
) -> Result<Reply<StartAgent>, Refused> {
    order(call, Order::Start, params).await
}

pub(super) async fn stop_agent(
    call: MethodCall<'_>,
    params: AgentParams,
) -> Result<Reply<StopAgent>, Refused> {
    order(call, Order::Stop, params).await
}

pub(super) async fn restart_agent(
    call: MethodCall<'_>,
    params: AgentParams,
) -> Result<Reply<RestartAgent>, Refused> {
    order(call, Order::Restart, params).await
}

async fn order<M>(
    call: MethodCall<'_>,
    order: Order,
    params: AgentParams,
) -> Result<Reply<M>, Refused>
where
    M: for<'a> Method<Result<'a> = wire::Agent<'a>>,
{
    let status = call.shared.team.order(AgentId::new(params.agent_id), order).await?;
    reply(&wire::Agent::from(&status))
}

/// Refuses: the reader calls [`attach`] itself, unless other requests are running.
pub(super) async fn attach_too_late(
    _: MethodCall<'_>,
    _: AttachParams,
) -> Result<Reply<wire::Attach>, Refused> {
    Err(Refused::new(
        409,
        "`attach` takes the whole connection, and other requests of it are under way",
    ))
}

pub(super) async fn add_agent(
    call: MethodCall<'_>,
    params: AddAgentParams,
) -> Result<Reply<AddAgent>, Refused> {
    let shared = call.shared;
    let status = shared.team.add_agent(params.config.0).await?;
    reply(&wire::Agent::from(&status))
}

pub(super) async fn remove_agent(
    call: MethodCall<'_>,
    params: AgentParams,
) -> Result<Reply<RemoveAgent>, Refused> {
    let shared = call.shared;
    let status = shared.team.remove_agent(AgentId::new(params.agent_id)).await?;
    reply(&wire::Agent::from(&status))
}

pub(super) async fn reload(call: MethodCall<'_>, _: Empty) -> Result<Reply<Reload>, Refused> {
    let shared = call.shared;
    reply(&shared.team.reload().await?)
}

fn decision(verdict: DecisionParam) -> Result<Decision, Refused> {
    Ok(match verdict {
        DecisionParam::Deny { message } => Decision::Deny { message },
        DecisionParam::Answer { content, .. } => Decision::Answer { content },
        DecisionParam::Allow { scope, ttl_s, pattern, tell, .. } => {
            let scope = match scope {
                None | Some(GrantScope::Once) => GrantSpan::Once,
                Some(GrantScope::Session) => GrantSpan::Session,
                Some(GrantScope::Team) => GrantSpan::Team,
            };
            let pattern = pattern.map(Arc::from);
            let ttl = match ttl_s {
                None => None,
                Some(seconds) if seconds > 0.0 && seconds <= LONGEST_TTL_S => {
                    Some(Duration::from_secs_f64(seconds))
                }
                Some(_) => {
                    return Err(Refused::wrong(
                        "`ttl_s` must be more than 0 and at most 100 years",
                    ));
                }
            };
            if tell {
                Decision::Tell { scope, ttl, pattern }
            } else {
                Decision::Allow { scope, ttl, pattern }
            }
        }
    })
}

impl From<ResolveError> for Refused {
    fn from(error: ResolveError) -> Self {
        let code = match error {
            ResolveError::Unknown(_) | ResolveError::UnknownGrant(_) => 404,
            ResolveError::Settled { .. }
            | ResolveError::TooLate { .. }
            | ResolveError::Changed(_)
            | ResolveError::NoTeam
            | ResolveError::TooManyGrants(_)
            | ResolveError::Stopping => 409,
            ResolveError::NotAnswerable
            | ResolveError::Sweep(_)
            | ResolveError::Pattern(_)
            | ResolveError::PatternOfOther { .. }
            | ResolveError::TeamForTime
            | ResolveError::TeamForSearch => 400,
            ResolveError::NotKept(_) => 500,
            ResolveError::NotGrantable(_)
            | ResolveError::Own { .. }
            | ResolveError::ForPerson { .. }
            | ResolveError::PathAlone(_)
            | ResolveError::TeamByAgent
            | ResolveError::DeniedBy { .. } => 403,
        };
        Self::new(code, error.to_string())
    }
}
