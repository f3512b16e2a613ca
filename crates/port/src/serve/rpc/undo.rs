//! Owns `undo` and `redo`.

use serde_json::json;

use super::{MethodCall, Reply, reply};
use crate::serve::Refused;
use crate::undo::{Aim, Outcome, UndoRequest};
use crate::wire::{Redo, RedoParams, Undo, UndoParams, Undone};

pub(super) async fn undo(call: MethodCall<'_>, params: UndoParams) -> Result<Reply<Undo>, Refused> {
    let shared = call.shared;
    let UndoParams { agent_id, session_id, turn, since, dry_run, force, outside } = params;
    let aim = Aim::Agent { agent: agent_id.into(), session: session_id, turn, since };
    let request = UndoRequest { aim, force, dry_run, outside, rewind: None };
    reply(&answer(shared.team.undo(request).await?)?)
}

pub(super) async fn redo(call: MethodCall<'_>, params: RedoParams) -> Result<Reply<Redo>, Refused> {
    let shared = call.shared;
    let RedoParams { agent_id, dry_run, force } = params;
    let aim = Aim::LastUndo { agent: agent_id.map(Into::into) };
    let request = UndoRequest { aim, force, dry_run, outside: true, rewind: None };
    reply(&answer(shared.team.undo(request).await?)?)
}

fn answer(outcome: Outcome) -> Result<Undone, Refused> {
    let paths = serde_json::from_value(json!(outcome.paths)).map_err(Refused::fault)?;
    let obstacles = serde_json::from_value(json!(outcome.obstacles)).map_err(Refused::fault)?;
    Ok(Undone {
        event_id: outcome.event_id,
        agent_id: outcome.agent_id.map(Into::into),
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
