//! The graph of a workspace as it stands, and what a change of some files changes in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::calls::{self, Calls, Rule};
use super::facts::Facts;
use super::snapshot::{self, CallEdge, Node, Snapshot};

/// What is known of every file of a workspace, by its path, and of the calls among them.
#[derive(Default)]
pub struct Graph {
    files: BTreeMap<Arc<str>, Arc<Facts>>,
    calls: Calls,
}

/// What differs from one state of the graph to the next.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Change {
    /// Nodes that are new, and nodes that are no longer as they were.
    pub nodes: BTreeMap<Arc<str>, Node>,
    pub removed: BTreeSet<Arc<str>>,
    pub calls: BTreeSet<CallEdge>,
    pub removed_calls: BTreeSet<CallEdge>,
}

impl Graph {
    pub fn files(&self) -> &BTreeMap<Arc<str>, Arc<Facts>> {
        &self.files
    }

    /// Takes in files that changed, and those that are gone (None); returns what that changed.
    pub fn update(&mut self, files: BTreeMap<Arc<str>, Option<Arc<Facts>>>) -> Change {
        let mut change = Change::default();
        let touched: BTreeSet<Arc<str>> = files.keys().cloned().collect();
        let mut before = self.nodes_of(&touched);
        let changes = files.iter().map(|(path, facts)| (&**path, facts.as_deref()));
        let redone = self.calls.update(changes);
        change.calls = self.named(&redone.added);
        change.removed_calls = self.named(&redone.removed);
        for (path, facts) in files {
            match facts {
                Some(facts) => self.files.insert(path, facts),
                None => self.files.remove(&path),
            };
        }
        for (id, node) in self.nodes_of(&touched) {
            if before.remove(&id).as_ref() != Some(&node) {
                change.nodes.insert(id, node);
            }
        }
        change.removed = before.into_keys().collect();
        change
    }

    pub fn snapshot(&self) -> Snapshot {
        let mut nodes = Vec::new();
        let mut last = "";
        for (path, facts) in &self.files {
            nodes.extend(snapshot::nodes(path, facts));
            for folder in snapshot::folders(path) {
                // Of files beside each other, the folders are those of the one before.
                if last.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')) {
                    break;
                }
                nodes.push((folder.into(), Node::folder()));
            }
            last = path;
        }
        let edges: Vec<_> = self.calls.edges().collect();
        Snapshot {
            seq: 0,
            nodes: nodes.into_iter().collect(),
            calls: self.named(&edges).into_iter().collect(),
        }
    }

    /// How many calls were resolved by which rule.
    pub fn rules(&self) -> BTreeMap<Rule, usize> {
        let mut rules = BTreeMap::new();
        for edge in self.calls.edges() {
            *rules.entry(edge.rule).or_default() += 1;
        }
        rules
    }

    /// The nodes that files of these paths make, as far as there are such files.
    fn nodes_of(&self, paths: &BTreeSet<Arc<str>>) -> BTreeMap<Arc<str>, Node> {
        let mut nodes = BTreeMap::new();
        for path in paths {
            for folder in snapshot::folders(path) {
                if !nodes.contains_key(folder) && self.has_folder(folder) {
                    nodes.insert(folder.into(), Node::folder());
                }
            }
            if let Some((path, facts)) = self.files.get_key_value(path) {
                nodes.extend(snapshot::nodes(path, facts));
            }
        }
        nodes
    }

    /// Whether a file is in this folder, or below.
    fn has_folder(&self, folder: &str) -> bool {
        let below: Arc<str> = format!("{folder}/").into();
        self.files.range(below.clone()..).next().is_some_and(|(path, _)| path.starts_with(&*below))
    }

    fn named(&self, edges: &[calls::Edge]) -> BTreeSet<CallEdge> {
        let mut ids: BTreeMap<calls::End, Arc<str>> = BTreeMap::new();
        let mut id = |end| {
            let id = ids.entry(end).or_insert_with(|| {
                let mut id = String::new();
                self.calls.write_id(end, &mut id);
                id.into()
            });
            id.clone()
        };
        edges.iter().map(|edge| CallEdge { from: id(edge.from), to: id(edge.to) }).collect()
    }
}
