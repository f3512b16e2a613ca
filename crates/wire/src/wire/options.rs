//! Owns the options and commands that an agent offers in a session: their line, and the methods about them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::method::method;
use super::names::AgentName;

method! {
    ListSessionOptions = "list_session_options": ListSessionOptionsParams => SessionOptions<'a>;
    port: Anyone, web: Read, token: Read(Named("agent_id")), waits: false, lasts: false, hub: One
}

method! {
    SetSessionOption = "set_session_option": SetSessionOptionParams => SessionOptions<'a>;
    port: Person, web: Control, token: Prompt(Named("agent_id")), waits: false, lasts: true, hub: One
}

/// Another value is chosen in a session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChosenOptions<'a> {
    pub agent_id: AgentName<'a>,
    pub session_id: Cow<'a, str>,
    /// The value of each option, by its id.
    #[serde(default)]
    pub chosen: Cow<'a, BTreeMap<String, String>>,
    #[serde(default)]
    pub timestamp_ms: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListSessionOptionsParams {
    pub agent_id: AgentName<'static>,
    /// The agent's default session if left out.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub session_id: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SetSessionOptionParams {
    pub agent_id: AgentName<'static>,
    /// The agent's default session if left out.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub session_id: Option<String>,
    /// The id of the option, or its category: `mode`, `model`.
    pub option: String,
    /// The value, by its id or name.
    pub value: String,
}

/// The options that an agent offers in a session, with the chosen values, and its commands.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionOptions<'a> {
    pub session_id: Cow<'a, str>,
    /// In the agent's order; empty if it offers nothing.
    #[serde(default)]
    pub options: Vec<OfferedOption<'a>>,
    /// The commands that a prompt of the session may begin with; 100 at most.
    #[serde(default)]
    pub commands: Vec<OfferedCommand<'a>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OfferedCommand<'a> {
    /// Without the slash before it.
    pub name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Cow<'a, str>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OfferedOption<'a> {
    pub id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    /// Its meaning by ACP: `mode`, `model`, `thought_level`, or a word of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<Cow<'a, str>>,
    /// The value that is chosen; null: the agent does not say.
    pub current: Option<Cow<'a, str>>,
    pub values: Vec<OfferedValue<'a>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OfferedValue<'a> {
    pub value: Cow<'a, str>,
    pub name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Cow<'a, str>>,
}
