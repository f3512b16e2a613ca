//! The graph as users see it: nodes by id, and calls between them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;

use super::facts::{Facts, Kind, Lines};

/// The graph as a whole.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Snapshot {
    /// Always 0: the publisher of the graph counts its deltas.
    pub seq: u64,
    /// All folders, files and symbols, by id.
    pub nodes: BTreeMap<Arc<str>, Node>,
    /// In order.
    pub calls: Vec<CallEdge>,
}

/// A folder, file or symbol.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Node {
    /// The kind of the node.
    pub kind: Kind,
    /// The lines of the file or symbol; a folder has 0 to 0.
    pub lines: Lines,
    /// The tokens of these lines; None: not counted, or a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u32>,
    /// The language of a file that was parsed; None: there is none, or the node is no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<&'static str>,
}

/// A call: the ids of the caller and of its callee.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct CallEdge {
    /// The id of the caller.
    pub from: Arc<str>,
    /// The id of the called symbol.
    pub to: Arc<str>,
}

impl Node {
    pub(super) fn folder() -> Self {
        let lines = Lines { start: 0, end: 0 };
        Self { kind: Kind::Folder, lines, tokens: None, language: None }
    }

    pub(super) fn file(facts: &Facts) -> Self {
        Self {
            kind: Kind::File,
            lines: Lines { start: 1, end: facts.lines.max(1) },
            tokens: facts.tokens,
            language: facts.language.map(super::Language::name),
        }
    }
}

/// The nodes of files and of their folders, by id.
pub(super) fn all_nodes<'f>(
    files: impl Iterator<Item = (&'f Arc<str>, &'f Facts)>,
) -> BTreeMap<Arc<str>, Node> {
    let mut all = Vec::new();
    let mut last = "";
    for (path, facts) in files {
        for folder in folders(path) {
            // The previous file has the same folders from here on.
            if last.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')) {
                break;
            }
            all.push((folder.into(), Node::folder()));
        }
        let start = all.len();
        all.extend(nodes(path, facts));
        // Few of them are out of order, so sorting is cheap.
        all[start..].sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        last = path;
    }
    all.into_iter().collect()
}

/// The nodes of a file: its own, then those of its symbols in order.
pub(super) fn nodes(path: &Arc<str>, facts: &Facts) -> Vec<(Arc<str>, Node)> {
    let mut nodes = Vec::with_capacity(facts.symbols.len() + 1);
    nodes.push((path.clone(), Node::file(facts)));
    for (id, symbol) in ids(path, facts).into_iter().zip(&facts.symbols) {
        let tokens = symbol.tokens.map(std::num::NonZeroU32::get);
        let node = Node { kind: symbol.kind, lines: symbol.lines, tokens, language: None };
        nodes.push((id, node));
    }
    nodes
}

/// The ids of a file's symbols. Of several with the same id, the second ends in `#2`.
pub(super) fn ids(path: &Arc<str>, facts: &Facts) -> Vec<Arc<str>> {
    // Names come from the file: the hasher must resist chosen collisions.
    let mut taken: HashMap<Arc<str>, u32> = HashMap::with_capacity(facts.symbols.len());
    let mut ids: Vec<Arc<str>> = Vec::with_capacity(facts.symbols.len());
    let mut written = String::new();
    for symbol in &facts.symbols {
        let parent = symbol.parent.and_then(|parent| ids.get(parent as usize)).unwrap_or(path);
        written.clear();
        written.extend([parent, "::", &symbol.name]);
        let plain = written.len();
        while let Some(number) = taken.get_mut(written.as_str()) {
            *number += 1;
            written.truncate(plain);
            written.extend(["#", &number.to_string()]);
        }
        let id: Arc<str> = written.as_str().into();
        taken.insert(id.clone(), 1);
        ids.push(id);
    }
    ids
}

/// The folders above a path without the root, inner ones first.
pub(super) fn folders(path: &str) -> impl Iterator<Item = &str> {
    fn above(path: &str) -> Option<&str> {
        path.rsplit_once('/').map(|(folder, _)| folder)
    }
    std::iter::successors(above(path), |folder| above(folder))
}
