//! Tasks that were just given, and the helpers that are started for them.

use std::sync::Arc;

use crate::model::{AgentId, TaskId};
use crate::runs::check_branch;
use crate::serve::first_task::{self, Stays};
use crate::serve::helpers::{BranchBy, NewBranch, NewHelper, StartedHelper};
use crate::serve::shared::Shared;
use crate::serve::{Caller, Refused};
use crate::tasks::{NewTask, Tasks};
use crate::wire::Delegated;
use eisen_base::task;

pub(super) fn delegated(tasks: &Tasks, id: &TaskId) -> Result<Delegated, Refused> {
    started(tasks, id, Vec::new())
}

/// As [`delegated`], for a helper that goes `without` some of what its profile has.
fn started(tasks: &Tasks, id: &TaskId, without: Vec<String>) -> Result<Delegated, Refused> {
    let kept = tasks.get(None, id)?;
    Ok(Delegated {
        id: kept.id.to_string().into(),
        agent: kept.agent.to_string().into(),
        state: kept.state.as_str().to_owned(),
        without,
    })
}

/// The branch that a helper is to get.
pub(super) fn branch_of(
    name: Option<String>,
    caller: Option<&Caller>,
) -> Result<Option<NewBranch>, Refused> {
    let Some(name) = name else { return Ok(None) };
    check_branch(&name).map_err(Refused::wrong)?;
    let by = match caller {
        Some(Caller::Lead(_)) => BranchBy::Lead,
        Some(caller) if caller.agent().is_none() => BranchBy::Person,
        _ => BranchBy::Member,
    };
    Ok(Some(NewBranch { name, by }))
}

/// Starts a helper for a task.
pub(super) async fn start(
    shared: &Shared,
    tasks: &Tasks,
    new: NewHelper,
    task: impl FnOnce(AgentId) -> NewTask + Send + 'static,
) -> Result<Delegated, Refused> {
    let (team, own_tasks) = (Arc::clone(&shared.team), tasks.clone());
    // Both or neither, even if the caller leaves meanwhile.
    let starting = task::spawn(async move {
        let StartedHelper { agent, without } = team.start_helper(new).await?;
        let task = first_task::begin(team, own_tasks, task(agent), Stays::ForTask).await?;
        Ok::<_, Refused>((task, without))
    });
    let (task, without) = starting.await.map_err(Refused::fault)??;
    started(tasks, &task, without)
}
