//! Who calls whom: from what every file says to edges between symbols.
//!
//! Owns the rules by which a name finds what it means. Knows nothing of grammars and of the disk: a
//! path is but a text here.

mod common;
mod index;
mod links;
mod modules;
mod names;
mod resolve;
mod touched;

#[cfg(test)]
mod tests;

use self::index::{FileId, Index};
use super::facts::Facts;

pub(super) use self::index::End;

/// The calls of a workspace, kept up to date.
#[derive(Default)]
pub(super) struct Calls {
    index: Index,
    /// By file.
    edges: Vec<Vec<Edge>>,
}

/// One calls the other. Ordered by who calls.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Edge {
    pub(super) from: End,
    pub(super) to: End,
    pub(super) rule: Rule,
}

/// How a name was resolved, from the surest on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    /// The same scope or class.
    Scope,
    File,
    Import,
    Folder,
    /// There is only one in the workspace.
    Workspace,
}

/// What an update made of the edges.
#[derive(Default)]
pub(super) struct Redone {
    pub(super) added: Vec<Edge>,
    pub(super) removed: Vec<Edge>,
}

impl Calls {
    /// Takes in what changed: files by their path below the root, written with `/`; None for one
    /// that is gone. What the ends of [`Redone`] stand for can be asked until the next update.
    pub(super) fn update<'f>(
        &mut self,
        changes: impl IntoIterator<Item = (&'f str, Option<&'f Facts>)>,
    ) -> Redone {
        self.index.sweep();
        for (path, facts) in changes {
            match facts {
                Some(facts) => self.index.put(path, facts),
                None => self.index.remove(path),
            }
        }
        let touched = self.index.settle();
        self.edges.resize_with(self.index.files.len(), Vec::new);
        let mut redone = Redone::default();
        for (at, before) in (0..).zip(&mut self.edges) {
            let id = FileId(at);
            if self.index.file(id).is_some_and(|file| !touched.concerns(id, file)) {
                continue;
            }
            let now = resolve::edges(&self.index, id, &touched, before);
            if now != *before {
                redone.compare(before, &now);
                *before = now;
            }
        }
        redone
    }

    pub(super) fn edges(&self) -> impl Iterator<Item = Edge> {
        self.edges.iter().flatten().copied()
    }

    /// Those that call the symbol of that id.
    pub(super) fn callers(&self, symbol: &str) -> impl Iterator<Item = End> {
        let callee = self.index.end(symbol);
        self.edges().filter(move |edge| Some(edge.to) == callee).map(|edge| edge.from)
    }

    /// Writes the id of a file or symbol: `path`, `path::symbol`, `path::Class::method#2`.
    pub(super) fn write_id(&self, end: End, into: &mut String) {
        self.index.write_id(end, into);
    }
}

impl Redone {
    /// Notes in what two ordered lists differ, whatever rule made an edge.
    fn compare(&mut self, before: &[Edge], now: &[Edge]) {
        let key = |edge: &Edge| (edge.from, edge.to);
        let missing =
            |edge: &&Edge, list: &[Edge]| list.binary_search_by_key(&key(edge), key).is_err();
        self.removed.extend(before.iter().filter(|edge| missing(edge, now)));
        self.added.extend(now.iter().filter(|edge| missing(edge, before)));
    }
}
