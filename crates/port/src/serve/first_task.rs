//! The task that an agent is started for: it begins once the agent is ready, and a helper ends with it.

use std::sync::Arc;

use eisen_base::task;
use serde_json::json;
use tokio::sync::watch;

use super::{HelperEnd, Prompt, Refused, Team, task_run};
use crate::client_host::Said;
use crate::model::{DecidedBy, TaskId, TaskState};
use crate::tasks::{Begun, Ended, NewTask, TaskError, Tasks};

/// Whether an agent ends with its first task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stays {
    /// A helper.
    ForTask,
    /// A member.
    ForGood,
}

/// Begins the task of an agent that was started for it. If it can't begin, a helper ends.
pub(super) async fn begin(
    team: Arc<dyn Team>,
    tasks: Tasks,
    new: NewTask,
    stays: Stays,
) -> Result<TaskId, TaskError> {
    let (agent, by) = (new.agent.clone(), Some(DecidedBy::Agent(new.by.clone())));
    let blocks = vec![json!({ "type": "text", "text": task_run::prompt_of(&new) })];
    let begun = tasks.begin(new).await;
    let (task, reason) = match begun {
        Ok(begun) if begun.is_new => {
            let (said, saying) = watch::channel(Said::default());
            let prompt = Prompt { agent, session: None, blocks, by_orchestrator: false, by, said };
            let id = begun.id.clone();
            task::spawn(run(team, tasks, begun, prompt, saying, stays));
            return Ok(id);
        }
        Ok(known) => (Ok(known.id), "another request with its key was faster".to_owned()),
        Err(error) => (Err(error.clone()), error.to_string()),
    };
    if stays == Stays::ForTask {
        let (state, reason) = (TaskState::Cancelled, Some(reason));
        end(&*team, HelperEnd { agent, task: None, state, reason, text: String::new() }).await;
    }
    task
}

/// Waits until an agent that was started for a task is ready, and runs the task to its end.
async fn run(
    team: Arc<dyn Team>,
    tasks: Tasks,
    begun: Begun,
    prompt: Prompt,
    saying: watch::Receiver<Said>,
    stays: Stays,
) {
    let (id, agent) = (begun.id.clone(), prompt.agent.clone());
    let mut cancel = begun.cancel.clone();
    let ready = tokio::select! {
        ready = team.ready(agent.clone()) => Some(ready),
        Ok(()) = cancel.changed() => None,
    };
    let ended = match ready {
        Some(Ok(())) => task_run::run(Arc::clone(&team), tasks, begun, prompt, saying).await,
        not_ready => {
            let ended = match not_ready {
                Some(Err(Refused { message, .. })) => {
                    Ended::without_answer(TaskState::Failed, Some(message))
                }
                _ => Ended::without_answer(TaskState::Cancelled, None),
            };
            tasks.end(&id, ended.clone()).await;
            ended
        }
    };
    if stays == Stays::ForGood {
        return;
    }
    let Ended { state, reason, text, .. } = ended;
    end(&*team, HelperEnd { agent, task: Some(id), state, reason, text }).await;
}

async fn end(team: &dyn Team, end: HelperEnd) {
    if let Err(error) = team.end_helper(end).await {
        tracing::warn!(error = error.message, "cannot end a helper");
    }
}
