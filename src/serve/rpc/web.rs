//! Owns the methods that give and revoke credentials of the web.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::json;
use crate::model::WebScope;
use crate::serve::Caller;
use crate::serve::shared::Shared;
use crate::serve::web_access::OpenedOnWeb;
use crate::serve::wire::RpcError;

/// What a credential opens.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AskedScope {
    /// See everything, and change nothing.
    Read,
    /// Also decide what waits for a person.
    Decide,
    /// All that a person may.
    Control,
}

impl From<AskedScope> for WebScope {
    fn from(asked: AskedScope) -> Self {
        match asked {
            AskedScope::Read => Self::Read,
            AskedScope::Decide => Self::Decide,
            AskedScope::Control => Self::Control,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "WebLinkParams")]
pub(in crate::serve) struct WebLinkParams {
    /// `control` if left out. The holder of a token with a scope leaves it out: the link opens what the token
    /// does.
    scope: Option<AskedScope>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct NewWebLink {
    url: String,
    /// Seconds that the link is good, once.
    expires_s: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "WebTokenParams")]
pub(in crate::serve) struct WebTokenParams {
    scope: AskedScope,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct NewWebToken {
    /// Names the token when it is revoked.
    id: String,
    token: String,
    /// The address of the web server; null if it does not run.
    url: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "WebRevokeParams")]
pub(in crate::serve) struct WebRevokeParams {
    /// Only the credential with this id.
    #[serde(default, deserialize_with = "super::name")]
    id: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct WebRevoked {
    /// Credentials and links that are no longer good.
    revoked: usize,
}

pub(super) async fn web_link(
    shared: &Shared,
    caller: Option<&Caller>,
    params: WebLinkParams,
) -> Result<Value, RpcError> {
    let opens = match caller {
        // What it opened would outlast the request, and the token is another team's.
        Some(Caller::Holder(holder)) if holder.is_visitor() => {
            let message = "a link is given by the team, or the hub, that has the token";
            return Err(RpcError::new(403, message));
        }
        Some(Caller::Holder(_)) if params.scope.is_some() => {
            let message = "the link opens what this token opens: leave `scope` out";
            return Err(RpcError::new(403, message));
        }
        Some(Caller::Holder(holder)) => OpenedOnWeb::Holder(holder.clone()),
        _ => OpenedOnWeb::Scope(params.scope.map_or(WebScope::Control, WebScope::from)),
    };
    let link = shared.team.web_link(opens).await?;
    json(&NewWebLink { url: link.url, expires_s: link.lasts.as_secs() })
}

pub(super) async fn web_token(shared: &Shared, params: WebTokenParams) -> Result<Value, RpcError> {
    let made = shared.team.web_token(params.scope.into()).await?;
    json(&NewWebToken { id: made.id, token: made.token, url: made.url })
}

pub(super) async fn web_revoke(
    shared: &Shared,
    params: WebRevokeParams,
) -> Result<Value, RpcError> {
    json(&WebRevoked { revoked: shared.team.web_revoke(params.id).await? })
}
