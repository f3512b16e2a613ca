//! Owns the methods of the registry of sessions.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::NameOf;
use super::method::method;
use super::names::AgentName;
use crate::model::SessionMode;

method! {
    ListSessions = "list_sessions": ListSessionsParams => Vec<Listed<'a>>;
    port: Anyone, web: Read, token: Read(Named("agent_id")), waits: false, lasts: false, hub: All(Joined)
}

method! {
    CreateSession = "create_session": CreateSessionParams => SessionState<'a>;
    port: Register, web: Control, token: Control(Named("agent_id")), waits: false, lasts: false, hub: One
}

method! {
    CloseSession = "close_session": SessionKey => Closed;
    port: Register, web: Control, token: Control(Named("agent_id")), waits: false, lasts: false, hub: One
}

method! {
    SetActiveSession = "set_active_session": SessionKey => Active;
    port: Register, web: Control, token: Control(Named("agent_id")), waits: false, lasts: false, hub: One
}

method! {
    GetSessionState = "get_session_state": SessionKey => SessionState<'a>;
    port: Anyone, web: Read, token: Read(Named("agent_id")), waits: false, lasts: false, hub: One
}

method! {
    SetOrchestratorProviders = "set_orchestrator_providers": SetProvidersParams => SessionState<'a>;
    port: Register, web: Control, token: Control(Named("agent_id")), waits: false, lasts: false, hub: One
}

method! {
    AddContextItems = "add_context_items": AddContextParams => SessionState<'a>;
    port: Register, web: Control, token: Control(Named("agent_id")), waits: false, lasts: false, hub: One
}

/// JSON that is passed on as it is.
type Raw = Box<RawValue>;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListSessionsParams {
    /// Only sessions of this agent.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub agent_id: Option<AgentName<'static>>,
}

/// Params that name one session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionKey {
    #[schemars(length(min = 1))]
    pub agent_id: AgentName<'static>,
    #[schemars(length(min = 1))]
    pub session_id: String,
}

/// Fields that are left out or null stay unchanged.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CreateSessionParams {
    #[schemars(length(min = 1))]
    pub agent_id: AgentName<'static>,
    #[schemars(length(min = 1))]
    pub session_id: String,
    pub mode: Mode,
    pub model: Option<Model>,
    pub summary: Option<String>,
    #[schemars(with = "Option<Vec<Value>>")]
    pub history: Option<Vec<Raw>>,
    #[schemars(with = "Option<Vec<Value>>")]
    pub context: Option<Vec<Raw>>,
    /// If not empty, the mode is `orchestrator`.
    pub providers: Option<Vec<SessionKey>>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    SingleAgent,
    Orchestrator,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Model {
    pub model_id: String,
    /// Display name; none if left out.
    pub name: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SetProvidersParams {
    #[schemars(length(min = 1))]
    pub agent_id: AgentName<'static>,
    #[schemars(length(min = 1))]
    pub session_id: String,
    /// The mode becomes `orchestrator`, even if this is empty.
    pub providers: Vec<SessionKey>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AddContextParams {
    #[schemars(length(min = 1))]
    pub agent_id: AgentName<'static>,
    #[schemars(length(min = 1))]
    pub session_id: String,
    /// Appended to the existing ones.
    #[schemars(with = "Vec<Value>")]
    pub items: Vec<Raw>,
}

/// A session in the list.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Listed<'a> {
    pub agent_id: AgentName<'a>,
    pub session_id: Cow<'a, str>,
    pub mode: NameOf<SessionMode>,
    #[schemars(with = "Option<Model>")]
    pub model: Cow<'a, Option<Raw>>,
    /// The person or group that answers for it; null: nobody is known.
    pub owner: Option<Cow<'a, str>>,
    pub updated_at_ms: u64,
    pub is_active: bool,
}

/// A session's entry in the registry.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionState<'a> {
    pub agent_id: AgentName<'a>,
    pub session_id: Cow<'a, str>,
    pub mode: NameOf<SessionMode>,
    #[serde(deserialize_with = "super::fields::raw")]
    #[schemars(with = "Option<Model>")]
    pub model: Cow<'a, Option<Raw>>,
    #[serde(deserialize_with = "super::fields::raw")]
    #[schemars(with = "Vec<Value>")]
    pub history: Cow<'a, [Raw]>,
    #[serde(deserialize_with = "super::fields::raw")]
    #[schemars(with = "Option<String>")]
    pub summary: Cow<'a, Option<Raw>>,
    #[serde(deserialize_with = "super::fields::raw")]
    #[schemars(with = "Vec<Value>")]
    pub context: Cow<'a, [Raw]>,
    #[serde(deserialize_with = "super::fields::raw")]
    #[schemars(with = "Vec<SessionKey>")]
    pub providers: Cow<'a, [Raw]>,
    /// The team that recorded it; left out if a client made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<Cow<'a, str>>,
    /// The person or group that answers for it; left out if nobody is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Cow<'a, str>>,
    pub created_at_ms: u64,
    pub updated_at_ms: u64,
    /// Only if true: `history`, `summary` and `context` are left empty, since they are content of a
    /// team's agent, and the caller has no token that opens it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
    /// Fields of other versions.
    #[serde(flatten, deserialize_with = "super::fields::raw")]
    #[schemars(skip)]
    pub rest: Cow<'a, BTreeMap<String, Raw>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Closed {
    /// Whether the session existed.
    pub closed: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Active {
    pub active: bool,
}
