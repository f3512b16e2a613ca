//! The files that one session touched, with their heat and whether they are in its context. Does
//! not know sessions, usage or the wire; turns and times are passed in.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};

use super::session_input::{Weight, WriteSource};
use super::symbols::joined;
use crate::model::{FileNode, Lines, Origin, TimestampMs, Touch};

/// A node below this heat is removed.
const COLD: f64 = 0.01;

/// A claimed and a seen write of a file within these milliseconds are the same write.
pub(super) const SAME_WRITE_MS: TimestampMs = 5_000;

/// The changes since the last flush; each path at most once.
#[derive(Default, PartialEq, Debug)]
pub(super) struct Changes {
    pub(super) updates: Vec<FileNode>,
    pub(super) removed: Vec<Arc<str>>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.updates.is_empty() && self.removed.is_empty()
    }
}

/// The nodes of one session, in context and cooling ones apart: a tick visits only the latter.
#[derive(Default, Debug)]
pub(super) struct HeatMap {
    context: HashMap<Arc<str>, HeatNode>,
    /// The paths in context by the turn of their last access.
    by_turn: BTreeMap<u64, IndexSet<Arc<str>>>,
    cooling: IndexMap<Arc<str>, HeatNode>,
    /// Paths that changed since the last flush; they are published once before they cool.
    fresh: IndexSet<Arc<str>>,
}

/// A node with its unpublished state.
#[derive(Clone, PartialEq, Debug)]
struct HeatNode {
    node: FileNode,
    /// None without a write.
    writes: Option<Box<Writes>>,
}

/// The writes of a file.
#[derive(Clone, Default, PartialEq, Debug)]
struct Writes {
    claimed_at: Option<TimestampMs>,
    seen_at: Option<TimestampMs>,
    /// Symbols edited by the session's agent, in order; empty if they are not known; None if it
    /// edited nothing in its context.
    edited: Option<Arc<[Arc<str>]>>,
    /// The lines of the last edit, if they are known.
    lines: Lines,
}

/// The effect of a touch on a node.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    pub(super) touch: Touch,
    pub(super) weight: Weight,
    /// In order.
    pub(super) symbols: Vec<Arc<str>>,
    /// See [`Writes::edited`].
    pub(super) edited: Option<Vec<Arc<str>>>,
    /// The edited lines, if they are known.
    pub(super) lines: Lines,
    pub(super) written: WriteSource,
}

impl Effect {
    /// Without symbols and writes.
    pub(super) fn new(touch: Touch, weight: Weight) -> Self {
        let (lines, written) = (Lines::default(), WriteSource::default());
        Self { touch, weight, symbols: Vec::new(), edited: None, lines, written }
    }
}

/// A session's hold on a file in its context.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold<'a> {
    /// None if they are not known.
    pub(super) symbols: Option<&'a [Arc<str>]>,
    /// None if nothing was edited; empty if the symbols are not known.
    pub(super) edited: Option<&'a [Arc<str>]>,
    pub(super) timestamp_ms: TimestampMs,
}

impl HeatMap {
    pub(super) fn contains(&self, path: &str) -> bool {
        self.context.contains_key(path) || self.cooling.contains_key(path)
    }

    /// Whether a tick or a flush may change the map.
    pub(super) fn is_active(&self) -> bool {
        !self.fresh.is_empty() || !self.cooling.is_empty()
    }

    /// Heats `path`. [`Weight`] says how the touch affects the context; an access sets `turn`.
    pub(super) fn touch(&mut self, path: &Arc<str>, effect: &Effect, turn: u64, at: TimestampMs) {
        let held = self.get(path);
        let known = held.map(|held| &held.node);
        let was_in_context = known.is_some_and(|node| node.in_context);
        // A context is the part of the workspace that an agent works on.
        let accessed = effect.weight == Weight::Accessed && !path.starts_with('/');
        if was_in_context && effect.weight == Weight::Glimpsed {
            // A write may be merged into it.
            return self.wrote(path, effect.written, at);
        }
        let in_context = accessed || was_in_context;
        let mut writes = held.and_then(|held| held.writes.clone());
        if effect.written != WriteSource::default() {
            writes.get_or_insert_default().note(effect.written, at);
        }
        if let (Some(writes), Some(edited)) = (&mut writes, &effect.edited) {
            writes.edit(edited);
        }
        if let (Some(writes), true) = (&mut writes, effect.lines.are_known()) {
            writes.lines = effect.lines.clone();
        }
        let symbols = known.and_then(|node| node.symbols.as_ref());
        let node = FileNode {
            path: Arc::clone(known.map_or(path, |node| &node.path)),
            heat: 1.0,
            in_context,
            last_action: effect.touch,
            turn_accessed: match known {
                Some(node) if was_in_context && !accessed => node.turn_accessed,
                _ => turn,
            },
            timestamp_ms: at,
            symbols: joined(symbols, &effect.symbols).filter(|_| in_context),
            origin: writes.as_ref().and_then(|writes| writes.origin()),
        };
        let new = HeatNode { node, writes };
        // A repeated touch within one millisecond is no change.
        if held != Some(&new) {
            self.put(new);
        }
    }

