//! Items that wait for a person: accesses, writes in conflict, and budgets that are used up.

use std::collections::HashSet;

use indexmap::IndexMap;

use crate::model::{BlockedStatus, ConflictStatus};
use crate::wire::{Blocked, Budget, ConflictLine};

/// Accesses, or conflicts, that wait; the port bounds them too.
const MOST_PENDING: usize = 10_000;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CardKind {
    Access,
    Conflict,
    Budget,
}

/// Names what waits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CardId {
    pub kind: CardKind,
    /// For a budget, the agent; empty for the team's.
    pub id: String,
}

/// Something that waits.
#[derive(Clone, Copy, Debug)]
pub enum Undecided<'a> {
    Access(&'a Blocked<'static>),
    Conflict(&'a ConflictLine<'static>),
    Budget(&'a Budget<'static>),
}

impl<'a> Undecided<'a> {
    pub fn kind(self) -> CardKind {
        match self {
            Self::Access(_) => CardKind::Access,
            Self::Conflict(_) => CardKind::Conflict,
            Self::Budget(_) => CardKind::Budget,
        }
    }

    pub fn id(self) -> &'a str {
        match self {
            Self::Access(access) => &access.id,
            Self::Conflict(conflict) => &conflict.id,
            Self::Budget(budget) => budget.agent_id.as_deref().unwrap_or_default(),
        }
    }

    pub fn name(self) -> CardId {
        CardId { kind: self.kind(), id: self.id().to_owned() }
    }

    pub fn is(self, name: &CardId) -> bool {
        self.kind() == name.kind && self.id() == name.id
    }

    /// The agent that it holds up; empty: the whole team.
    pub fn agent(self) -> &'a str {
        match self {
            Self::Access(access) => &access.session.agent_id,
            Self::Conflict(conflict) => conflict.writer(),
            Self::Budget(budget) => budget.agent_id.as_deref().unwrap_or_default(),
        }
    }

    pub fn timestamp_ms(self) -> u64 {
        match self {
            Self::Access(access) => access.timestamp_ms,
            Self::Conflict(conflict) => conflict.timestamp_ms,
            Self::Budget(budget) => budget.timestamp_ms,
        }
    }
}

/// A line of what waits for a decision, or did.
pub(super) trait PendingLine {
    fn id(&self) -> &str;

    fn is_pending(&self) -> bool;
}

impl PendingLine for Blocked<'_> {
    fn id(&self) -> &str {
        &self.id
    }

    fn is_pending(&self) -> bool {
        self.status == BlockedStatus::Pending
    }
}

impl PendingLine for ConflictLine<'_> {
    fn id(&self) -> &str {
        &self.id
    }

    fn is_pending(&self) -> bool {
        self.status == ConflictStatus::Pending
    }
}

/// Lines of one kind that wait for a decision, oldest first.
#[derive(Debug)]
pub(super) struct PendingList<T> {
    lines: IndexMap<String, T>,
    /// The ids of lines that were decided while the list is on its way: the list may still have them.
    decided: Option<HashSet<String>>,
}

impl<T> Default for PendingList<T> {
    fn default() -> Self {
        Self { lines: IndexMap::new(), decided: None }
    }
}

impl<T: PendingLine> PendingList<T> {
    /// Empty, with the list on its way.
    pub(super) fn joined() -> Self {
        Self { lines: IndexMap::new(), decided: Some(HashSet::new()) }
    }

    pub(super) fn clear(&mut self) {
        self.lines.clear();
    }

    /// Takes the list; what the stream said meanwhile is later.
    pub(super) fn set(&mut self, list: Vec<T>) {
        let decided = self.decided.take().unwrap_or_default();
        let later = std::mem::take(&mut self.lines);
        for line in list.into_iter().filter(|line| !decided.contains(line.id())) {
            self.line(line);
        }
        self.lines.extend(later);
    }

    pub(super) fn line(&mut self, line: T) {
        let id = line.id().to_owned();
        if !line.is_pending() {
            self.lines.shift_remove(&id);
            if let Some(decided) = self.decided.as_mut().filter(|it| it.len() < MOST_PENDING) {
                decided.insert(id);
            }
        } else if self.lines.len() < MOST_PENDING || self.lines.contains_key(&id) {
            self.lines.insert(id, line);
        }
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        self.lines.values()
    }
}
