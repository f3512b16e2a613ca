//! What changes of a team come to: the start of a run, and what a reload has changed.

use std::path::PathBuf;

use crate::config::{ChangeKind, ConfigChange, Takes};
use crate::model::AgentId;
use crate::wire::{self, Kind, Restart};

/// The helper of a run.
pub(in crate::app) struct StartedHelper {
    pub(in crate::app) agent: AgentId,
    pub(in crate::app) depth: u32,
    /// The run whose agent started it, or `TEAM/AGENT`.
    pub(in crate::app) parent: Option<String>,
    pub(in crate::app) command: Vec<String>,
    pub(in crate::app) profile: Option<String>,
    pub(in crate::app) model: Option<String>,
    /// The patterns of its zone.
    pub(in crate::app) zone: Vec<String>,
    /// Patterns that were asked for, and reach out of its parent's zone.
    pub(in crate::app) further: Vec<String>,
    /// What its profile has, and its parent has not.
    pub(in crate::app) without: Vec<String>,
    pub(in crate::app) workspace: PathBuf,
}

pub(super) fn on_wire(change: &ConfigChange) -> wire::Change {
    wire::Change {
        agent_id: change.agent.as_ref().map(|agent| agent.to_string().into()),
        key: change.key.to_owned(),
        change: match change.kind {
            ChangeKind::Added => Kind::Added.into(),
            ChangeKind::Removed => Kind::Removed.into(),
            ChangeKind::Changed => Kind::Changed.into(),
        },
        restart: match change.takes {
            Takes::AtOnce => None,
            Takes::AtAgentStart => Some(Restart::Agent.into()),
            Takes::AtTeamStart => Some(Restart::Team.into()),
        },
    }
}
