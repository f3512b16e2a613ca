//! Owns the methods of tasks: gives them to agents, and answers their states and results.

use std::sync::Arc;

use eisen_base::task;
use serde_json::json as object;
use tokio::sync::watch;
use tokio::time::Instant;

use super::delegated::{branch_of, delegated, start};
use super::status::no_agent;
use super::{MethodCall, Reply, reply};
use crate::client_host::Said;
use crate::mcp::text_pages;
use crate::model::{AgentId, AgentState, TaskId};
use crate::serve::helpers::NewHelper;
use crate::serve::rights::{self, PROGRAM};
use crate::serve::shared::Shared;
use crate::serve::{Caller, Prompt, Refused, Team, ownership, task_run};
use crate::tasks::{
    Circle, FoundTasks, Kept, LONGEST_WAIT, Mode, NewTask, TaskError, Tasks, WaitKind,
};
use crate::wire::{
    self, CancelTask, CancelTaskParams, CheckTasks, CheckTasksParams, DelegateParams, DelegateTask,
    TaskOutcome, TaskResult, TaskResultParams, TaskRow, WaitForTasks, WaitForTasksParams, WaitMode,
};

/// Bytes of a task's text, of its key, and names of files in it.
pub(super) const LONGEST_TEXT: usize = 256 * 1024;
pub(super) const LONGEST_KEY: usize = 256;
const MOST_FILES: usize = 200;

/// Tasks that one request names.
const MOST_IDS: usize = 1000;

/// Bytes of a result's summary.
const SUMMARY: usize = 1024;

pub(super) async fn delegate_task(
    call: MethodCall<'_>,
    params: DelegateParams,
) -> Result<Reply<DelegateTask>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let tasks = tasks(shared)?;
    let DelegateParams { agent, task, files, branch, key } = params;
    if task.trim().is_empty() || task.len() > LONGEST_TEXT {
        return Err(Refused::wrong(format!(
            "`task` must be text of at most {LONGEST_TEXT} bytes, not empty"
        )));
    }
    if files.len() > MOST_FILES || key.as_ref().is_some_and(|key| key.len() > LONGEST_KEY) {
        return Err(Refused::wrong(format!(
            "`files` may have at most {MOST_FILES} names, and `key` at most {LONGEST_KEY} bytes"
        )));
    }
    if files.iter().map(String::len).sum::<usize>() > LONGEST_TEXT {
        return Err(Refused::wrong(format!(
            "`files` may have at most {LONGEST_TEXT} bytes in all"
        )));
    }
    let (by, agent) = (giver(caller), AgentId::new(agent));
    // A repeated call is the same task, in any state of its agent.
    if let Some(known) = tasks.with_key(&by, key.as_deref()) {
        return reply(&delegated(tasks, &known)?);
    }
    if let Some(branch) = branch_of(branch, caller)? {
        let owner = ownership::of_task(&*shared.team, caller);
        let (parent, branch) = (agent, Some(branch));
        let new = NewHelper { parent, zone: Vec::new(), branch, profile: None };
        let task = move |agent| NewTask { by, owner, agent, text: task, files, key };
        return reply(&start(shared, tasks, new, task).await?);
    }
    is_ready(&*shared.team, &agent)?;
    if by == agent {
        let message = "you can't give a task to yourself: your turn would wait for its own end";
        return Err(Refused::new(409, message));
    }
    let owner = ownership::of_task(&*shared.team, caller);
    let sender = rights::decided_by(caller);
    let new = NewTask { by, owner, agent: agent.clone(), text: task, files, key };
    let blocks = vec![object!({ "type": "text", "text": task_run::prompt_of(&new) })];
    let (team, own_tasks) = (Arc::clone(&shared.team), tasks.clone());
    // Both or neither, even if the caller leaves meanwhile.
    let beginning = task::spawn(async move {
        let begun = own_tasks.begin(new).await?;
        if begun.is_new {
            let (said, saying) = watch::channel(Said::default());
            let by = Some(sender);
            let prompt = Prompt { agent, session: None, blocks, by_orchestrator: false, by, said };
            task::spawn(task_run::run(team, own_tasks, begun.clone(), prompt, saying));
        }
        Ok::<_, Refused>(begun.id)
    });
    reply(&delegated(tasks, &beginning.await.map_err(Refused::fault)??)?)
}

pub(super) async fn check_tasks(
    call: MethodCall<'_>,
    params: CheckTasksParams,
) -> Result<Reply<CheckTasks>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let ids = ids(params.ids.into_iter().map(Into::into).collect())?;
    let found = tasks(shared)?.list(rights::own_only(caller), &ids)?;
    reply(&rows(found))
}

pub(super) async fn wait_for_tasks(
    call: MethodCall<'_>,
    params: WaitForTasksParams,
) -> Result<Reply<WaitForTasks>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let tasks = tasks(shared)?;
    let WaitForTasksParams { ids: named, mode, cursor, timeout_s } = params;
    let ids = ids(named.into_iter().map(Into::into).collect())?;
    if ids.is_empty() {
        return Err(Refused::wrong("`ids` must name the tasks to wait for"));
    }
    let deadline = Instant::now() + wait_of(timeout_s)?;
    let mode = match mode {
        WaitMode::All => Mode::All,
        WaitMode::First => Mode::First,
    };
    let own = rights::own_only(caller);
    let running = tasks.list(own, &ids)?.tasks.into_iter().filter(|task| !task.state.is_ended());
    let mut awaited: Vec<_> = running.map(|task| task.agent).collect();
    awaited.sort();
    awaited.dedup();
    let _waits = shared.waits.begin(&giver(caller), &awaited, WaitKind::Task)?;
    reply(&rows(tasks.wait(own, &ids, mode, cursor, deadline).await?))
}

