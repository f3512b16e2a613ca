//! The facts of all files, indexed by name. Knows no rule of resolution.

mod definitions;
mod invalidate;
mod nodes;
mod read;

use rustc_hash::FxHashMap;

pub(super) use self::definitions::Definition;
use super::dependencies::Invalidated;
use super::heuristics;
use super::ids::{Family, FileId, NodeId};
use super::names::{Name, Names, Path, number};
use crate::graph::facts::{Facts, Kind};

/// A name of more symbols is resolved within its file only.
pub(super) const MANY: usize = 64;

/// The index of no symbol: of the file itself, or of a missing parent.
pub(super) const NONE: u32 = u32::MAX;

/// The node of a [`NodeId`].
pub(super) struct Node {
    /// [`NONE`] for the file itself.
    pub(super) symbol: u32,
    parent: NodeId,
    name: Name,
    /// The number of siblings of its name before it.
    nth: u32,
}

pub(super) struct File {
    pub(super) path: Box<str>,
    pub(super) folder: Name,
    pub(super) family: Option<Family>,
    pub(super) is_test: bool,
    /// The library of a manifest's package.
    pub(super) package: Option<Name>,
    pub(super) node: NodeId,
    pub(super) symbols: Vec<Symbol>,
    /// Ordered by class.
    bases: Vec<(u32, Path)>,
    /// The symbols, ordered by name.
    named: Vec<(Name, u32)>,
    /// Ordered by caller, each once.
    pub(super) calls: Vec<Call>,
    pub(super) imports: Vec<Import>,
}

#[derive(Clone, Copy)]
pub(super) struct Symbol {
    pub(super) name: Name,
    pub(super) kind: Kind,
    /// [`NONE`]: the file.
    pub(super) parent: u32,
    pub(super) node: NodeId,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Call {
    pub(super) within: u32,
    pub(super) on: On,
    pub(super) name: Name,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum On {
    Nothing,
    Own,
    Base,
    Named(Path),
    Within(Path),
    Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) module: Name,
    /// The module and the name, by segment.
    pub(super) path: Path,
    pub(super) name: Option<Name>,
    pub(super) alias: Path,
    /// The alias, if it is one name.
    pub(super) known_as: Option<Name>,
    pub(super) all: bool,
}

#[derive(Default)]
pub(super) struct Index {
    pub(super) names: Names,
    /// The name of the root folder.
    pub(super) root: Box<str>,
    /// By path.
    ids: FxHashMap<Box<str>, FileId>,
    pub(super) files: Vec<Option<File>>,
    /// Unused entries of `files`.
    vacant: Vec<FileId>,
    /// By path without the extension.
    stems: FxHashMap<Box<str>, Vec<FileId>>,
    pub(super) nodes: Vec<Node>,
    /// By [`Name`]; the lists are sorted after [`Index::finish`].
    definitions: Vec<Vec<Definition>>,
    unsorted: Vec<Name>,
    /// Ids that were removed since the last [`Index::reclaim`], and ids that are free.
    removed: Vec<NodeId>,
    free: Vec<NodeId>,
    /// The manifests, by the name of the package's library.
    pub(super) packages: FxHashMap<Name, Vec<FileId>>,
    invalidated: Invalidated,
}

impl Index {
    pub(super) fn file(&self, id: FileId) -> Option<&File> {
        self.files.get(id.0 as usize)?.as_ref()
    }

    pub(super) fn id(&self, path: &str) -> Option<FileId> {
        self.ids.get(path).copied()
    }

