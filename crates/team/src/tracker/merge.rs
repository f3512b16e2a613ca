//! Merges many maps into one: greatest heat, any context, the latest action, all symbols. Applies
//! the changes of each map; does not know sessions or the wire.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use indexmap::IndexSet;

use super::heat::Changes;
use super::symbols::joined;
use crate::model::{FileNode, TimestampMs, Touch};

/// Identifies one of the merged maps; the smallest number wins between simultaneous actions.
pub(super) type Holder = u64;

#[derive(Default, Debug)]
pub(super) struct Merge {
    entries: HashMap<Arc<str>, MergedFile>,
    fresh: IndexSet<Arc<str>>,
}

#[derive(Debug)]
struct MergedFile {
    /// As of the last flush; None if it was not published yet.
    shown: Option<FileNode>,
    /// The node of each map, by holder.
    held: Vec<(Holder, FileNode)>,
}

impl Merge {
    /// Applies the changes of one map.
    pub(super) fn apply(&mut self, holder: Holder, changes: &Changes) {
        for node in &changes.updates {
            self.fresh.insert(Arc::clone(&node.path));
            let Some(entry) = self.entries.get_mut(&node.path) else {
                let entry = MergedFile { shown: None, held: vec![(holder, node.clone())] };
                self.entries.insert(Arc::clone(&node.path), entry);
                continue;
            };
            match entry.held.binary_search_by_key(&holder, |held| held.0) {
                Ok(place) => entry.held[place].1 = node.clone(),
                Err(place) => entry.held.insert(place, (holder, node.clone())),
            }
        }
        for path in &changes.removed {
            if let Some(entry) = self.entries.get_mut(path) {
                entry.held.retain(|held| held.0 != holder);
                self.fresh.insert(Arc::clone(path));
            }
        }
    }

    /// Returns the changes of the merged map.
    pub(super) fn flush(&mut self) -> Changes {
        let mut changes = Changes::default();
        for path in mem::take(&mut self.fresh) {
            let Some(entry) = self.entries.get_mut(&path) else { continue };
            match merged(&entry.held) {
                Some(node) if entry.shown.as_ref() != Some(&node) => {
                    entry.shown = Some(node.clone());
                    changes.updates.push(node);
                }
                Some(_) => {}
                None => {
                    if entry.shown.is_some() {
                        changes.removed.push(Arc::clone(&path));
                    }
                    self.entries.remove(&path);
                }
            }
        }
        if self.entries.is_empty() {
            self.entries = HashMap::new();
        }
        changes
    }

    /// Removes all published nodes, and marks every node as changed.
    pub(super) fn withdraw(&mut self) -> Changes {
        let mut paths: Vec<_> = self.entries.keys().cloned().collect();
        paths.sort_unstable();
        let mut take_back = |path: &Arc<str>| {
            self.entries.get_mut(path).is_some_and(|entry| entry.shown.take().is_some())
        };
        let removed = paths.iter().filter(|path| take_back(path)).cloned().collect();
        self.fresh = paths.into_iter().collect();
        Changes { updates: Vec::new(), removed }
    }

    /// All nodes as of the last flush, by path.
    pub(super) fn nodes(&self) -> Vec<FileNode> {
        let mut nodes: Vec<_> =
            self.entries.values().filter_map(|entry| entry.shown.clone()).collect();
        nodes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        nodes
    }
}

/// None if no session holds the path.
fn merged(held: &[(Holder, FileNode)]) -> Option<FileNode> {
    let ((_, first), others) = held.split_first()?;
    let mut whole = first.clone();
    for (_, node) in others {
        whole.heat = whole.heat.max(node.heat);
        whole.in_context |= node.in_context;
        if recency(node) > recency(&whole) {
            whole.last_action = node.last_action;
            whole.turn_accessed = node.turn_accessed;
            whole.timestamp_ms = node.timestamp_ms;
        }
        if let Some(symbols) = &node.symbols {
            whole.symbols = joined(whole.symbols.as_ref(), symbols);
        }
        whole.origin = match (whole.origin, node.origin) {
            (Some(one), Some(other)) => Some(one.and(other)),
            (one, other) => one.or(other),
        };
    }
    Some(whole)
}

fn recency(node: &FileNode) -> (TimestampMs, u8) {
    let weight = match node.last_action {
        Touch::Write => 2,
        Touch::Search => 1,
        Touch::UserProvided | Touch::UserReferenced | Touch::Read | Touch::Blocked => 0,
    };
    (node.timestamp_ms, weight)
}

#[cfg(test)]
mod tests;
