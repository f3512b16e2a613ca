//! A conflict on the wire.

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{AgentId, Conflict, ConflictKind, ConflictStatus};

/// A write in conflict with another agent's; each change of its status is another line.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Conflict")]
pub(in crate::serve) struct ConflictLine<'a> {
    id: &'a str,
    /// Relative to the workspace, with forward slashes.
    path: &'a str,
    #[schemars(extend("enum" = ConflictKind::ALL.map(ConflictKind::as_str)))]
    kind: &'static str,
    /// The writer, then the others.
    agents: Vec<&'a str>,
    /// The writer's session; empty if it is not known.
    session_id: &'a str,
    #[schemars(extend("enum" = ConflictStatus::ALL.map(ConflictStatus::as_str)))]
    status: &'static str,
    /// What happened, in a sentence.
    message: &'a str,
    /// Only once somebody decided it: `person` at a terminal, or `program`.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<String>,
    timestamp_ms: u64,
}

impl<'a> From<&'a Conflict> for ConflictLine<'a> {
    fn from(conflict: &'a Conflict) -> Self {
        Self {
            id: conflict.id.as_str(),
            path: &conflict.path,
            kind: conflict.kind.as_str(),
            agents: conflict.agents.iter().map(AgentId::as_str).collect(),
            session_id: conflict.session.as_str(),
            status: conflict.status.as_str(),
            message: &conflict.message,
            decided_by: conflict.decided_by.as_ref().map(ToString::to_string),
            timestamp_ms: conflict.timestamp_ms,
        }
    }
}
