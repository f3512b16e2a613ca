use indexmap::IndexMap;
use tokio::sync::oneshot;

use super::{Request, Settlement};
use crate::bus::Bus;
use crate::model::{AgentId, BlockedAccess, BlockedId, BlockedStatus, Event};

/// Settled accesses that are remembered; the oldest is forgotten first. Pending ones always are.
const REMEMBERED: usize = 10_000;

/// A blocked access and what is known of its decision.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) access: BlockedAccess,
    /// A decision can let it, or the next like it, pass.
    pub(super) grantable: bool,
    /// Nobody may decide it again.
    pub(super) decided: bool,
    /// Which process the kernel stopped.
    pub(super) caller: Option<u32>,
    /// How far it came on its way to the orchestrator agent.
    pub(super) briefing: Briefing,
    /// Settles the request that waits, while it is pending.
    pub(super) settle: Option<oneshot::Sender<Settlement>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Briefing {
    /// It is not the orchestrator agent's to decide, or a like one was put before it.
    None,
    Waiting,
    /// In the prompt that runs.
    Telling,
    Told,
}

/// All blocked accesses, oldest first.
#[derive(Debug, Default)]
pub(super) struct Board {
    entries: IndexMap<BlockedId, Entry>,
    last: u64,
}

impl Board {
    pub(super) fn next_id(&mut self) -> BlockedId {
        self.last += 1;
        BlockedId::new(format!("b{}", self.last))
    }

    pub(super) fn insert(&mut self, entry: Entry) {
        if self.entries.len() >= REMEMBERED {
            let settled = |entry: &Entry| entry.access.status != BlockedStatus::Pending;
            if let Some(oldest) = self.entries.values().position(settled) {
                self.entries.shift_remove_index(oldest);
            }
        }
        self.entries.insert(entry.access.id.clone(), entry);
    }

    pub(super) fn get(&self, id: &BlockedId) -> Option<&Entry> {
        self.entries.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &BlockedId) -> Option<&mut Entry> {
        self.entries.get_mut(id)
    }

    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.values_mut()
    }

    /// Lets nobody decide any more what an agent asked for that left.
    pub(super) fn forget(&mut self, agent: &AgentId, bus: &Bus) {
        let undecided = |entry: &&mut Entry| !entry.decided && entry.access.key.agent == *agent;
        for entry in self.entries.values_mut().filter(undecided) {
            entry.decided = true;
            if entry.access.status == BlockedStatus::Pending {
                entry.settle = None;
                entry.access.status = BlockedStatus::Expired;
                bus.publish(Event::Blocked(entry.access.clone()));
            }
        }
    }

    /// Returns the undecided entries of the same agent, path and action, oldest first.
    pub(super) fn alike<'a>(
        &'a self,
        access: &'a BlockedAccess,
    ) -> impl Iterator<Item = &'a Entry> + 'a {
        self.entries.values().filter(move |entry| {
            !entry.decided
                && entry.access.sweep.is_none()
                && entry.access.key.agent == access.key.agent
                && entry.access.path == access.path
                && entry.access.action == access.action
        })
    }

    /// Whether the agent was ever allowed this path and action, or got its content.
    pub(super) fn was_allowed(&self, request: &Request) -> bool {
        self.entries.values().map(|entry| &entry.access).any(|access| {
            matches!(access.status, BlockedStatus::Allowed | BlockedStatus::Answered)
                && access.key.agent == request.key.agent
                && access.path == request.path
                && access.action == request.action
        })
    }

    /// Notes that a tool call completed that was denied this path and action; returns the denial.
    pub(super) fn completed(&mut self, request: &Request) -> Option<&BlockedAccess> {
        let denied = self.entries.values_mut().map(|entry| &mut entry.access).rfind(|access| {
            access.status == BlockedStatus::Denied
                && access.sweep.is_none()
                && access.key.agent == request.key.agent
                && access.path == request.path
                && access.action == request.action
        })?;
        (!std::mem::replace(&mut denied.completed, true)).then_some(denied)
    }

    pub(super) fn list(&self, status: Option<BlockedStatus>) -> Vec<BlockedAccess> {
        self.entries
            .values()
            .map(|entry| &entry.access)
            .filter(|access| status.is_none_or(|status| access.status == status))
            .cloned()
            .collect()
    }
}
