//! Owns the methods that give and revoke credentials of the web.

use super::{MethodCall, Reply, reply};
use crate::model::WebScope;
use crate::serve::web_access::OpenedOnWeb;
use crate::serve::{Caller, Refused};
use crate::wire::{
    MakeWebLink, MakeWebToken, NewWebLink, NewWebToken, RevokeWeb, WebLinkParams, WebRevokeParams,
    WebRevoked, WebTokenParams,
};

pub(super) async fn web_link(
    call: MethodCall<'_>,
    params: WebLinkParams,
) -> Result<Reply<MakeWebLink>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let opens = match caller {
        // What it opened would outlast the request, and the token is another team's.
        Some(Caller::Holder(holder)) if holder.is_visitor() => {
            let message = "a link is given by the team, or the hub, that has the token";
            return Err(Refused::new(403, message));
        }
        Some(Caller::Holder(_)) if params.scope.is_some() => {
            let message = "the link opens what this token opens: leave `scope` out";
            return Err(Refused::new(403, message));
        }
        Some(Caller::Holder(holder)) => OpenedOnWeb::Holder(holder.clone()),
        _ => OpenedOnWeb::Scope(params.scope.map_or(WebScope::Control, WebScope::from)),
    };
    let link = shared.team.web_link(opens).await?;
    reply(&NewWebLink { url: link.url, expires_s: link.lasts.as_secs() })
}

pub(super) async fn web_token(
    call: MethodCall<'_>,
    params: WebTokenParams,
) -> Result<Reply<MakeWebToken>, Refused> {
    let shared = call.shared;
    let made = shared.team.web_token(params.scope.into()).await?;
    reply(&NewWebToken { id: made.id, token: made.token, url: made.url })
}

pub(super) async fn web_revoke(
    call: MethodCall<'_>,
    params: WebRevokeParams,
) -> Result<Reply<RevokeWeb>, Refused> {
    let shared = call.shared;
    reply(&WebRevoked { revoked: shared.team.web_revoke(params.id.map(Into::into)).await? })
}