    /// Returns the files of a family at a path that is written without an extension.
    pub(super) fn at<'a>(
        &'a self,
        stem: &str,
        family: Family,
    ) -> impl Iterator<Item = FileId> + use<'a> {
        let files = self.stems.get(stem).map_or(&[][..], |files| files);
        files
            .iter()
            .copied()
            .filter(move |id| self.file(*id).is_some_and(|file| file.family == Some(family)))
    }

    /// Adds a file, or replaces the one at its path.
    pub(super) fn put(&mut self, path: &str, facts: &Facts) {
        let (id, before) = self.take(path);
        let family = facts.language.map(Family::of);
        let folder = self.names.add(path.rsplit_once('/').map_or("", |(folder, _)| folder));
        let mut known = FxHashMap::default();
        let node = match &before {
            Some(file) => {
                known = file
                    .symbols
                    .iter()
                    .map(|symbol| (self.key(symbol.node), symbol.node))
                    .collect();
                file.node
            }
            None => self.add_node(None, 0, path),
        };
        let mut symbols: Vec<Symbol> = Vec::with_capacity(facts.symbols.len());
        let mut counts: FxHashMap<(NodeId, Name), u32> = FxHashMap::default();
        for symbol in &facts.symbols {
            let name = self.names.add(&symbol.name);
            let parent =
                symbol.parent.and_then(|at| symbols.get(at as usize).map(|of| (at, of.node)));
            let (parent, above) = parent.unwrap_or((NONE, node));
            let count = counts.entry((above, name)).or_default();
            let (nth, at) = (*count, number(symbols.len()));
            *count += 1;
            let node = match known.remove(&(above, name, nth)) {
                Some(known) => {
                    if let Some(node) = self.nodes.get_mut(known.0 as usize) {
                        node.symbol = at;
                    }
                    known
                }
                None => self.add_symbol(Node { symbol: at, parent: above, name, nth }),
            };
            symbols.push(Symbol { name, kind: symbol.kind, parent, node });
        }
        let mut file = File {
            path: path.into(),
            folder,
            family,
            is_test: heuristics::is_test(path),
            package: facts.package.as_ref().map(|name| self.names.add(name)),
            node,
            symbols,
            bases: self.bases(facts),
            named: Vec::new(),
            calls: self.calls(facts),
            imports: self.imports(facts),
        };
        file.named = file.symbols.iter().zip(0..).map(|(symbol, at)| (symbol.name, at)).collect();
        file.named.sort_unstable();
        self.register(id, &file);
        if let Some(slot) = self.files.get_mut(id.0 as usize) {
            *slot = Some(file);
        }
        self.invalidate(id, path, before.as_ref());
        self.removed.extend(known.into_values());
    }

    pub(super) fn remove(&mut self, path: &str) {
        if self.id(path).is_none() {
            return;
        }
        let (id, before) = self.take(path);
        self.ids.remove(path);
        self.vacant.push(id);
        self.invalidate(id, path, before.as_ref());
        if let Some(file) = before {
            self.removed.push(file.node);
            self.removed.extend(file.symbols.iter().map(|symbol| symbol.node));
        }
    }

    /// Call it once after changes, before any lookup. Returns the invalidated lookups and files.
    pub(super) fn finish(&mut self) -> Invalidated {
        self.definitions.resize_with(self.names.len(), Vec::new);
        self.unsorted.sort_unstable();
        self.unsorted.dedup();
        for name in std::mem::take(&mut self.unsorted) {
            if let Some(list) = self.definitions.get_mut(name.0 as usize) {
                list.sort_unstable();
            }
        }
        std::mem::take(&mut self.invalidated)
    }

    /// Call it before changes. Frees the ids that the last changes removed.
    pub(super) fn reclaim(&mut self) {
        if self.ids.is_empty() {
            self.invalidated.all();
        }
        self.free.append(&mut self.removed);
    }

    /// Takes a file out of all tables but `ids`.
    fn take(&mut self, path: &str) -> (FileId, Option<File>) {
        let Some(id) = self.id(path) else {
            let id = self.vacant.pop().unwrap_or_else(|| {
                self.files.push(None);
                FileId(number(self.files.len() - 1))
            });
            self.ids.insert(path.into(), id);
            return (id, None);
        };
        let file = self.files.get_mut(id.0 as usize).and_then(Option::take);
        if let Some(file) = &file {
            for symbol in &file.symbols {
                if let Some(list) = self.definitions.get_mut(symbol.name.0 as usize) {
                    list.retain(|definition| definition.file != id);
                }
            }
            if let Some(files) = self.stems.get_mut(stem(path)) {
                files.retain(|other| *other != id);
            }
            if let Some(manifests) = file.package.and_then(|name| self.packages.get_mut(&name)) {
                manifests.retain(|other| *other != id);
            }
        }
        (id, file)
    }

    fn register(&mut self, id: FileId, file: &File) {
        if let Some(name) = file.package {
            self.packages.entry(name).or_default().push(id);
        }
        let Some(family) = file.family else { return };
        // Names that are looked up without being written in a file: the package of a Python file, the
        // default exports of a script, the modules around a Rust file.
        let parts = file.path.split('/').filter_map(|part| part.split('.').next());
        for name in [".", "default", "exports"].into_iter().chain(parts) {
            self.names.add(name);
        }
        self.definitions.resize_with(self.names.len(), Vec::new);
        for (symbol, at) in file.symbols.iter().zip(0..) {
            if let Some(list) = self.definitions.get_mut(symbol.name.0 as usize) {
                // Most names have one definition, for which `push` makes room for four.
                list.reserve_exact(usize::from(list.is_empty()));
                list.push(Definition {
                    family,
                    folder: file.folder,
                    file: id,
                    parent: symbol.parent,
                    symbol: at,
                    kind: symbol.kind,
                });
                if list.len() > 1 {
                    self.unsorted.push(symbol.name);
                }
            }
        }
        self.stems.entry(stem(&file.path).into()).or_default().push(id);
    }
}