pub(super) async fn task_result(
    call: MethodCall<'_>,
    params: TaskResultParams,
) -> Result<Reply<TaskResult>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let tasks = tasks(shared)?;
    let (own, id) = (rights::own_only(caller), TaskId::new(params.id));
    let kept = tasks.get(own, &id)?;
    let mut result = outcome(&kept, params.page)?;
    if !caller.is_some_and(|caller| rights::opens(caller, &kept.agent)) {
        result.blocked.clear();
    }
    if params.ack {
        tasks.acknowledge(own, &id).await?;
    }
    reply(&result)
}

pub(super) async fn cancel_task(
    call: MethodCall<'_>,
    params: CancelTaskParams,
) -> Result<Reply<CancelTask>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let cancelled = tasks(shared)?.cancel(rights::own_only(caller), &TaskId::new(params.id))?;
    reply(&TaskRow::from(cancelled))
}

pub(super) fn tasks(shared: &Shared) -> Result<&Tasks, Refused> {
    shared.tasks.as_ref().ok_or_else(|| shared.team.refusal())
}

/// Returns the agent, `HOST/AGENT` of another host, or the program that gives a task by this token.
pub(super) fn giver(caller: Option<&Caller>) -> AgentId {
    let elsewhere = match caller {
        Some(Caller::Holder(holder)) => holder.agent_elsewhere(),
        _ => None,
    };
    let agent = caller.and_then(Caller::agent).or(elsewhere);
    agent.cloned().unwrap_or_else(|| AgentId::new(PROGRAM))
}

fn ids(named: Vec<String>) -> Result<Vec<TaskId>, Refused> {
    if named.len() > MOST_IDS {
        return Err(Refused::wrong(format!("`ids` may have {MOST_IDS} entries")));
    }
    Ok(named.into_iter().map(TaskId::new).collect())
}

pub(super) fn wait_of(timeout_s: Option<f64>) -> Result<std::time::Duration, Refused> {
    match timeout_s {
        None => Ok(LONGEST_WAIT),
        Some(seconds) if (0.0..=LONGEST_WAIT.as_secs_f64()).contains(&seconds) => {
            Ok(std::time::Duration::from_secs_f64(seconds))
        }
        Some(_) => {
            Err(Refused::wrong(format!("`timeout_s` must be from 0 to {}", LONGEST_WAIT.as_secs())))
        }
    }
}

/// Checks that an agent exists and takes prompts.
pub(super) fn is_ready(team: &dyn Team, agent: &AgentId) -> Result<(), Refused> {
    let agents = team.agents();
    let Some(status) = agents.iter().find(|status| status.agent == *agent) else {
        return Err(no_agent(agent, agents.iter()));
    };
    if status.state == AgentState::Ready {
        return Ok(());
    }
    let state = status.state.as_str();
    let message = format!("agent `{agent}` is {state}, not ready: wait, or choose another one");
    Err(Refused::new(409, message))
}

fn outcome(kept: &Kept, page: Option<u64>) -> Result<TaskOutcome, Refused> {
    let pages = text_pages(&kept.result);
    let text = match page {
        None => None,
        Some(page) => {
            let at = usize::try_from(page).unwrap_or(usize::MAX).checked_sub(1);
            let text = at.and_then(|at| pages.get(at)).ok_or_else(|| {
                let message = format!("there is no page {page}: the result has {}", pages.len());
                Refused::new(404, message)
            })?;
            Some((*text).to_owned())
        }
    };
    Ok(TaskOutcome {
        session_id: kept.session.as_ref().map(ToString::to_string),
        summary: summary(&kept.result),
        bytes: kept.said,
        text,
        pages: pages.len(),
        blocked: kept.refused.clone(),
        task: kept.report(kept.state).into(),
    })
}

/// The end of a text: whole paragraphs, if they fit.
fn summary(text: &str) -> String {
    let text = text.trim();
    if text.len() <= SUMMARY {
        return text.to_owned();
    }
    let end = &text[text.ceil_char_boundary(text.len() - SUMMARY)..];
    let whole = end.split_once("\n\n").map_or(end, |(_, rest)| rest);
    format!("… {}", whole.trim_start())
}

fn rows(found: FoundTasks) -> wire::Tasks {
    let FoundTasks { tasks, cursor, timed_out } = found;
    wire::Tasks { tasks: tasks.into_iter().map(TaskRow::from).collect(), cursor, timed_out }
}

impl From<TaskError> for Refused {
    fn from(error: TaskError) -> Self {
        let code = match error {
            TaskError::Unknown(_) => 404,
            TaskError::Full => 409,
            TaskError::NotKept(_) => 500,
        };
        Self::new(code, error.to_string())
    }
}

impl From<Circle> for Refused {
    fn from(circle: Circle) -> Self {
        Self::new(409, circle.to_string())
    }
}
