//! The graph of a workspace, and the change of it that a change of files makes.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher as _;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::calls::{self, Calls, Rule};
use super::facts::{Facts, Lines, Symbol};
use super::snapshot::{self, CallEdge, Node, Snapshot};

/// The files of a workspace by path, and the calls between their symbols.
pub struct Graph {
    files: BTreeMap<Arc<str>, File>,
    calls: Calls,
}

/// A file of the graph; its calls are in [`Calls`].
struct File {
    /// Without calls, bases and imports, which [`Calls`] keeps in less memory.
    facts: Facts,
    /// The hash of all facts.
    hash: u64,
}

/// Facts of files by path; None: the file was removed.
pub type Files = BTreeMap<Arc<str>, Option<Arc<Facts>>>;

/// The difference between two states of the graph.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Change {
    /// Nodes that are new, by id.
    pub added: BTreeMap<Arc<str>, Node>,
    /// Nodes that changed, in their new state, by id.
    pub changed: BTreeMap<Arc<str>, Node>,
    /// Ids of nodes that are gone.
    pub removed: BTreeSet<Arc<str>>,
    /// In order, as `removed_calls`.
    pub added_calls: Vec<CallEdge>,
    /// Calls that are gone, in order.
    pub removed_calls: Vec<CallEdge>,
}

impl Change {
    /// Whether the two states are equal.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Graph {
    /// The paths of all files, in order.
    pub fn paths(&self) -> impl Iterator<Item = &Arc<str>> {
        self.files.keys()
    }

    /// The file at a path, or those of the folder; those of the root for an empty one.
    pub fn files_at(&self, path: &str) -> impl Iterator<Item = &Arc<str>> {
        let below = if path.is_empty() { String::new() } else { format!("{path}/") };
        let from = (Bound::Included(below.as_str()), Bound::Unbounded);
        let inside = self.files.range::<str, _>(from).map(|(id, _)| id);
        let file = self.files.get_key_value(path).map(|(id, _)| id);
        let inside: Vec<_> = inside.take_while(|id| id.starts_with(&below)).collect();
        file.into_iter().chain(inside)
    }

    /// The graph of a workspace without files.
    pub fn of(root: &Path) -> Self {
        let real = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
        let name = real.file_name().unwrap_or_default().to_string_lossy();
        Self { files: BTreeMap::new(), calls: Calls::of(&name) }
    }

    /// Returns the graph of these files and its snapshot, made by `jobs` threads.
    pub fn new(root: &Path, files: Files, jobs: usize) -> (Self, Snapshot) {
        let mut graph = Self::of(root);
        let files: BTreeMap<_, _> =
            files.into_iter().filter_map(|(path, facts)| Some((path, facts?))).collect();
        let all_nodes = || snapshot::all_nodes(files.iter().map(|(path, facts)| (path, &**facts)));
        let nodes = std::thread::scope(|scope| {
            // Most of the time, one thread works at the calls.
            let beside = (jobs > 1).then(|| scope.spawn(all_nodes));
            let all = files.iter().map(|(path, facts)| (&**path, Some(&**facts)));
            graph.calls.update(all, jobs);
            beside.and_then(|nodes| nodes.join().ok())
        });
        let nodes = nodes.unwrap_or_else(all_nodes);
        graph.files = files.into_iter().map(|(path, facts)| (path, File::of(facts))).collect();
        let snapshot = graph.shown(nodes);
        (graph, snapshot)
    }

    /// Takes in files, unchanged ones too, on `jobs` threads. Returns the changes.
    pub fn update(&mut self, mut files: Files, jobs: usize) -> Change {
        files.retain(|path, facts| {
            self.files.get(path).map(|file| file.hash) != facts.as_deref().map(hash)
        });
        let mut change = Change::default();
        let touched: BTreeSet<Arc<str>> = files.keys().cloned().collect();
        let mut before = self.nodes_of(&touched);
        let changes = files.iter().map(|(path, facts)| (&**path, facts.as_deref()));
        let edges = self.calls.update(changes, jobs);
        change.added_calls = self.named(&edges.added);
        change.removed_calls = self.named(&edges.removed);
        for (path, facts) in files {
            match facts {
                Some(facts) => self.files.insert(path, File::of(facts)),
                None => self.files.remove(&path),
            };
        }
        for (id, node) in self.nodes_of(&touched) {
            match before.remove(&id) {
                Some(old) if old == node => {}
                Some(_) => drop(change.changed.insert(id, node)),
                None => drop(change.added.insert(id, node)),
            }
        }
        change.removed = before.into_keys().collect();
        change
    }

