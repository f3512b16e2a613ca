//! What a reload came to, as the port answers it.

use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Reloaded {
    /// What holds from now on.
    pub applied: Vec<Change>,
    /// What waits for a restart, from this reload or an earlier one.
    pub needs_restart: Vec<Change>,
    /// What was added and removed over the port, and what became of that: a sentence each.
    pub notes: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Change {
    /// Null for a key of the whole team.
    pub agent_id: Option<String>,
    /// As in the file: `zone.allowed` of an agent, else `team.listen`; `agents` for an agent that
    /// came or went.
    pub key: String,
    pub change: Kind,
    /// What is to be restarted for it.
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