impl File {
    /// Returns whether a symbol has children.
    pub(super) fn holds(&self, at: u32) -> bool {
        self.symbols.get(at as usize + 1).is_some_and(|next| next.parent == at)
    }

    /// Returns a symbol and its ancestors, from the inside to the top.
    pub(super) fn around(&self, at: u32) -> impl Iterator<Item = (u32, Symbol)> {
        let known = |at: u32| Some((at, *self.symbols.get(at as usize)?));
        std::iter::successors(known(at), move |(_, symbol)| known(symbol.parent))
    }

    /// Returns whether a class or one of its ancestors is no class.
    pub(super) fn is_local(&self, class: u32) -> bool {
        self.around(class).any(|(_, symbol)| symbol.kind != Kind::Class)
    }

    /// Returns whether a symbol has calls, those of its children left out.
    pub(super) fn calls_in(&self, at: u32) -> bool {
        let first = self.calls.partition_point(|call| call.within < at);
        self.calls.get(first).is_some_and(|call| call.within == at)
    }

    /// Returns the paths of a class's bases, in order.
    pub(super) fn bases(&self, class: u32) -> impl Iterator<Item = Path> {
        within(&self.bases, |(of, _)| of.cmp(&class)).iter().map(|(_, path)| *path)
    }

    /// Returns the symbols of a name, in order.
    pub(super) fn named(&self, name: Name) -> impl Iterator<Item = (u32, Symbol)> {
        within(&self.named, |(other, _)| other.cmp(&name))
            .iter()
            .map(|(_, at)| (*at, self.symbols[*at as usize]))
    }
}

/// Returns the part of a sorted list that compares as equal.
pub(super) fn within<T>(list: &[T], order: impl Fn(&T) -> std::cmp::Ordering) -> &[T] {
    let start = list.partition_point(|item| order(item).is_lt());
    let length = list[start..].partition_point(|item| order(item).is_eq());
    &list[start..start + length]
}

/// Returns the path without the file's extension.
fn stem(path: &str) -> &str {
    let file = path.rfind('/').map_or(0, |slash| slash + 1);
    path[file..].rfind('.').map_or(path, |dot| &path[..file + dot])
}
