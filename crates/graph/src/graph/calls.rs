//! Calls between symbols: from the facts of all files to edges.
//!
//! Owns the rules that resolve a name. Knows no grammar and no disk: a path is a text here.

mod dependencies;
mod heuristics;
mod ids;
mod index;
mod links;
mod modules;
mod names;
mod resolve;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};

use self::dependencies::{Dependency, Invalidated};
use self::ids::FileId;
use self::index::Index;
use self::links::Links;
use super::facts::Facts;

pub(super) use self::ids::NodeId;

/// Files that are worth another thread, and files that a thread takes at a time.
const FILES_A_THREAD: usize = 64;
const AT_ONCE: usize = 16;

/// The calls of a workspace, kept up to date.
#[derive(Default)]
pub(super) struct Calls {
    index: Index,
    /// By [`FileId`].
    resolved: Vec<Resolved>,
}

/// The resolved calls of a file.
#[derive(Default)]
struct Resolved {
    edges: Vec<Edge>,
    dependencies: Box<[Dependency]>,
}

/// A call from one symbol to another. Ordered by the caller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Edge {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) rule: Rule,
}

/// How a name was resolved, from the surest on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    /// The same scope or class.
    Scope,
    /// Another place in the file of the call.
    File,
    /// A name that the file of the call imports, or a file that it imports from.
    Import,
    /// The only one in the folder of the call.
    Folder,
    /// The only one in the workspace.
    Workspace,
}

/// The edges that an update added and removed.
#[derive(Default)]
pub(super) struct EdgeChanges {
    pub(super) added: Vec<Edge>,
    pub(super) removed: Vec<Edge>,
}

impl Calls {
    /// An empty one, for a workspace whose folder has that name.
    pub(super) fn of(root: &str) -> Self {
        let mut calls = Self::default();
        calls.index.root = root.into();
        calls
    }

    /// Takes in changed files by their path below the root, written with `/`; None: it was removed. The
    /// ids in [`EdgeChanges`] are valid until the next update.
    pub(super) fn update<'f>(
        &mut self,
        changes: impl IntoIterator<Item = (&'f str, Option<&'f Facts>)>,
        jobs: usize,
    ) -> EdgeChanges {
        self.index.reclaim();
        for (path, facts) in changes {
            match facts {
                Some(facts) => self.index.put(path, facts),
                None => self.index.remove(path),
            }
        }
        let invalidated = self.index.finish();
        self.resolved.resize_with(self.index.files.len(), Resolved::default);
        let mut edge_changes = EdgeChanges::default();
        for (id, now) in self.resolve(&invalidated, jobs) {
            let Some(before) = self.resolved.get_mut(id.0 as usize) else { continue };
            if now.edges != before.edges {
                edge_changes.compare(&before.edges, &now.edges);
            }
            *before = now;
        }
        edge_changes
    }

    /// Resolves all invalidated files; returns them in order.
    fn resolve(&self, invalidated: &Invalidated, jobs: usize) -> Vec<(FileId, Resolved)> {
        let ids = invalidated.affected(self.resolved.iter().map(|file| &*file.dependencies));
        let next = AtomicUsize::new(0);
        let run = || {
            let links = Links::new(&self.index);
            let mut done = Vec::new();
            while let Some(ids) = ids.chunks(AT_ONCE).nth(next.fetch_add(1, Ordering::Relaxed)) {
                for id in ids {
                    let edges = resolve::edges(&self.index, &links, *id);
                    done.push((*id, Resolved { edges, dependencies: links.dependencies.take() }));
                }
            }
            done
        };
        let jobs = jobs.clamp(1, ids.len().div_ceil(FILES_A_THREAD).max(1));
        let mut done = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..jobs).map(|_| scope.spawn(run)).collect();
            let mut done = run();
            for thread in threads {
                // A panic is a bug, and is passed on.
                done.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            done
        });
        done.sort_unstable_by_key(|(id, _)| *id);
        done
    }

    pub(super) fn edges(&self) -> impl Iterator<Item = Edge> {
        self.resolved.iter().flat_map(|file| &file.edges).copied()
    }

    /// The callers of the symbol of that id.
    pub(super) fn callers(&self, symbol: &str) -> impl Iterator<Item = NodeId> {
        let callee = self.index.node(symbol);
        self.edges().filter(move |edge| Some(edge.to) == callee).map(|edge| edge.from)
    }

    /// Writes the id of a file or symbol: `path`, `path::symbol`, `path::Class::method#2`.
    pub(super) fn write_id(&self, node: NodeId, into: &mut String) {
        self.index.write_id(node, into);
    }
}

impl EdgeChanges {
    /// Adds the differences of two ordered lists of edges; the rules do not count.
    fn compare(&mut self, before: &[Edge], now: &[Edge]) {
        let key = |edge: &Edge| (edge.from, edge.to);
        let missing =
            |edge: &&Edge, list: &[Edge]| list.binary_search_by_key(&key(edge), key).is_err();
        self.removed.extend(before.iter().filter(|edge| missing(edge, now)));
        self.added.extend(now.iter().filter(|edge| missing(edge, before)));
    }
}
