//! Owns the methods about what persons opened for the team.

use std::borrow::Cow;

use serde_json::json;

use super::{MethodCall, Reply, admission, reply};
use crate::journal::EventType;
use crate::model::TeamGrant;
use crate::serve::{Refused, rights};
use crate::wire::{Empty, GrantRow, ListGrants, RevokeGrant, RevokeGrantParams};

pub(super) async fn list_grants(
    call: MethodCall<'_>,
    _: Empty,
) -> Result<Reply<ListGrants>, Refused> {
    let grants = call.shared.sources.grants().await;
    let shown = grants.iter().filter(|grant| rights::covers(call.caller, &grant.agent));
    reply(&shown.map(grant_row).collect())
}

pub(super) async fn revoke_grant(
    call: MethodCall<'_>,
    params: RevokeGrantParams,
) -> Result<Reply<RevokeGrant>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let revoked = shared.sources.revoke_grant(params.id.to_string()).await?;
    let payload = json!({
        "grant_id": revoked.id,
        "agent_id": revoked.agent.as_str(),
        "path": &*revoked.path,
        "action": revoked.action.as_str(),
        "match": revoked.pattern.as_deref(),
        "revoked_by": rights::decided_by(caller).to_string(),
    });
    admission::record(shared, EventType::GRANT_REVOKE, &payload).await;
    reply(&grant_row(&revoked))
}

/// A grant as a row of an answer.
pub fn grant_row(grant: &TeamGrant) -> GrantRow<'_> {
    GrantRow {
        id: grant.id.as_str().into(),
        agent_id: grant.agent.as_str().into(),
        path: (&*grant.path).into(),
        action: grant.action.into(),
        pattern: grant.pattern.as_deref().map(Cow::from),
        even_denied: grant.even_denied,
        decided_by: grant.by.to_string().into(),
        granted_ms: grant.granted_ms,
        applies: grant.applies,
        workspace: grant.elsewhere.as_deref().map(Cow::from),
    }
}
