//! Has agents know, by their next prompt, of tasks that ended while they did not wait for them.

use tokio_util::sync::CancellationToken;

use crate::bus::{Received, Subscriber};
use crate::model::{AgentId, Event};
use crate::routing::RoutingHandle;
use crate::tasks::Tasks;
use crate::tracker::TrackerHandle;

/// Follows tasks and turns until `cancel`. What is missed of them comes with the next turn's end.
pub(crate) async fn follow(
    mut events: Subscriber,
    tasks: Tasks,
    tracker: TrackerHandle,
    routing: RoutingHandle,
    cancel: CancellationToken,
) {
    while let Some(Some(received)) = cancel.run_until_cancelled(events.recv()).await {
        let Received::Event(_, event) = received else { continue };
        let giver = match &**event {
            // In a turn it may wait for the task, and is about to see it.
            Event::Task(task) if task.state.is_ended() && !runs(&tracker, &task.by).await => {
                &task.by
            }
            Event::Turn(turn) => &turn.key.agent,
            _ => continue,
        };
        for task in tasks.take_unknown_ends(giver) {
            let (id, agent, state) = (&task.id, &task.agent, task.state.as_str());
            let line = format!(
                "- task {id}, which you gave to agent `{agent}`, is {state}: `task_result` has the result"
            );
            routing.note(giver.clone(), line).await;
        }
    }
}

async fn runs(tracker: &TrackerHandle, agent: &AgentId) -> bool {
    let sessions = tracker.sessions().await.unwrap_or_default();
    sessions.iter().any(|session| session.key.agent == *agent && session.is_running)
}
