//! What waits for a person: accesses, writes in conflict, and budgets that are used up.

use std::collections::HashSet;

use indexmap::IndexMap;
use serde_json::Value;

use super::fields::Fields;

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
    /// Of a budget: the agent; empty for the team's.
    pub id: String,
}

/// Something that waits, with its line of the port.
#[derive(Clone, Copy, Debug)]
pub struct Undecided<'a> {
    pub kind: CardKind,
    pub id: &'a str,
    pub fields: &'a Fields,
    /// The whole line.
    pub line: &'a Value,
}

impl<'a> Undecided<'a> {
    pub fn name(&self) -> CardId {
        CardId { kind: self.kind, id: self.id.to_owned() }
    }

    pub fn is(&self, name: &CardId) -> bool {
        self.kind == name.kind && self.id == name.id
    }

    /// The agent that it holds up; empty: the whole team.
    pub fn agent(&self) -> &'a str {
        self.fields.agent()
    }
}

/// A line with the fields that are read often.
#[derive(Clone, Debug)]
pub(super) struct ShownLine {
    pub(super) fields: Fields,
    pub(super) line: Value,
}

impl ShownLine {
    pub(super) fn new(line: Value) -> Self {
        Self { fields: Fields::of(&line), line }
    }
}

/// Lines of one kind that wait for a decision, oldest first.
#[derive(Debug, Default)]
pub(super) struct PendingList {
    lines: IndexMap<String, ShownLine>,
    /// What was decided while the list is on its way: the list may still have it.
    decided: Option<HashSet<String>>,
}

impl PendingList {
    /// Empty, with the list on its way.
    pub(super) fn joined() -> Self {
        Self { lines: IndexMap::new(), decided: Some(HashSet::new()) }
    }

    pub(super) fn clear(&mut self) {
        self.lines.clear();
    }

    /// Takes the list; what the stream said meanwhile is later.
    pub(super) fn set(&mut self, list: &Value) {
        let decided = self.decided.take().unwrap_or_default();
        let later = std::mem::take(&mut self.lines);
        for line in list.as_array().into_iter().flatten() {
            let line = ShownLine::new(line.clone());
            if line.fields.id.as_ref().is_some_and(|id| !decided.contains(id)) {
                self.line(line);
            }
        }
        self.lines.extend(later);
    }

    /// Takes a line; false if it names nothing.
    pub(super) fn line(&mut self, line: ShownLine) -> bool {
        let Some(id) = line.fields.id.clone() else { return false };
        if line.fields.status != "pending" {
            self.lines.shift_remove(&id);
            if let Some(decided) = self.decided.as_mut().filter(|it| it.len() < MOST_PENDING) {
                decided.insert(id);
            }
        } else if self.lines.len() < MOST_PENDING || self.lines.contains_key(&id) {
            self.lines.insert(id, line);
        }
        true
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &ShownLine)> {
        self.lines.iter().map(|(id, line)| (id.as_str(), line))
    }
}
