//! All blocked accesses in order of their ids, with an index by agent, path and action: one agent's
//! thousands of denials must not slow the next denial of another.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{AccessScope, Request, Settlement};
use crate::bus::Bus;
use crate::model::{
    Action, AgentId, BlockedAccess, BlockedId, BlockedStatus, Event, SessionId, Via,
};
use crate::preview::Wanted;

/// Settled accesses that are kept; the oldest is dropped first. Pending ones are always kept.
const REMEMBERED: usize = 10_000;

/// A blocked access and the state of its decision.
#[derive(Debug)]
pub(super) struct BoardEntry {
    pub(super) access: BlockedAccess,
    pub(super) scope: AccessScope,
    /// A decision can allow it, or the next equal one.
    pub(super) grantable: bool,
    /// No decision can follow.
    pub(super) decided: bool,
    /// The sessions in which its agent may have asked for it, besides the access's own.
    pub(super) sessions: Vec<SessionId>,
    /// Its progress towards the orchestrator agent.
    pub(super) briefing: Briefing,
    /// When its agent gives up by its own limit, where that is known.
    pub(super) gives_up: Option<Instant>,
    /// Why its requests are about to be withdrawn, if that is known.
    pub(super) over: Option<Arc<str>>,
    /// The content that it would write, while it is pending.
    pub(super) wanted: Option<Wanted>,
    /// The requests that wait for its decision: one operation of an agent may come in several ways.
    pub(super) waiters: Vec<Waiter>,
}

/// A request that waits for a decision.
#[derive(Debug)]
pub(super) struct Waiter {
    /// Unique in the team.
    pub(super) number: u64,
    pub(super) via: Via,
    /// The process whose call the kernel stopped.
    pub(super) caller: Option<u32>,
    /// The tool call that it belongs to, as far as that is certain.
    pub(super) call: Option<Arc<str>>,
    /// The call makes a folder for the file, which another process may write.
    pub(super) is_for_folder: bool,
    pub(super) settle: oneshot::Sender<Settlement>,
}

