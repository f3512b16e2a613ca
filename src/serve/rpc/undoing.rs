//! Owns `undo` and `redo`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::json;
use crate::serve::shared::Shared;
use crate::serve::wire::RpcError;
use crate::undo::{Aim, Outcome, UndoRequest};

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "UndoParams")]
pub(in crate::serve) struct Undo {
    agent_id: String,
    /// Of the wire or the journal, or the beginning of the journal's. All sessions if left out;
    /// with `turn` the agent's first.
    #[serde(default, deserialize_with = "super::name")]
    session_id: Option<String>,
    /// Only what it wrote in this turn.
    turn: Option<u64>,
    /// Only what it wrote behind the event with this id.
    #[serde(default, deserialize_with = "super::name")]
    since: Option<String>,
    /// Only say what would be done.
    #[serde(default)]
    dry_run: bool,
    /// Files that clash get the content from before the agent's change.
    #[serde(default)]
    force: bool,
    /// Also what it wrote outside the workspace.
    #[serde(default)]
    outside: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "RedoParams")]
pub(in crate::serve) struct Redo {
    /// The last undo of any agent if left out.
    #[serde(default, deserialize_with = "super::name")]
    agent_id: Option<String>,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    force: bool,
}

/// What was undone, or would be.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct Undone {
    /// The event in the journal; null if nothing was to be done, or it was a dry run.
    event_id: Option<String>,
    agent_id: Option<String>,
    paths: Vec<ChangedPath>,
    /// Files that clash, or can't be restored.
    obstacles: Vec<Obstacle>,
    /// Folders that the agent made, and that stay, since others have files in them.
    staying: Vec<String>,
    /// How many changes in `.git` stay.
    of_git: usize,
    /// How many changes outside the workspace stay.
    outside: usize,
    /// Of a dry run: what would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// Of a dry run: changes that the diff can't carry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_in_diff: Vec<String>,
    /// Of a dry run: why it would be refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ChangedPath {
    path: String,
    /// In base64, of a name that is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    /// Null: nothing is there.
    before: Option<PathState>,
    after: Option<PathState>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct PathState {
    /// Of the content; null of a folder.
    hash: Option<String>,
    size: u64,
    mode: u32,
    /// `file`, `symlink` or `folder`.
    kind: String,
    /// Whether the journal has the content.
    stored: bool,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Obstacle {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    /// `clash`, `not_restorable` or `in_the_way`.
    kind: String,
    why: String,
    /// It got the content from before the agent's change; else it stays as it is.
    forced: bool,
}

pub(super) async fn undo(shared: &Shared, params: Undo) -> Result<Value, RpcError> {
    let Undo { agent_id, session_id, turn, since, dry_run, force, outside } = params;
    let aim = Aim::Agent { agent: agent_id, session: session_id, turn, since };
    answer(shared.team.undo(UndoRequest { aim, force, dry_run, outside, rewind: None }).await?)
}

pub(super) async fn redo(shared: &Shared, params: Redo) -> Result<Value, RpcError> {
    let Redo { agent_id, dry_run, force } = params;
    let aim = Aim::LastUndo { agent: agent_id };
    answer(
        shared.team.undo(UndoRequest { aim, force, dry_run, outside: true, rewind: None }).await?,
    )
}

fn answer(outcome: Outcome) -> Result<Value, RpcError> {
    let failed = |error: serde_json::Error| RpcError::new(500, error.to_string());
    let paths = serde_json::from_value(Value::Array(outcome.paths)).map_err(failed)?;
    let obstacles = outcome.obstacles.iter().map(crate::undo::Obstacle::to_json).collect();
    let obstacles = serde_json::from_value(Value::Array(obstacles)).map_err(failed)?;
    json(&Undone {
        event_id: outcome.event_id,
        agent_id: outcome.agent_id,
        paths,
        obstacles,
        staying: outcome.staying,
        of_git: outcome.of_git,
        outside: outcome.outside,
        diff: outcome.diff.map(|diff| String::from_utf8_lossy(&diff).into_owned()),
        not_in_diff: outcome.not_in_diff,
        refused: outcome.refused,
    })
}
