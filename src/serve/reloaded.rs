//! Owns the result of a reload, as the port returns it.

use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Reloaded {
    /// Changes in effect.
    pub applied: Vec<Change>,
    /// Changes that wait for a restart, from this reload or an earlier one.
    pub needs_restart: Vec<Change>,
    /// Results for agents that were added or removed over the port, a sentence each.
    pub notes: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Change {
    /// Null for a key of the whole team.
    pub agent_id: Option<String>,
    /// As in the file: `zone.allowed` of an agent, else `team.listen`; `agents` for an agent that
    /// was added or removed.
    pub key: String,
    pub change: Kind,
    /// What has to be restarted for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restart>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Added,
    Removed,
    Changed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    Agent,
    Team,
}