impl BoardEntry {
    /// The request that would ask for it again.
    pub(super) fn request(&self) -> Request {
        let BlockedAccess { key, path, action, via, denied_by, reason, .. } = self.access.clone();
        Request {
            scope: self.scope,
            grantable: self.grantable,
            denied_by,
            reason,
            ..Request::again(key, path, action, via)
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Briefing {
    /// The orchestrator agent does not decide it, or an equal one is in a briefing.
    None,
    Waiting,
    /// In the running prompt.
    Prompting,
    Prompted,
}

/// The fields that equal accesses share.
type AccessKey = (AgentId, Arc<str>, Action);

#[derive(Debug, Default)]
pub(super) struct Board {
    /// By the number in their ids.
    entries: BTreeMap<u64, BoardEntry>,
    /// Entries that are not pending.
    settled: BTreeSet<u64>,
    /// Entries by their key, without sweeps.
    alike: HashMap<AccessKey, BTreeSet<u64>>,
    /// Bytes of what the pending ones would write.
    wanted_bytes: usize,
    last: u64,
}

impl Board {
    pub(super) fn next_id(&mut self) -> BlockedId {
        self.last += 1;
        BlockedId::new(format!("b{}", self.last))
    }

    /// Adds an entry with an id of [`Self::next_id`]; returns what is forgotten for it.
    pub(super) fn insert(&mut self, entry: BoardEntry) -> Option<BlockedAccess> {
        let is_full = self.entries.len() >= REMEMBERED;
        let oldest = if is_full { self.settled.pop_first() } else { None };
        let forgotten = oldest.and_then(|oldest| self.forget_entry(oldest));
        let Some(number) = number(&entry.access.id) else { return forgotten };
        if entry.access.sweep.is_none() {
            self.alike.entry(key(&entry.access)).or_default().insert(number);
        }
        if entry.access.status != BlockedStatus::Pending {
            self.settled.insert(number);
        }
        self.entries.insert(number, entry);
        forgotten
    }

    pub(super) fn get(&self, id: &BlockedId) -> Option<&BoardEntry> {
        self.entries.get(&number(id)?).filter(|entry| entry.access.id == *id)
    }

    /// Changes an entry, except its key.
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
            self.wanted_bytes -= entry.wanted.take().map_or(0, |wanted| wanted.bytes());
        }
        Some(result)
    }

    /// Keeps what a pending access would write, in place of what it would before.
    pub(super) fn want(&mut self, id: &BlockedId, wanted: Option<Wanted>) {
        let entry = number(id).and_then(|number| self.entries.get_mut(&number));
        let is_pending = |entry: &&mut BoardEntry| entry.access.status == BlockedStatus::Pending;
        let Some(entry) = entry.filter(is_pending) else { return };
        let others = self.wanted_bytes - entry.wanted.as_ref().map_or(0, Wanted::bytes);
        let wanted = wanted.map(|it| it.beside(others));
        self.wanted_bytes = others + wanted.as_ref().map_or(0, Wanted::bytes);
        entry.wanted = wanted;
    }

    /// All entries with whether they are decided, and their progress towards the orchestrator
    /// agent.
    pub(super) fn briefings(
        &mut self,
    ) -> impl Iterator<Item = (&BlockedAccess, bool, &mut Briefing)> {
        self.entries.values_mut().map(|it| (&it.access, it.decided, &mut it.briefing))
    }

    /// Expires the undecided accesses of an agent that left.
    pub(super) fn forget(&mut self, agent: &AgentId, bus: &Bus) {
        let undecided =
            |entry: &&mut BoardEntry| !entry.decided && entry.access.key.agent == *agent;
        for entry in self.entries.values_mut().filter(undecided) {
            entry.decided = true;
            if entry.access.status == BlockedStatus::Pending {
                entry.waiters.clear();
                entry.access.status = BlockedStatus::Expired;
                entry.access.offered = None;
                self.wanted_bytes -= entry.wanted.take().map_or(0, |wanted| wanted.bytes());
                self.settled.extend(number(&entry.access.id));
                bus.publish(Event::Blocked(entry.access.clone()));
            }
        }
    }

    /// Returns the undecided entries of the same agent, path and action, oldest first.
    pub(super) fn alike(&self, access: &BlockedAccess) -> impl Iterator<Item = &BoardEntry> {
        self.of_key(&key(access)).filter(|entry| !entry.decided)
    }

    /// The undecided entries that equal a request, oldest first.
    pub(super) fn requested(&self, request: &Request) -> impl Iterator<Item = &BoardEntry> {
        self.of_key(&requested_key(request)).filter(|entry| !entry.decided)
    }

    /// The pending entries, oldest first.
    pub(super) fn pending(&self) -> impl Iterator<Item = &BoardEntry> {
        self.entries.values().filter(|entry| entry.access.status == BlockedStatus::Pending)
    }

    /// Whether an equal access of the agent was ever allowed or answered.
    pub(super) fn was_allowed(&self, request: &Request) -> bool {
        self.of_key(&requested_key(request)).any(|entry| {
            matches!(entry.access.status, BlockedStatus::Allowed | BlockedStatus::Answered)
        })
    }

    /// Records that a tool call completed though an equal access was denied; returns the denial.
    pub(super) fn completed(&mut self, request: &Request) -> Option<&BlockedAccess> {
        let denied = self
            .of_key(&requested_key(request))
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

    fn of_key(&self, key: &AccessKey) -> impl DoubleEndedIterator<Item = &BoardEntry> + use<'_> {
        let numbers = self.alike.get(key).into_iter().flatten();
        numbers.filter_map(|number| self.entries.get(number))
    }

    fn forget_entry(&mut self, number: u64) -> Option<BlockedAccess> {
        let entry = self.entries.remove(&number)?;
        let key = key(&entry.access);
        if let Some(numbers) = self.alike.get_mut(&key) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.alike.remove(&key);
            }
        }
        Some(entry.access)
    }
}

fn key(access: &BlockedAccess) -> AccessKey {
    (access.key.agent.clone(), Arc::clone(&access.path), access.action)
}

fn requested_key(request: &Request) -> AccessKey {
    (request.key.agent.clone(), Arc::clone(&request.path), request.action)
}

fn number(id: &BlockedId) -> Option<u64> {
    id.as_str().strip_prefix('b')?.parse().ok()
}
