//! All blocked accesses, oldest first, and found again by what they ask for: an agent may be
//! denied thousands, and the next denial of another must not wait for a look at each.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Request, Settlement};
use crate::bus::Bus;
use crate::model::{Action, AgentId, BlockedAccess, BlockedId, BlockedStatus, Event};

/// Settled accesses that are remembered; the oldest is forgotten first. Pending ones always are.
const REMEMBERED: usize = 10_000;

/// A blocked access and what is known of its decision.
#[derive(Debug)]
pub(super) struct BoardEntry {
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
    Prompting,
    Prompted,
}

/// What an access asks for.
type AccessKey = (AgentId, Arc<str>, Action);

#[derive(Debug, Default)]
pub(super) struct Board {
    /// By the number in their ids.
    entries: BTreeMap<u64, BoardEntry>,
    /// Those that are not pending.
    settled: BTreeSet<u64>,
    /// Those of each subject; no sweeps.
    alike: HashMap<AccessKey, BTreeSet<u64>>,
    last: u64,
}

impl Board {
    pub(super) fn next_id(&mut self) -> BlockedId {
        self.last += 1;
        BlockedId::new(format!("b{}", self.last))
    }

    /// Takes in an entry with an id of [`Self::next_id`].
    pub(super) fn insert(&mut self, entry: BoardEntry) {
        if self.entries.len() >= REMEMBERED
            && let Some(oldest) = self.settled.pop_first()
        {
            self.forget_entry(oldest);
        }
        let Some(number) = number(&entry.access.id) else { return };
        if entry.access.sweep.is_none() {
            self.alike.entry(subject(&entry.access)).or_default().insert(number);
        }
        if entry.access.status != BlockedStatus::Pending {
            self.settled.insert(number);
        }
        self.entries.insert(number, entry);
    }

    pub(super) fn get(&self, id: &BlockedId) -> Option<&BoardEntry> {
        self.entries.get(&number(id)?).filter(|entry| entry.access.id == *id)
    }

    /// Changes an entry, but for what it asks for.
    pub(super) fn change<T>(
        &mut self,
        id: &BlockedId,
        change: impl FnOnce(&mut BoardEntry) -> T,
    ) -> Option<T> {
        let number = number(id)?;
        let entry = self.entries.get_mut(&number).filter(|entry| entry.access.id == *id)?;
        let result = change(entry);
        if entry.access.status != BlockedStatus::Pending {
            self.settled.insert(number);
        }
        Some(result)
    }

    /// How far each entry came on its way to the orchestrator agent.
    pub(super) fn briefings(
        &mut self,
    ) -> impl Iterator<Item = (&BlockedAccess, bool, &mut Briefing)> {
        self.entries.values_mut().map(|it| (&it.access, it.decided, &mut it.briefing))
    }

    /// Lets nobody decide any more what an agent asked for that left.
    pub(super) fn forget(&mut self, agent: &AgentId, bus: &Bus) {
        let undecided =
            |entry: &&mut BoardEntry| !entry.decided && entry.access.key.agent == *agent;
        for entry in self.entries.values_mut().filter(undecided) {
            entry.decided = true;
            if entry.access.status == BlockedStatus::Pending {
                entry.settle = None;
                entry.access.status = BlockedStatus::Expired;
                self.settled.extend(number(&entry.access.id));
                bus.publish(Event::Blocked(entry.access.clone()));
            }
        }
    }

    /// Returns the undecided entries of the same agent, path and action, oldest first.
    pub(super) fn alike(&self, access: &BlockedAccess) -> impl Iterator<Item = &BoardEntry> {
        self.of_subject(&subject(access)).filter(|entry| !entry.decided)
    }

    /// Whether the agent was ever allowed this path and action, or got its content.
    pub(super) fn was_allowed(&self, request: &Request) -> bool {
        self.of_subject(&asked(request)).any(|entry| {
            matches!(entry.access.status, BlockedStatus::Allowed | BlockedStatus::Answered)
        })
    }

    /// Notes that a tool call completed that was denied this path and action; returns the denial.
    pub(super) fn completed(&mut self, request: &Request) -> Option<&BlockedAccess> {
        let denied = self
            .of_subject(&asked(request))
            .rfind(|entry| entry.access.status == BlockedStatus::Denied)?;
        let number = number(&denied.access.id)?;
        let denied = &mut self.entries.get_mut(&number)?.access;
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

    fn of_subject(
        &self,
        subject: &AccessKey,
    ) -> impl DoubleEndedIterator<Item = &BoardEntry> + use<'_> {
        let numbers = self.alike.get(subject).into_iter().flatten();
        numbers.filter_map(|number| self.entries.get(number))
    }

    fn forget_entry(&mut self, number: u64) {
        let Some(entry) = self.entries.remove(&number) else { return };
        let subject = subject(&entry.access);
        if let Some(numbers) = self.alike.get_mut(&subject) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.alike.remove(&subject);
            }
        }
    }
}

fn subject(access: &BlockedAccess) -> AccessKey {
    (access.key.agent.clone(), Arc::clone(&access.path), access.action)
}

fn asked(request: &Request) -> AccessKey {
    (request.key.agent.clone(), Arc::clone(&request.path), request.action)
}

fn number(id: &BlockedId) -> Option<u64> {
    id.as_str().strip_prefix('b')?.parse().ok()
}
