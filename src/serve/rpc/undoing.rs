//! Owns `undo` and `redo`.

use serde_json::Value;

use super::json;
use crate::serve::shared::Shared;
use crate::undo::{Aim, Outcome, UndoRequest};
use crate::wire::{RedoParams, RpcError, UndoParams, Undone};

pub(super) async fn undo(shared: &Shared, params: UndoParams) -> Result<Value, RpcError> {
    let UndoParams { agent_id, session_id, turn, since, dry_run, force, outside } = params;
    let aim = Aim::Agent { agent: agent_id, session: session_id, turn, since };
    answer(shared.team.undo(UndoRequest { aim, force, dry_run, outside, rewind: None }).await?)
}

pub(super) async fn redo(shared: &Shared, params: RedoParams) -> Result<Value, RpcError> {
    let RedoParams { agent_id, dry_run, force } = params;
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
