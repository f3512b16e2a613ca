//! Owns the methods by which agents start helpers, and the orchestrator adds members.

use std::sync::Arc;

use super::delegated::{branch_of, delegated, start};
use super::tasks::{self, LONGEST_KEY, LONGEST_TEXT};
use super::{MethodCall, Reply, reply};
use crate::model::AgentId;
use crate::runs::{LONGEST_ZONE, MOST_PATTERNS};
use crate::serve::first_task::{self, Stays};
use crate::serve::helpers::{NewHelper, NewMember};
use crate::serve::{Caller, Refused, ownership};
use crate::tasks::NewTask;
use crate::wire::{
    self, AddMember, AddMemberParams, RemoveMember, RemoveMemberParams, StartHelper,
    StartHelperParams,
};
use eisen_base::task;

pub(super) async fn start_helper(
    call: MethodCall<'_>,
    params: StartHelperParams,
) -> Result<Reply<StartHelper>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let tasks = tasks::tasks(shared)?;
    let StartHelperParams { parent, task, zone, profile, branch, key } = params;
    let parent = parent_of(caller, parent.map(Into::into))?;
    check(&task, &zone)?;
    if key.as_ref().is_some_and(|key| key.len() > LONGEST_KEY) {
        return Err(Refused::wrong(format!("`key` may have at most {LONGEST_KEY} bytes")));
    }
    // A repeated call is the same helper.
    if let Some(known) = tasks.with_key(&parent, key.as_deref()) {
        return reply(&delegated(tasks, &known)?);
    }
    let owner = ownership::of_task(&*shared.team, caller);
    let branch = branch_of(branch, caller)?;
    let new = NewHelper { parent: parent.clone(), zone, branch, profile };
    let task = |agent| NewTask { by: parent, owner, agent, text: task, files: Vec::new(), key };
    reply(&start(shared, tasks, new, task).await?)
}

pub(super) async fn add_member(
    call: MethodCall<'_>,
    params: AddMemberParams,
) -> Result<Reply<AddMember>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let tasks = tasks::tasks(shared)?;
    let AddMemberParams { id, profile, zone, task } = params;
    check(&task, &zone)?;
    let (by, owner) = (tasks::giver(caller), ownership::of_task(&*shared.team, caller));
    let (team, own_tasks) = (Arc::clone(&shared.team), tasks.clone());
    let starting = task::spawn(async move {
        let agent = team.add_member(NewMember { id: id.into(), profile, zone }).await?.agent;
        let task = NewTask { by, owner, agent, text: task, files: Vec::new(), key: None };
        Ok::<_, Refused>(first_task::begin(team, own_tasks, task, Stays::ForGood).await?)
    });
    reply(&delegated(tasks, &starting.await.map_err(Refused::fault)??)?)
}

pub(super) async fn remove_member(
    call: MethodCall<'_>,
    params: RemoveMemberParams,
) -> Result<Reply<RemoveMember>, Refused> {
    let shared = call.shared;
    let status = shared.team.remove_member(AgentId::new(params.id)).await?;
    reply(&wire::Agent::from(&status))
}

/// An agent is the parent of what it starts; a person names one.
fn parent_of(caller: Option<&Caller>, named: Option<String>) -> Result<AgentId, Refused> {
    match (caller.and_then(Caller::agent), named) {
        (Some(own), Some(named)) if own.as_str() != named => {
            let message =
                format!("`parent` can't be `{named}`: an agent starts helpers of its own");
            Err(Refused::new(403, message))
        }
        (Some(own), _) => Ok(own.clone()),
        (None, Some(named)) => Ok(AgentId::new(named)),
        (None, None) => Err(Refused::wrong("`parent` must name the agent whose helper it is")),
    }
}

fn check(task: &str, zone: &[String]) -> Result<(), Refused> {
    if task.trim().is_empty() || task.len() > LONGEST_TEXT {
        return Err(Refused::wrong(format!(
            "`task` must be text of at most {LONGEST_TEXT} bytes, not empty"
        )));
    }
    let bytes: usize = zone.iter().map(String::len).sum();
    if zone.is_empty() || zone.len() > MOST_PATTERNS || bytes > LONGEST_ZONE {
        return Err(Refused::wrong(format!(
            "`zone` must have from 1 to {MOST_PATTERNS} patterns, of {LONGEST_ZONE} bytes in all"
        )));
    }
    Ok(())
}
