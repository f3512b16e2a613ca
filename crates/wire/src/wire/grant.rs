//! Owns what persons opened for the team, and the methods about it.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::method::method;
use super::names::{AgentName, Decider, TeamId};
use super::{Empty, NameOf};
use crate::model::Action;

method! {
    ListGrants = "list_grants": Empty => Vec<GrantRow<'a>>;
    port: Reader, web: Read, token: Read(Answer), waits: false, lasts: false, hub: All(Joined)
}

method! {
    RevokeGrant = "revoke_grant": RevokeGrantParams => GrantRow<'a>;
    port: Person, web: Control, token: Control(Team), waits: false, lasts: false, hub: One
}

/// A permission that a person gave an agent for the team. It outlasts the team, until it is revoked.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GrantRow<'a> {
    /// Such as `g1`.
    pub id: TeamId<'a>,
    pub agent_id: AgentName<'a>,
    /// The path that was asked for: relative to the workspace, absolute if outside.
    pub path: Cow<'a, str>,
    /// A grant of a write is one of reads, too.
    pub action: NameOf<Action>,
    /// The pattern of all that is allowed; absent: the path alone.
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Cow<'a, str>>,
    /// Only if true: in spite of a matching pattern of `denied`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub even_denied: bool,
    pub decided_by: Decider<'a>,
    pub granted_ms: u64,
    /// Whether it holds now. If not, its agent is none of the configuration's, or its workspace is another one.
    pub applies: bool,
    /// The other workspace, if it is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Cow<'a, str>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RevokeGrantParams {
    pub id: TeamId<'static>,
}