    /// Returns all nodes and calls, with `seq` 0.
    pub fn snapshot(&self) -> Snapshot {
        let files = self.files.iter().map(|(path, file)| (path, &file.facts));
        self.shown(snapshot::all_nodes(files))
    }

    fn shown(&self, nodes: BTreeMap<Arc<str>, Node>) -> Snapshot {
        let edges: Vec<_> = self.calls.edges().collect();
        Snapshot { seq: 0, nodes, calls: self.named(&edges) }
    }

    /// The number of calls by the rule that resolved them.
    pub fn rules(&self) -> BTreeMap<Rule, usize> {
        let mut rules = BTreeMap::new();
        for edge in self.calls.edges() {
            *rules.entry(edge.rule).or_default() += 1;
        }
        rules
    }

    /// The ids of a symbol's callers, in order.
    pub fn callers(&self, symbol: &str) -> Vec<Arc<str>> {
        let mut callers: Vec<_> = self.calls.callers(symbol).map(|node| self.id(node)).collect();
        callers.sort_unstable();
        callers
    }

    /// A file's node, and the innermost symbols in ranges of its lines, given as first and last.
    pub fn nodes_at(&self, path: &str, ranges: &[(u32, u32)]) -> Vec<(Arc<str>, Node)> {
        let Some((path, File { facts, .. })) = self.files.get_key_value(path) else {
            return Vec::new();
        };
        let is_touched = |symbol: &Symbol| {
            let Lines { start, end } = symbol.lines;
            ranges.iter().any(|(first, last)| *first <= end && start <= *last)
        };
        let touched: Vec<_> = facts.symbols.iter().map(is_touched).collect();
        let mut is_inner = touched.clone();
        for (symbol, is_touched) in facts.symbols.iter().zip(touched) {
            if let Some(parent) = symbol.parent.filter(|_| is_touched) {
                is_inner[parent as usize] = false;
            }
        }
        let is_shown = std::iter::once(true).chain(is_inner);
        let nodes = snapshot::nodes(path, facts).into_iter().zip(is_shown);
        nodes.filter_map(|(node, is_shown)| is_shown.then_some(node)).collect()
    }

    /// The nodes of the files at these paths and of their folders.
    fn nodes_of(&self, paths: &BTreeSet<Arc<str>>) -> BTreeMap<Arc<str>, Node> {
        let mut nodes = BTreeMap::new();
        for path in paths {
            for folder in snapshot::folders(path) {
                if !nodes.contains_key(folder) && self.has_folder(folder) {
                    nodes.insert(folder.into(), Node::folder());
                }
            }
            if let Some((path, file)) = self.files.get_key_value(path) {
                nodes.extend(snapshot::nodes(path, &file.facts));
            }
        }
        nodes
    }

    /// Whether a file is in this folder or below.
    fn has_folder(&self, folder: &str) -> bool {
        let below: Arc<str> = format!("{folder}/").into();
        self.files.range(below.clone()..).next().is_some_and(|(path, _)| path.starts_with(&*below))
    }

    fn id(&self, node: calls::NodeId) -> Arc<str> {
        let mut id = String::new();
        self.calls.write_id(node, &mut id);
        id.into()
    }

    /// In order, each once.
    fn named(&self, edges: &[calls::Edge]) -> Vec<CallEdge> {
        let mut ids: FxHashMap<calls::NodeId, Arc<str>> = FxHashMap::default();
        let mut id = |node| ids.entry(node).or_insert_with(|| self.id(node)).clone();
        let named = edges.iter().map(|edge| CallEdge { from: id(edge.from), to: id(edge.to) });
        let mut named: Vec<_> = named.collect();
        named.sort_unstable();
        named.dedup();
        named
    }
}

impl File {
    fn of(facts: Arc<Facts>) -> Self {
        let hash = hash(&facts);
        let facts = Arc::unwrap_or_clone(facts);
        let (calls, bases, imports) = Default::default();
        Self { facts: Facts { bases, calls, imports, ..facts }, hash }
    }
}

fn hash(facts: &Facts) -> u64 {
    FxBuildHasher.hash_one(facts)
}
