//! The facts that a frame is made of, for `top --once --json`.

use serde_json::{Value, json};

use crate::cli::conflicts;
use crate::cli::team::{failed, read};
use crate::model::BlockedStatus;
use crate::program::Failure;
use crate::serve::client::Connection;
use crate::wire::{Empty, Exact, ListAgents, ListBlocked, ListBlockedParams, ListBudgets};

/// The agents, what waits for a decision, and the budgets, as the port has them.
pub(super) async fn of(team: &mut Connection, name: &str) -> Result<Value, Failure> {
    let pending = ListBlockedParams { status: Some(Exact(BlockedStatus::Pending)) };
    let agents = team.ask::<ListAgents>(&Empty {}).await.map_err(failed)?;
    let blocked = team.ask::<ListBlocked>(&pending).await.map_err(failed)?;
    let conflicts = conflicts::pending(team).await?;
    let conflicts = conflicts.as_ref().map(read).transpose()?.map(|list| list.conflicts);
    let budgets = team.ask::<ListBudgets>(&Empty {}).await.map_err(failed)?;
    Ok(json!({
        "team": name,
        "agents": agents.json,
        "blocked": blocked.json,
        "conflicts": conflicts.unwrap_or_default(),
        "budgets": budgets.json,
    }))
}
