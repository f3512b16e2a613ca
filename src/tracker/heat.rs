//! The files that one session has touched, their heat, and which of them are in its context.
//! Knows nothing of sessions, usage or the wire; turns and times are passed in.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};

use super::told::Weight;
use crate::model::{FileNode, TimestampMs, Touch};

/// Below this heat a node is gone.
const COLD: f64 = 0.01;

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
    context: HashMap<Arc<str>, FileNode>,
    /// The paths in context by the turn of their last access: the oldest leave first.
    by_turn: BTreeMap<u64, IndexSet<Arc<str>>>,
    cooling: IndexMap<Arc<str>, FileNode>,
    /// Paths that changed since the last flush; they are shown as they are before they cool.
    fresh: IndexSet<Arc<str>>,
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
    pub(super) fn touch(
        &mut self,
        path: &Arc<str>,
        touch: Touch,
        weight: Weight,
        turn: u64,
        at: TimestampMs,
    ) {
        let known = self.get(path);
        let was_in_context = known.is_some_and(|node| node.in_context);
        let accessed = weight == Weight::Accessed;
        if was_in_context && weight == Weight::Glimpsed {
            return;
        }
        let node = FileNode {
            path: Arc::clone(known.map_or(path, |node| &node.path)),
            heat: 1.0,
            in_context: accessed || was_in_context,
            last_action: touch,
            turn_accessed: match known {
                Some(node) if was_in_context && !accessed => node.turn_accessed,
                _ => turn,
            },
            timestamp_ms: at,
        };
        // The same again within one instant is no change.
        if known != Some(&node) {
            self.put(node);
        }
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
        self.cooling.retain(|path, node| {
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
        let nodes = fresh.iter().filter_map(|path| self.get(path).cloned());
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
        let mut nodes: Vec<_> =
            self.context.values().chain(self.cooling.values()).cloned().collect();
        nodes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        nodes
    }

    fn get(&self, path: &str) -> Option<&FileNode> {
        self.context.get(path).or_else(|| self.cooling.get(path))
    }

    fn put(&mut self, node: FileNode) {
        let (path, turn) = (Arc::clone(&node.path), node.turn_accessed);
        self.fresh.insert(Arc::clone(&path));
        if !node.in_context {
            self.cooling.insert(path, node);
            return;
        }
        self.cooling.swap_remove(&path);
        let previous = self.context.insert(Arc::clone(&path), node);
        let previous_turn = previous.map(|node| node.turn_accessed);
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
        if let Some(mut node) = self.context.remove(path) {
            node.in_context = false;
            self.cooling.insert(Arc::clone(path), node);
            self.fresh.insert(Arc::clone(path));
        }
    }
}

#[cfg(test)]
mod tests;
