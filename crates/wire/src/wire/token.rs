//! Owns the methods about tokens with a scope.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Empty;
use super::method::method;
use super::names::{AgentName, UniqueId};
method! {
    CreateToken = "token_create": TokenCreateParams => NewScopedToken;
    port: Person, web: Never, token: never, waits: false, lasts: false, hub: Port
}

method! {
    ListTokens = "token_list": Empty => Vec<ShownToken>;
    port: Person, web: Never, token: never, waits: false, lasts: false, hub: Port
}

method! {
    RevokeToken = "token_revoke": TokenRevokeParams => ShownToken;
    port: Person, web: Never, token: never, waits: false, lasts: false, hub: Port
}

/// A right that a token gives.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskedRight {
    /// See what the team did and does.
    Read,
    /// Give agents work, and cancel it.
    Prompt,
    /// Decide what waits for a person.
    Decide,
    /// Steer the team.
    Control,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TokenCreateParams {
    /// The person or group that acts by it.
    pub owner: String,
    pub may: Vec<AskedRight>,
    /// The agents that it is for; all if left out.
    #[serde(default)]
    pub agents: Option<Vec<String>>,
    /// Seconds until it expires; never if left out.
    #[schemars(range(min = 1))]
    pub expires_s: Option<u64>,
    /// Whether it ends with the first browser of it that ends its access: nothing else has it, as on a phone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub browser: bool,
}

/// The facts about a token.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ShownToken {
    /// Names the token, and opens nothing.
    pub id: String,
    pub owner: String,
    pub may: Vec<Cow<'static, str>>,
    /// Null: all.
    pub agents: Option<Vec<AgentName<'static>>>,
    pub created_ms: u64,
    /// Null: never.
    pub expires_ms: Option<u64>,
    pub expired: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NewScopedToken {
    /// The token, which is shown this once.
    pub token: String,
    #[serde(flatten)]
    pub shown: ShownToken,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TokenRevokeParams {
    pub id: UniqueId<'static>,
}
