//! The facts that a frame is made of, for `top --once --json`.

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::screen::Screen;
use super::team::AgentWords;
use crate::cli::conflicts;
use crate::cli::team::{failed, read};
use crate::model::{BlockedStatus, now_ms};
use crate::program::Failure;
use crate::serve::client::Connection;
use crate::wire::{
    AgentDetails, Empty, Exact, ListAgents, ListBlocked, ListBlockedParams, ListBudgets,
};

/// The agents, what waits for a decision, and the budgets, as the port has them. Of each agent also its task, and the
/// step that it is in or what became of its last turn.
pub(super) async fn of(
    team: &mut Connection,
    name: &str,
    screen: &Screen,
) -> Result<Value, Failure> {
    let pending = ListBlockedParams { status: Some(Exact(BlockedStatus::Pending)) };
    let mut agents = team.ask::<ListAgents>(&Empty {}).await.map_err(failed)?;
    for agent in agents.json.as_array_mut().into_iter().flatten() {
        add_activity(agent, screen);
    }
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

fn add_activity(row: &mut Value, screen: &Screen) {
    let Ok(details) = AgentDetails::deserialize(&*row) else { return };
    let agents = screen.view.agents().into_iter();
    let mut agents = agents.filter(|(it, _)| it.status.agent_id == details.status.agent_id);
    let (Some(agent), Some(row)) = (agents.next(), row.as_object_mut()) else { return };
    let words = AgentWords::of(screen, agent, now_ms());
    let known = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let changed = words.changed.map(|it| json!({ "added": it.added, "removed": it.removed }));
    let step = known(&words.step).unwrap_or_else(|| words.state.to_string());
    row.insert("task".to_owned(), json!(known(words.task)));
    row.insert("step".to_owned(), json!(step));
    row.insert("changed".to_owned(), json!(changed));
}
