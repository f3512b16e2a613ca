//! Owns the methods that give and revoke credentials of the web.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::method::method;
use super::names::UniqueId;
method! {
    MakeWebLink = "web_link": WebLinkParams => NewWebLink;
    port: Person, web: Never, token: Read(Token), waits: false, lasts: false, hub: Port
}

method! {
    MakeWebToken = "web_token": WebTokenParams => NewWebToken;
    port: Person, web: Never, token: never, waits: false, lasts: false, hub: Port
}

method! {
    RevokeWeb = "web_revoke": WebRevokeParams => WebRevoked;
    port: Person, web: Never, token: never, waits: false, lasts: false, hub: Port
}

/// The scope that a credential opens.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskedScope {
    /// See everything, and change nothing.
    Read,
    /// Also decide what waits for a person.
    Decide,
    /// All that a person may.
    Control,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WebLinkParams {
    /// `control` if left out. The holder of a token with a scope leaves it out: the link opens what the token
    /// does.
    pub scope: Option<AskedScope>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NewWebLink {
    pub url: String,
    /// Seconds that the link is good, once.
    pub expires_s: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WebTokenParams {
    pub scope: AskedScope,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NewWebToken {
    /// Names the token when it is revoked.
    pub id: String,
    pub token: String,
    /// The address of the web server; null if it does not run.
    pub url: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WebRevokeParams {
    /// Only the credential with this id.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub id: Option<UniqueId<'static>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WebRevoked {
    /// Credentials and links that are no longer good.
    pub revoked: usize,
}
