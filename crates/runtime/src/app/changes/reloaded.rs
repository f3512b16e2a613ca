//! The changes of a reload, for the wire.

use crate::config::{ChangeKind, ConfigChange, Takes};
use crate::wire::{self, Kind, Restart};

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
