//! Has agents know of conflicts by their next prompt: the lead of lost updates, and whose write was
//! denied, since a failed system call carries no reason.

use tokio_util::sync::CancellationToken;

use crate::bus::{Received, Subscriber};
use crate::model::{AgentId, Conflict, ConflictKind, ConflictStatus, Event};
use crate::routing::RoutingHandle;

/// Follows conflicts until `cancel`.
pub(crate) async fn follow(
    mut events: Subscriber,
    routing: RoutingHandle,
    lead: Option<AgentId>,
    cancel: CancellationToken,
) {
    while let Some(Some(received)) = cancel.run_until_cancelled(events.recv()).await {
        // What was missed is listed all the same.
        let Received::Event(_, event) = received else { continue };
        let Event::Conflict(conflict) = &**event else { continue };
        let agent = match conflict {
            Conflict { kind: ConflictKind::LostUpdate, .. } => lead.as_ref(),
            Conflict { status: ConflictStatus::Denied, agents, .. } => agents.first(),
            _ => None,
        };
        if let Some(agent) = agent {
            let Conflict { id, message, .. } = conflict;
            routing.note(agent.clone(), format!("- conflict {id}: {message}")).await;
        }
    }
}
