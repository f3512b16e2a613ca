//! The view of an access before it is decided.

use super::Task;
use crate::model::{AgentId, BlockedAccess, BlockedId, BlockedStatus};
use crate::preview::SeenContent;
use crate::routing::shown::Showable;
use crate::routing::{Decider, ResolveError};

impl Task {
    /// Returns the facts that can be shown of an access that nobody decided.
    pub(super) fn showable(
        &self,
        id: &BlockedId,
        reader: Option<AgentId>,
    ) -> Result<Showable, ResolveError> {
        let entry = match reader.clone() {
            Some(agent) => self.undecided(id, &Decider::Agent(agent), false)?,
            None => self.undecided(id, &Decider::Person, false)?,
        };
        let zone = |agent: &AgentId| self.settings.rules.zones.get(agent).cloned();
        Ok(Showable {
            wanted: entry.wanted.clone(),
            caller: entry
                .waiters
                .iter()
                .find_map(|waiter| waiter.caller)
                .filter(|_| entry.access.status == BlockedStatus::Pending),
            zone: zone(&entry.access.key.agent),
            access: BlockedAccess { offered: self.offered(entry), ..entry.access.clone() },
            reader: reader.map(|agent| (agent.clone(), zone(&agent))),
        })
    }

    /// Whether an access would write what was seen.
    pub(super) fn is_as_seen(&self, id: &BlockedId, seen: Option<SeenContent>) -> bool {
        let wanted = self.board.get(id).and_then(|entry| entry.wanted.as_ref());
        seen.is_none_or(|seen| SeenContent::of(wanted) == seen)
    }
}
