//! The files that one session has touched, their heat, and which of them are in its context.
//! Knows nothing of sessions, usage or the wire; turns and times are passed in.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};

use super::session_input::{Weight, WriteSource};
use super::symbols::joined;
use crate::model::{FileNode, Lines, Origin, TimestampMs, Touch};

/// Below this heat a node is gone.
const COLD: f64 = 0.01;

/// A claim and a sight of a file's writing that are no farther apart are of the same write, in
/// milliseconds.
pub(super) const SAME_WRITE_MS: TimestampMs = 5_000;

/// What changed since the last changes were taken; each path at most once.
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

/// The nodes of one session. Those in context and those that cool down live apart, so that a tick
/// visits only what changes by itself.
#[derive(Default, Debug)]
pub(super) struct HeatMap {
    context: HashMap<Arc<str>, HeatNode>,
    /// The paths in context by the turn of their last access: the oldest leave first.
    by_turn: BTreeMap<u64, IndexSet<Arc<str>>>,
    cooling: IndexMap<Arc<str>, HeatNode>,
    /// Paths that changed since the last flush; they are shown as they are before they cool.
    fresh: IndexSet<Arc<str>>,
}

/// A node, and what of it is shown only by what follows from it.
#[derive(Clone, PartialEq, Debug)]
struct HeatNode {
    node: FileNode,
    /// None if nobody wrote it.
    writes: Option<Box<Writes>>,
}

/// How a file was written.
#[derive(Clone, Default, PartialEq, Debug)]
struct Writes {
    claimed_at: Option<TimestampMs>,
    seen_at: Option<TimestampMs>,
    /// Symbols that the session's agent edited, in order; none if it is not known which; None if it
    /// edited nothing of what is in its context.
    edited: Option<Arc<[Arc<str>]>>,
    /// The lines of the last edit, if they are known.
    lines: Lines,
}

/// What a touch does to a node.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    pub(super) touch: Touch,
    pub(super) weight: Weight,
    /// In order.
    pub(super) symbols: Vec<Arc<str>>,
    /// As of [`Writes`].
    pub(super) edited: Option<Vec<Arc<str>>>,
    /// Those that are edited, if they are known.
    pub(super) lines: Lines,
    pub(super) written: WriteSource,
}

impl Effect {
    /// One that says nothing of symbols and writes.
    pub(super) fn new(touch: Touch, weight: Weight) -> Self {
        let (lines, written) = (Lines::default(), WriteSource::default());
        Self { touch, weight, symbols: Vec::new(), edited: None, lines, written }
    }
}

/// What of a file is in context.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold<'a> {
    /// None if they are not known.
    pub(super) symbols: Option<&'a [Arc<str>]>,
    /// None if nothing was edited; empty if it is not known what.
    pub(super) edited: Option<&'a [Arc<str>]>,
    pub(super) timestamp_ms: TimestampMs,
}

impl HeatMap {
    pub(super) fn contains(&self, path: &str) -> bool {
        self.context.contains_key(path) || self.cooling.contains_key(path)
    }

    /// Whether a tick or a flush has something to do here.
    pub(super) fn is_active(&self) -> bool {
        !self.fresh.is_empty() || !self.cooling.is_empty()
    }

    /// Heats `path`. An access puts it into the context in `turn`; a mere mark leaves it where it
    /// is, and its turn too if that is the context; a glimpse leaves a file in context alone.
    pub(super) fn touch(&mut self, path: &Arc<str>, effect: &Effect, turn: u64, at: TimestampMs) {
        let held = self.get(path);
        let known = held.map(|held| &held.node);
        let was_in_context = known.is_some_and(|node| node.in_context);
        let accessed = effect.weight == Weight::Accessed;
        if was_in_context && effect.weight == Weight::Glimpsed {
            // A write may have been merged with it.
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
        // The same again within one instant is no change.
        if held != Some(&new) {
            self.put(new);
        }
    }

    /// Takes note of who tells of a write, without touching the file; nothing comes of one that is
    /// not on the map.
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

    /// Whether the last that was told or seen of a file's writing is of a write at `at`.
    pub(super) fn knows_write(&self, path: &str, at: TimestampMs) -> bool {
        let writes = self.get(path).and_then(|held| held.writes.as_ref());
        writes.is_some_and(|writes| {
            let of_it = |told: &TimestampMs| told.abs_diff(at) <= SAME_WRITE_MS;
            writes.claimed_at.iter().chain(&writes.seen_at).any(of_it)
        })
    }

    /// The lines that were edited in the write that the disk shows at `at`, if they are known.
    pub(super) fn edited_lines(&self, path: &str, at: TimestampMs) -> Option<&Lines> {
        let writes = self.context.get(path)?.writes.as_ref()?;
        let of_it = writes.claimed_at.is_some_and(|told| told.abs_diff(at) <= SAME_WRITE_MS);
        Some(&writes.lines).filter(|lines| of_it && lines.are_known())
    }

    /// Adds symbols to what was edited of a file in context.
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

    /// What of the file is in context; None if it is not.
    pub(super) fn hold(&self, path: &str) -> Option<Hold<'_>> {
        let HeatNode { node, writes } = self.context.get(path)?;
        Some(Hold {
            symbols: node.symbols.as_deref(),
            edited: writes.as_ref().and_then(|writes| writes.edited.as_deref()),
            timestamp_ms: node.timestamp_ms,
        })
    }

    /// Removes one that is not in context.
    pub(super) fn remove(&mut self, path: &Arc<str>) -> Changes {
        let known = self.cooling.swap_remove(path).is_some();
        self.fresh.swap_remove(path);
        let removed = known.then(|| Arc::clone(path)).into_iter().collect();
        Changes { updates: Vec::new(), removed }
    }

    /// Lets go what was not accessed in the last `context_turns` turns before the end of `turn`.
    pub(super) fn end_turn(&mut self, turn: u64, context_turns: u64) {
        while let Some(oldest) = self.by_turn.first_entry()
            && turn.saturating_sub(*oldest.key()) > context_turns
        {
            for path in oldest.remove() {
                self.leave_context(&path);
            }
        }
    }

    /// Lets everything go out of the context.
    pub(super) fn compact(&mut self) {
        for path in mem::take(&mut self.by_turn).into_values().flatten() {
            self.leave_context(&path);
        }
        // Gives the room back, which iteration would go on paying for.
        self.context = HashMap::new();
    }

    /// Cools by one tick what was shown outside the context before, and returns what changed.
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

    /// Returns what changed, with no tick passing.
    pub(super) fn flush(&mut self) -> Changes {
        // Taken, not drained: clearing a set costs what it once held.
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

    /// Takes every node for changed: whoever was shown them is gone.
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
                writes.edited = None;
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

    /// What is known more closely takes the place of the whole file.
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
