//! The methods of the port: params → a call on the team or its sources → a result. Knows neither
//! connections nor order.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::request::Fields;
use super::server::Shared;
use super::wire::{self, RpcError};
use super::{Caller, Order, Prompt, Refused};
use crate::model::{AgentId, BlockedId, BlockedStatus, SessionId};
use crate::routing::{Decision, ResolveError, Scope};

/// Every method by its name on the wire, and whether it needs a token.
pub(super) const METHODS: [(&str, Method, bool); 9] = [
    ("list_agents", Method::ListAgents, false),
    ("list_blocked", Method::ListBlocked, false),
    ("prompt", Method::Prompt, true),
    ("cancel", Method::Cancel, true),
    ("new_session", Method::NewSession, true),
    ("resolve_blocked", Method::ResolveBlocked, true),
    ("start_agent", Method::Order(Order::Start), true),
    ("stop_agent", Method::Order(Order::Stop), true),
    ("restart_agent", Method::Order(Order::Restart), true),
];

#[derive(Clone, Copy, Debug)]
pub(super) enum Method {
    ListAgents,
    ListBlocked,
    Prompt,
    Cancel,
    NewSession,
    ResolveBlocked,
    Order(Order),
}

/// Longest time that a grant may be given for: 100 years, past which clocks overflow.
const LONGEST_TTL_S: f64 = 100.0 * 366.0 * 86_400.0;

pub(super) async fn call(
    shared: &Shared,
    caller: Option<Caller>,
    method: &str,
    params: Option<&RawValue>,
) -> Result<Value, RpcError> {
    let Some((name, method, guarded)) = METHODS.into_iter().find(|(name, ..)| *name == method)
    else {
        let known = METHODS.map(|(name, ..)| name).join(", ");
        return Err(RpcError::new(
            404,
            format!("there is no method `{method}`; there are {known}"),
        ));
    };
    if guarded && caller.is_none() {
        return Err(RpcError::new(401, format!("`{name}` needs `auth` first")));
    }
    let params = match params {
        Some(params) => {
            Fields::parse(params.get()).map_err(|error| wrong(format!("params: {error}")))?
        }
        None => Fields::default(),
    };
    match method {
        Method::ListAgents => {
            let agents = shared.team.agents();
            json(&agents.iter().map(wire::Agent::from).collect::<Vec<_>>())
        }
        Method::ListBlocked => {
            let status = params.optional::<String>("status").map_err(wrong)?;
            let list =
                shared.sources.blocked(status.map(|name| status_named(&name)).transpose()?).await;
            json(&list.iter().map(wire::Blocked::from).collect::<Vec<_>>())
        }
        Method::Prompt => prompt(shared, caller, &params).await,
        Method::Cancel => {
            shared.team.cancel(agent(&params)?, session(&params)?).await?;
            Ok(json!({}))
        }
        Method::NewSession => {
            let session = shared.team.new_session(agent(&params)?).await?;
            Ok(json!({ "session_id": session.as_str() }))
        }
        Method::ResolveBlocked => {
            let id = BlockedId::new(params.required::<String>("id").map_err(wrong)?);
            let access = shared.sources.resolve(id, decision(&params).map_err(wrong)?).await?;
            json(&wire::Blocked::from(&access))
        }
        Method::Order(order) => {
            let status = shared.team.order(agent(&params)?, order).await?;
            json(&wire::Agent::from(&status))
        }
    }
}

async fn prompt(
    shared: &Shared,
    caller: Option<Caller>,
    params: &Fields<'_>,
) -> Result<Value, RpcError> {
    let text = params.optional::<String>("text").map_err(wrong)?;
    let blocks = params.optional::<Vec<Map<String, Value>>>("blocks").map_err(wrong)?;
    let blocks = match (text, blocks) {
        (Some(text), None) => vec![json!({ "type": "text", "text": text })],
        (None, Some(blocks)) if !blocks.is_empty() => {
            blocks.into_iter().map(Value::Object).collect()
        }
        _ => return Err(wrong("either `text` or `blocks`, not empty, must be given")),
    };
    let by_orchestrator = caller == Some(Caller::Orchestrator);
    let prompt =
        Prompt { agent: agent(params)?, session: session(params)?, blocks, by_orchestrator };
    let outcome = shared.team.prompt(prompt).await?;
    let mut result = json!({
        "session_id": outcome.session.as_str(),
        "stop_reason": outcome.stop_reason,
        "text": outcome.text,
    });
    if by_orchestrator {
        let ids: Vec<_> = outcome.blocked.iter().map(BlockedId::as_str).collect();
        result["blocked"] = json!(ids);
    }
    Ok(result)
}

fn decision(params: &Fields<'_>) -> Result<Decision, String> {
    match params.required::<String>("decision")?.as_str() {
        "deny" => Ok(Decision::Deny { message: params.optional("message")? }),
        "allow" => {
            let scope = match params.optional::<String>("scope")?.as_deref() {
                None | Some("once") => Scope::Once,
                Some("session") => Scope::Session,
                Some(other) => {
                    return Err(format!("`scope` is `once` or `session`, not `{other}`"));
                }
            };
            let ttl = match params.optional::<f64>("ttl_s")? {
                None => None,
                Some(seconds) if seconds > 0.0 && seconds <= LONGEST_TTL_S => {
                    Some(Duration::from_secs_f64(seconds))
                }
                Some(_) => {
                    return Err("`ttl_s` must be more than 0 and at most 100 years".to_owned());
                }
            };
            Ok(Decision::Allow { scope, ttl })
        }
        "answer" => Ok(Decision::Answer { content: params.required("content")? }),
        other => Err(format!("`decision` is `allow`, `deny` or `answer`, not `{other}`")),
    }
}

fn agent(params: &Fields<'_>) -> Result<AgentId, RpcError> {
    Ok(AgentId::new(params.required::<String>("agent_id").map_err(wrong)?))
}

fn session(params: &Fields<'_>) -> Result<Option<SessionId>, RpcError> {
    Ok(params.name("session_id").map_err(wrong)?.map(SessionId::new))
}

fn status_named(name: &str) -> Result<BlockedStatus, RpcError> {
    const ALL: [BlockedStatus; 6] = [
        BlockedStatus::Denied,
        BlockedStatus::Pending,
        BlockedStatus::Allowed,
        BlockedStatus::Answered,
        BlockedStatus::Expired,
        BlockedStatus::Observed,
    ];
    ALL.into_iter().find(|status| status.as_str() == name).ok_or_else(|| {
        let known = ALL.map(BlockedStatus::as_str).join("`, `");
        wrong(format!("`status` is one of `{known}`, not `{name}`"))
    })
}

fn wrong(message: impl Into<String>) -> RpcError {
    RpcError::new(400, message)
}

fn json(value: &impl Serialize) -> Result<Value, RpcError> {
    serde_json::to_value(value).map_err(|error| RpcError::new(500, error.to_string()))
}

impl From<Refused> for RpcError {
    fn from(refused: Refused) -> Self {
        Self::new(refused.code, refused.message)
    }
}

impl From<ResolveError> for RpcError {
    fn from(error: ResolveError) -> Self {
        let code = match error {
            ResolveError::Unknown(_) => 404,
            ResolveError::Settled { .. } | ResolveError::Stopping => 409,
            ResolveError::NotAnswerable => 400,
            ResolveError::NotGrantable(_) => 403,
        };
        Self::new(code, error.to_string())
    }
}
