//! Runs a task: prompts its agent, cancels it on request, and records its end.

use std::sync::Arc;

use tokio::sync::watch;

use super::{Prompt, RefusalKind, Refused, Team};
use crate::client_host::Said;
use crate::model::TaskState;
use crate::runs::RefusedAccess;
use crate::tasks::{Begun, Ended, NewTask, Tasks};

/// The prompt of a task.
pub(super) fn prompt_of(task: &NewTask) -> String {
    let mut text = task.text.clone();
    if !task.files.is_empty() {
        text.push_str("\n\nFiles:\n");
        text.extend(task.files.iter().map(|file| format!("- {file}\n")));
    }
    text
}

/// Runs a task to its end, which it returns.
pub(super) async fn run(
    team: Arc<dyn Team>,
    tasks: Tasks,
    begun: Begun,
    prompt: Prompt,
    mut saying: watch::Receiver<Said>,
) -> Ended {
    let Begun { id, mut cancel, .. } = begun;
    let agent = prompt.agent.clone();
    let mut session = None;
    let mut turn = team.prompt(prompt);
    let outcome = loop {
        tokio::select! {
            outcome = &mut turn => break Some(outcome),
            Ok(()) = saying.changed(), if session.is_none() => {
                session.clone_from(&saying.borrow_and_update().session);
                if let Some(session) = &session {
                    tasks.sent(&id, session.clone());
                }
            }
            // Another request tries again, where the agent went on.
            Ok(()) = cancel.changed() => {
                // A prompt that was not sent is withdrawn as its future is dropped.
                // The newest: another candidate of a tier may have taken over.
                let known = saying.borrow().session.clone().or_else(|| session.clone());
                let Some(session) = known else { break None };
                if let Err(error) = team.cancel(agent.clone(), Some(session), false).await {
                    tracing::warn!(task = %id, error = error.message, "cannot cancel a task");
                }
            }
        }
    };
    drop(turn);
    // A turn may be over before anybody heard of its beginning.
    let heard = saying.borrow().session.clone().filter(|_| session.is_none() && outcome.is_some());
    if let Some(session) = heard {
        tasks.sent(&id, session);
    }
    // The prompt was sent in the same moment.
    let sent = saying.borrow().session.clone().filter(|_| outcome.is_none());
    if let Some(session) = sent
        && let Err(error) = team.cancel(agent.clone(), Some(session), false).await
    {
        tracing::warn!(task = %id, error = error.message, "cannot cancel a task");
    }
    let ended = match outcome {
        None => Ended::without_answer(TaskState::Cancelled, None),
        Some(Ok(outcome)) => {
            let state = match (&*outcome.stop_reason, &outcome.reason) {
                ("end_turn", None) => TaskState::Done,
                ("cancelled", _) => TaskState::Cancelled,
                _ => TaskState::Failed,
            };
            let reason = outcome.reason.map(|reason| reason.to_string());
            let other = Some(outcome.stop_reason).filter(|_| state == TaskState::Failed);
            let refused = RefusedAccess::of_turn(&outcome.refused);
            Ended { state, reason: reason.or(other), text: outcome.text, refused }
        }
        Some(Err(Refused { message, kind, .. })) => {
            let state = match kind {
                RefusalKind::Withdrawn => TaskState::Cancelled,
                RefusalKind::Gone => TaskState::Lost,
                RefusalKind::Other => TaskState::Failed,
            };
            let said = saying.borrow().text.clone();
            Ended { text: said, ..Ended::without_answer(state, Some(message)) }
        }
    };
    tasks.end(&id, ended.clone()).await;
    ended
}