    /// Records the source of a write, without a touch; ignored for a file that is not on the map.
    pub(super) fn wrote(&mut self, path: &Arc<str>, written: WriteSource, at: TimestampMs) {
        let place = self.context.get_mut(path).or_else(|| self.cooling.get_mut(path));
        let Some(held) = place.filter(|_| written != WriteSource::default()) else { return };
        let writes = held.writes.get_or_insert_default();
        writes.note(written, at);
        if held.node.origin != writes.origin() {
            held.node.origin = writes.origin();
            self.fresh.insert(Arc::clone(path));
        }
    }

    /// Whether the last claimed or seen write of a file is the one at `at`.
    pub(super) fn knows_write(&self, path: &str, at: TimestampMs) -> bool {
        let writes = self.get(path).and_then(|held| held.writes.as_ref());
        writes.is_some_and(|writes| {
            let is_same = |time: &TimestampMs| time.abs_diff(at) <= SAME_WRITE_MS;
            writes.claimed_at.iter().chain(&writes.seen_at).any(is_same)
        })
    }

    /// The lines edited in the write that the disk showed at `at`, if they are known.
    pub(super) fn edited_lines(&self, path: &str, at: TimestampMs) -> Option<&Lines> {
        let writes = self.context.get(path)?.writes.as_ref()?;
        let is_same = writes.claimed_at.is_some_and(|time| time.abs_diff(at) <= SAME_WRITE_MS);
        Some(&writes.lines).filter(|lines| is_same && lines.are_known())
    }

    /// Adds edited symbols to a file in context.
    pub(super) fn add_symbols(&mut self, path: &Arc<str>, symbols: &[Arc<str>]) {
        let Some(HeatNode { node, writes: Some(writes) }) = self.context.get_mut(path) else {
            return;
        };
        if symbols.is_empty() {
            return;
        }
        let before = (node.symbols.clone(), writes.edited.clone());
        node.symbols = joined(node.symbols.as_ref(), symbols);
        writes.edit(symbols);
        if before != (node.symbols.clone(), writes.edited.clone()) {
            self.fresh.insert(Arc::clone(path));
        }
    }

