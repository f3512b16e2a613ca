//! Owns the methods that make, list and revoke tokens with a scope.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{MethodCall, Reply, admission, reply};
use crate::journal::EventType;
use crate::model::{AgentId, is_name};
use crate::serve::shared::Shared;
use crate::serve::{Refused, RemoteTeams};
use crate::tokens::{NewToken, ScopedTokens, TokenRight, TokensError};
use crate::wire::{
    CreateToken, Empty, ListTokens, NewScopedToken, RevokeToken, ShownToken, TokenCreateParams,
    TokenRevokeParams,
};

/// Agents of one token.
const MOST_AGENTS: usize = 100;

impl From<TokensError> for Refused {
    fn from(error: TokensError) -> Self {
        let code = match error {
            TokensError::Full => 409,
            TokensError::Unknown(_) => 404,
            TokensError::Random(_) | TokensError::File { .. } => 500,
        };
        Self::new(code, error.to_string())
    }
}

/// Whether a name is that of an agent; a hub's are `HOST/AGENT`.
fn is_agent(name: &str, is_hub: bool) -> bool {
    match name.split_once('/') {
        Some((host, agent)) => is_hub && is_name(host) && is_name(agent),
        None => is_name(name),
    }
}

/// Performs one of these methods where no team does.
pub fn call_about_tokens(
    tokens: &ScopedTokens,
    method: &str,
    params: Value,
) -> Result<Value, Refused> {
    match method {
        // Each name may be one of a hub's.
        "token_create" => {
            parsed(params).and_then(|it| made(tokens, it, true)).and_then(|it| value(&it))
        }
        "token_revoke" => {
            parsed(params).and_then(|it| revoked(tokens, &it)).and_then(|it| value(&it))
        }
        _ => value(&listed(tokens)),
    }
}

fn parsed<T: DeserializeOwned>(params: Value) -> Result<T, Refused> {
    serde_json::from_value(params).map_err(|error| Refused::wrong(format!("params: {error}")))
}

fn made(
    tokens: &ScopedTokens,
    params: TokenCreateParams,
    may_be_hub: bool,
) -> Result<NewScopedToken, Refused> {
    let TokenCreateParams { owner, may, agents, expires_s, browser } = params;
    if !is_name(&owner) {
        return Err(Refused::wrong("`owner` is a name: up to 64 letters, digits, `.`, `_`, `-`"));
    }
    if may.is_empty() {
        return Err(Refused::wrong(
            "`may` is empty: it has `read`, `prompt`, `decide` or `control`",
        ));
    }
    if expires_s == Some(0) {
        return Err(Refused::wrong("`expires_s` is at least 1"));
    }
    let agents = agents.map(|agents| agents.into_iter().collect::<BTreeSet<_>>());
    if let Some(agents) = &agents {
        if agents.is_empty() || agents.len() > MOST_AGENTS {
            return Err(Refused::wrong(format!(
                "`agents` has 1 to {MOST_AGENTS} agents, or is left out"
            )));
        }
        if let Some(odd) = agents.iter().find(|agent| !is_agent(agent, may_be_hub)) {
            let odd = &odd[..odd.floor_char_boundary(100)];
            return Err(Refused::wrong(format!("`agents` has ids of agents, and `{odd}` is none")));
        }
    }
    let new = NewToken {
        owner,
        may: may.into_iter().map(TokenRight::from).collect(),
        agents: agents.map(|agents| agents.into_iter().map(AgentId::new).collect()),
        lasts: expires_s.map(Duration::from_secs),
        is_of_browser: browser,
    };
    let (token, record) = tokens.create(new)?;
    Ok(NewScopedToken { token, shown: ShownToken::from(&record) })
}

fn listed(tokens: &ScopedTokens) -> Vec<ShownToken> {
    tokens.list().iter().map(ShownToken::from).collect()
}

fn value(answer: &impl Serialize) -> Result<Value, Refused> {
    serde_json::to_value(answer).map_err(Refused::fault)
}

fn revoked(tokens: &ScopedTokens, params: &TokenRevokeParams) -> Result<ShownToken, Refused> {
    Ok(ShownToken::from(&tokens.revoke(&params.id)?))
}

pub(super) async fn token_create(
    call: MethodCall<'_>,
    params: TokenCreateParams,
) -> Result<Reply<CreateToken>, Refused> {
    let shared = call.shared;
    let is_hub = shared.sources.elsewhere().is_some_and(RemoteTeams::is_hub);
    let made = made(tokens(shared)?, params, is_hub)?;
    admission::record(shared, EventType::TOKEN_CREATE, &value(&made.shown)?).await;
    reply(&made)
}

pub(super) async fn token_list(
    call: MethodCall<'_>,
    _: Empty,
) -> Result<Reply<ListTokens>, Refused> {
    let shared = call.shared;
    reply(&listed(tokens(shared)?))
}

pub(super) async fn token_revoke(
    call: MethodCall<'_>,
    params: TokenRevokeParams,
) -> Result<Reply<RevokeToken>, Refused> {
    reply(&revoke(call.shared, &params).await?)
}

/// Revokes a token, and records that.
pub(in crate::serve) async fn revoke(
    shared: &Shared,
    params: &TokenRevokeParams,
) -> Result<ShownToken, Refused> {
    let revoked = revoked(tokens(shared)?, params)?;
    let payload = json!({ "token_id": &revoked.id, "owner": &revoked.owner });
    admission::record(shared, EventType::TOKEN_REVOKE, &payload).await;
    Ok(revoked)
}

fn tokens(shared: &Shared) -> Result<&ScopedTokens, Refused> {
    let none = || Refused::new(409, "there are no tokens with a scope here");
    shared.scoped.as_ref().ok_or_else(none)
}
