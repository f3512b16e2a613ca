//! Owns the result of a reload, as the port returns it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::method::method;
use super::names::AgentName;
use super::{Empty, NameOf};
use crate::model::named;

method! {
    Reload = "reload": Empty => Reloaded;
    port: Person, web: Control, token: Control(Team), waits: false, lasts: false, hub: One
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Reloaded {
    /// Changes in effect.
    pub applied: Vec<Change>,
    /// Changes that wait for a restart, from this reload or an earlier one.
    pub needs_restart: Vec<Change>,
    /// Results for agents that were added or removed over the port, a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Null for a key of the whole team.
    pub agent_id: Option<AgentName<'static>>,
    /// As in the file: `zone.allowed` of an agent, else `team.listen`; `agents` for an agent that
    /// was added or removed.
    pub key: String,
    #[schemars(with = "Kind")]
    pub change: NameOf<Kind>,
    /// The agent or the team, if one of them has to be restarted for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Restart>")]
    pub restart: Option<NameOf<Restart>>,
}

named! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema)]
    #[schemars(rename_all = "snake_case")]
    pub enum Kind {
        Added = "added",
        Removed = "removed",
        Changed = "changed",
    }
}

named! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema)]
    #[schemars(rename_all = "snake_case")]
    pub enum Restart {
        Agent = "agent",
        Team = "team",
    }
}
