//! Shows an access to whoever decides it, and decides it only while it is still as it was shown.

use super::task::RoutingMsg;
use super::task::questions::AskingMsg;
use super::{Decider, Decision, ResolveError, RoutingHandle, ShownAccess};
use crate::model::{AgentId, BlockedAccess, BlockedId};
use crate::preview::SeenContent;
use eisen_base::task;

impl RoutingHandle {
    /// Shows an access that is not decided. An agent sees the file only if its own zone lets it.
    /// Reads the disk.
    pub async fn show(
        &self,
        id: BlockedId,
        reader: Option<AgentId>,
    ) -> Result<ShownAccess, ResolveError> {
        let showable = self
            .ask(|reply| RoutingMsg::Asking(AskingMsg::Show { id, reader, reply }))
            .await
            .unwrap_or(Err(ResolveError::Stopping))?;
        let looking = task::spawn_blocking(move || showable.look());
        looking.await.map_err(|_| ResolveError::Stopping)
    }

    /// Decides an access if it still is as it was shown with this version; of equal ones, only
    /// those that want to write the same.
    pub async fn resolve_shown(
        &self,
        id: BlockedId,
        decision: Decision,
        by: Decider,
        version: &str,
    ) -> Result<BlockedAccess, ResolveError> {
        let reader = match &by {
            Decider::Agent(agent) => Some(agent.clone()),
            Decider::Person | Decider::Insistent | Decider::Holder { .. } => None,
        };
        let shown = self.show(id.clone(), reader).await?;
        if shown.version != version {
            return Err(ResolveError::Changed(id));
        }
        let seen = Some(SeenContent::of(shown.wanted.as_ref()));
        self.ask(|reply| RoutingMsg::Resolve { id, decision, by, seen, reply })
            .await
            .unwrap_or(Err(ResolveError::Stopping))
    }
}
