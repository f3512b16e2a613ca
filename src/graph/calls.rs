//! Who calls whom: from what every file says to edges between symbols.
//!
//! Owns the rules by which a name finds what it means. Knows nothing of grammars and of the disk: a
//! path is but a text here.

mod common;
mod index;
mod links;
mod modules;
mod names;
mod questions;
mod resolve;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};

use self::index::{FileId, Index};
use self::links::Links;
use self::questions::{Asked, Touched};
use super::facts::Facts;

pub(super) use self::index::End;

/// Files that are worth a thread of their own, and how many one takes at a time.
const FILES_A_THREAD: usize = 64;
const AT_ONCE: usize = 16;

/// The calls of a workspace, kept up to date.
#[derive(Default)]
pub(super) struct Calls {
    index: Index,
    /// By file.
    known: Vec<Known>,
}

/// What is known of the calls of a file.
#[derive(Default)]
struct Known {
    edges: Vec<Edge>,
    /// What these rest on.
    asked: Box<[Asked]>,
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
    /// Those of no file yet, in a workspace whose folder has that name.
    pub(super) fn of(root: &str) -> Self {
        let mut calls = Self::default();
        calls.index.root = root.into();
        calls
    }

    /// Takes in what changed: files by their path below the root, written with `/`; None for one
    /// that is gone. What the ends of [`Redone`] stand for can be asked until the next update.
    pub(super) fn update<'f>(
        &mut self,
        changes: impl IntoIterator<Item = (&'f str, Option<&'f Facts>)>,
        jobs: usize,
    ) -> Redone {
        self.index.sweep();
        for (path, facts) in changes {
            match facts {
                Some(facts) => self.index.put(path, facts),
                None => self.index.remove(path),
            }
        }
        let touched = self.index.settle();
        self.known.resize_with(self.index.files.len(), Known::default);
        let mut redone = Redone::default();
        for (id, now) in self.resolve(&touched, jobs) {
            let Some(before) = self.known.get_mut(id.0 as usize) else { continue };
            if now.edges != before.edges {
                redone.compare(&before.edges, &now.edges);
            }
            *before = now;
        }
        redone
    }

    /// Returns what is known now of all files that are to be redone, in order.
    fn resolve(&self, touched: &Touched, jobs: usize) -> Vec<(FileId, Known)> {
        let ids = touched.concerned(self.known.iter().map(|known| &*known.asked));
        let next = AtomicUsize::new(0);
        let run = || {
            let links = Links::new(&self.index);
            let mut done = Vec::new();
            while let Some(ids) = ids.chunks(AT_ONCE).nth(next.fetch_add(1, Ordering::Relaxed)) {
                for id in ids {
                    let edges = resolve::edges(&self.index, &links, *id);
                    done.push((*id, Known { edges, asked: links.notes.take() }));
                }
            }
            done
        };
        let jobs = jobs.clamp(1, ids.len().div_ceil(FILES_A_THREAD).max(1));
        let mut done = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..jobs).map(|_| scope.spawn(run)).collect();
            let mut done = run();
            for thread in threads {
                // Whoever panics here has a bug that is to be seen.
                done.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            done
        });
        done.sort_unstable_by_key(|(id, _)| *id);
        done
    }

    pub(super) fn edges(&self) -> impl Iterator<Item = Edge> {
        self.known.iter().flat_map(|known| &known.edges).copied()
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