    /// The hold on a file; None if it is not in context.
    pub(super) fn hold(&self, path: &str) -> Option<Hold<'_>> {
        let HeatNode { node, writes } = self.context.get(path)?;
        Some(Hold {
            symbols: node.symbols.as_deref(),
            edited: writes.as_ref().and_then(|writes| writes.edited.as_deref()),
            timestamp_ms: node.timestamp_ms,
        })
    }

    /// Removes a file that is not in context.
    pub(super) fn remove(&mut self, path: &Arc<str>) -> Changes {
        let known = self.cooling.swap_remove(path).is_some();
        self.fresh.swap_remove(path);
        let removed = known.then(|| Arc::clone(path)).into_iter().collect();
        Changes { updates: Vec::new(), removed }
    }

    /// Ends `turn`: files not accessed for `context_turns` turns leave the context.
    pub(super) fn end_turn(&mut self, turn: u64, context_turns: u64) {
        while let Some(oldest) = self.by_turn.first_entry()
            && turn.saturating_sub(*oldest.key()) > context_turns
        {
            for path in oldest.remove() {
                self.leave_context(&path);
            }
        }
    }

    /// Removes every file from the context.
    pub(super) fn compact(&mut self) {
        for path in mem::take(&mut self.by_turn).into_values().flatten() {
            self.leave_context(&path);
        }
        // A new map frees the capacity, which iteration pays for.
        self.context = HashMap::new();
    }

    /// Cools the published nodes outside the context by one tick, and returns the changes.
    pub(super) fn tick(&mut self, decay_rate: f64) -> Changes {
        let mut changes = Changes::default();
        let fresh = &self.fresh;
        self.cooling.retain(|path, HeatNode { node, .. }| {
            if fresh.contains(path) {
                return true;
            }
            let heat = node.heat * decay_rate;
            if heat < COLD {
                changes.removed.push(Arc::clone(path));
                return false;
            }
            if heat < node.heat {
                node.heat = heat;
                changes.updates.push(node.clone());
            }
            true
        });
        if self.cooling.is_empty() {
            self.cooling = IndexMap::new();
        }
        changes.updates.extend(self.flush().updates);
        changes
    }

    /// Returns the changes, without a tick.
    pub(super) fn flush(&mut self) -> Changes {
        // Taken, not drained: clearing a set costs its capacity.
        let fresh = mem::take(&mut self.fresh);
        let nodes = fresh.iter().filter_map(|path| Some(self.get(path)?.node.clone()));
        Changes { updates: nodes.collect(), removed: Vec::new() }
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) -> Changes {
        let all = mem::take(self);
        let removed = all.by_turn.into_values().flatten().chain(all.cooling.into_keys()).collect();
        Changes { updates: Vec::new(), removed }
    }

    /// Marks every node as changed, to publish it again.
    pub(super) fn show_again(&mut self) {
        let paths = self.by_turn.values().flatten().chain(self.cooling.keys());
        self.fresh = paths.cloned().collect();
    }

    /// All nodes, by path.
    pub(super) fn nodes(&self) -> Vec<FileNode> {
        let mut nodes: Vec<_> = self
            .context
            .values()
            .chain(self.cooling.values())
            .map(|held| held.node.clone())
            .collect();
        nodes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        nodes
    }

    fn get(&self, path: &str) -> Option<&HeatNode> {
        self.context.get(path).or_else(|| self.cooling.get(path))
    }

    fn put(&mut self, held: HeatNode) {
        let (path, turn) = (Arc::clone(&held.node.path), held.node.turn_accessed);
        self.fresh.insert(Arc::clone(&path));
        if !held.node.in_context {
            self.cooling.insert(path, held);
            return;
        }
        self.cooling.swap_remove(&path);
        let previous = self.context.insert(Arc::clone(&path), held);
        let previous_turn = previous.map(|held| held.node.turn_accessed);
        if previous_turn == Some(turn) {
            return;
        }
        if let Some(previous_turn) = previous_turn
            && let Some(paths) = self.by_turn.get_mut(&previous_turn)
        {
            paths.swap_remove(&path);
            if paths.is_empty() {
                self.by_turn.remove(&previous_turn);
            }
        }
        self.by_turn.entry(turn).or_default().insert(path);
    }

    /// `path` is no longer in `by_turn`.
    fn leave_context(&mut self, path: &Arc<str>) {
        if let Some(mut held) = self.context.remove(path) {
            (held.node.in_context, held.node.symbols) = (false, None);
            if let Some(writes) = &mut held.writes {
                (writes.edited, writes.lines) = (None, Lines::default());
            }
            self.cooling.insert(Arc::clone(path), held);
            self.fresh.insert(Arc::clone(path));
        }
    }
}

impl Writes {
    fn note(&mut self, written: WriteSource, at: TimestampMs) {
        if written.claimed {
            self.claimed_at = Some(at);
        }
        if written.seen {
            self.seen_at = Some(at);
        }
    }

    /// Known symbols replace an edit of unknown symbols.
    fn edit(&mut self, edited: &[Arc<str>]) {
        self.edited = match self.edited.take() {
            Some(known) => joined(Some(&known), edited),
            None => Some(edited.into()),
        };
    }

    fn origin(&self) -> Option<Origin> {
        Some(match (self.claimed_at, self.seen_at) {
            (None, None) => return None,
            (Some(claimed), Some(seen)) if claimed.abs_diff(seen) <= SAME_WRITE_MS => {
                Origin::Confirmed
            }
            (Some(claimed), seen) if seen.is_none_or(|seen| seen < claimed) => Origin::Claimed,
            _ => Origin::Observed,
        })
    }
}

#[cfg(test)]
mod tests;
