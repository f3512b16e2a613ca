//! What all files say, put so that a name leads to what bears it. Knows no rule of resolution.

mod definitions;
mod places;
mod read;
mod touch;

use rustc_hash::FxHashMap;

pub(super) use self::definitions::Definition;
use super::common;
use super::names::{Name, Names, Path, number};
use super::questions::Touched;
use crate::graph::facts::{Facts, Kind, Language};

/// A name that more symbols have tells nothing outside of its file.
pub(super) const MANY: usize = 64;

/// Stands for "no symbol": of the file itself, of a parent that there is not.
pub(super) const NONE: u32 = u32::MAX;

/// Where a file stands in [`Index::files`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct FileId(pub(super) u32);

/// A file or a symbol, and stays the same one while its file is edited around it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(in crate::graph) struct End(pub(super) u32);

/// Languages whose files call each other, by how they name files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Family {
    Rust,
    Python,
    /// JavaScript and TypeScript, with or without JSX.
    Script,
    /// Imports are not followed.
    Other(Language),
}

/// What an [`End`] stands for.
pub(super) struct Place {
    /// [`NONE`] for the file itself.
    pub(super) symbol: u32,
    parent: End,
    name: Name,
    /// How many siblings of its name come before it.
    nth: u32,
}

pub(super) struct File {
    pub(super) path: Box<str>,
    pub(super) folder: Name,
    pub(super) family: Option<Family>,
    pub(super) is_test: bool,
    /// The library of the package whose manifest it is.
    pub(super) package: Option<Name>,
    pub(super) end: End,
    pub(super) symbols: Vec<Symbol>,
    /// Ordered by the class.
    bases: Vec<(u32, Path)>,
    /// The symbols by their names.
    named: Vec<(Name, u32)>,
    /// In order of the caller, without repetitions.
    pub(super) calls: Vec<Call>,
    pub(super) imports: Vec<Import>,
}

#[derive(Clone, Copy)]
pub(super) struct Symbol {
    pub(super) name: Name,
    pub(super) kind: Kind,
    /// [`NONE`]: the file.
    pub(super) parent: u32,
    pub(super) end: End,
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
    /// The module and the name, segment by segment.
    pub(super) path: Path,
    pub(super) name: Option<Name>,
    pub(super) alias: Path,
    /// The alias, where it is one name.
    pub(super) known_as: Option<Name>,
    pub(super) all: bool,
}

#[derive(Default)]
pub(super) struct Index {
    pub(super) names: Names,
    /// The name of the folder that all paths are below.
    pub(super) root: Box<str>,
    /// By path.
    ids: FxHashMap<Box<str>, FileId>,
    pub(super) files: Vec<Option<File>>,
    /// Where there is no file anymore.
    vacant: Vec<FileId>,
    /// By path without the extension.
    stems: FxHashMap<Box<str>, Vec<FileId>>,
    pub(super) places: Vec<Place>,
    /// By [`Name`], each list in order once [`Index::settle`] ran.
    definitions: Vec<Vec<Definition>>,
    unsorted: Vec<Name>,
    /// What is out of use since the last [`Index::settle`], and what can be used again.
    left: Vec<End>,
    free: Vec<End>,
    /// The manifests of the workspace, by the names of their packages' libraries.
    pub(super) packages: FxHashMap<Name, Vec<FileId>>,
    touched: Touched,
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

    /// Puts a file in the place of what was at its path.
    pub(super) fn put(&mut self, path: &str, facts: &Facts) {
        let (id, before) = self.take(path);
        let family = facts.language.map(family);
        let folder = self.names.add(path.rsplit_once('/').map_or("", |(folder, _)| folder));
        let mut known = FxHashMap::default();
        let end = match &before {
            Some(file) => {
                known =
                    file.symbols.iter().map(|symbol| (self.key(symbol.end), symbol.end)).collect();
                file.end
            }
            None => self.add_place(None, 0, path),
        };
        let mut symbols: Vec<Symbol> = Vec::with_capacity(facts.symbols.len());
        let mut counts: FxHashMap<(End, Name), u32> = FxHashMap::default();
        for symbol in &facts.symbols {
            let name = self.names.add(&symbol.name);
            let parent =
                symbol.parent.and_then(|at| symbols.get(at as usize).map(|of| (at, of.end)));
            let (parent, above) = parent.unwrap_or((NONE, end));
            let count = counts.entry((above, name)).or_default();
            let (nth, at) = (*count, number(symbols.len()));
            *count += 1;
            let end = match known.remove(&(above, name, nth)) {
                Some(end) => {
                    if let Some(place) = self.places.get_mut(end.0 as usize) {
                        place.symbol = at;
                    }
                    end
                }
                None => self.add_symbol(Place { symbol: at, parent: above, name, nth }),
            };
            symbols.push(Symbol { name, kind: symbol.kind, parent, end });
        }
        let mut file = File {
            path: path.into(),
            folder,
            family,
            is_test: common::is_test(path),
            package: facts.package.as_ref().map(|name| self.names.add(name)),
            end,
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
        self.touch(id, path, before.as_ref());
        self.left.extend(known.into_values());
    }

    pub(super) fn remove(&mut self, path: &str) {
        if self.id(path).is_none() {
            return;
        }
        let (id, before) = self.take(path);
        self.ids.remove(path);
        self.vacant.push(id);
        self.touch(id, path, before.as_ref());
        if let Some(file) = before {
            self.left.push(file.end);
            self.left.extend(file.symbols.iter().map(|symbol| symbol.end));
        }
    }

    /// To be called once after changes, before anything is looked up. Returns what they touched.
    pub(super) fn settle(&mut self) -> Touched {
        self.definitions.resize_with(self.names.len(), Vec::new);
        self.unsorted.sort_unstable();
        self.unsorted.dedup();
        for name in std::mem::take(&mut self.unsorted) {
            if let Some(list) = self.definitions.get_mut(name.0 as usize) {
                list.sort_unstable();
            }
        }
        std::mem::take(&mut self.touched)
    }

    /// To be called before changes. Forgets what left: nobody asks for its id anymore.
    pub(super) fn sweep(&mut self) {
        if self.ids.is_empty() {
            self.touched.everything();
        }
        self.free.append(&mut self.left);
    }

    /// Takes a file out, with all that leads to it but its place.
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
        // The package that a file of Python stands in, what is looked for in a script beside what it
        // is asked for, and the modules that a file of Rust stands in.
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
    /// Returns whether other symbols stand in one.
    pub(super) fn holds(&self, at: u32) -> bool {
        self.symbols.get(at as usize + 1).is_some_and(|next| next.parent == at)
    }

    /// Returns a symbol and what it stands in, from the inside to the top.
    pub(super) fn around(&self, at: u32) -> impl Iterator<Item = (u32, Symbol)> {
        let known = |at: u32| Some((at, *self.symbols.get(at as usize)?));
        std::iter::successors(known(at), move |(_, symbol)| known(symbol.parent))
    }

    /// Returns whether a class stands in anything but classes.
    pub(super) fn is_local(&self, class: u32) -> bool {
        self.around(class).any(|(_, symbol)| symbol.kind != Kind::Class)
    }

    /// Returns whether anything is called right within a symbol.
    pub(super) fn calls_in(&self, at: u32) -> bool {
        let first = self.calls.partition_point(|call| call.within < at);
        self.calls.get(first).is_some_and(|call| call.within == at)
    }

    /// Returns what leads to the bases of a class, in their order.
    pub(super) fn bases(&self, class: u32) -> impl Iterator<Item = Path> {
        within(&self.bases, |(of, _)| of.cmp(&class)).iter().map(|(_, path)| *path)
    }

    /// Returns the symbols of a name, in order of appearance.
    pub(super) fn named(&self, name: Name) -> impl Iterator<Item = (u32, Symbol)> {
        within(&self.named, |(other, _)| other.cmp(&name))
            .iter()
            .map(|(_, at)| (*at, self.symbols[*at as usize]))
    }
}

/// Returns the part of an ordered list that compares as equal.
pub(super) fn within<T>(list: &[T], order: impl Fn(&T) -> std::cmp::Ordering) -> &[T] {
    let start = list.partition_point(|item| order(item).is_lt());
    let length = list[start..].partition_point(|item| order(item).is_eq());
    &list[start..start + length]
}

fn family(language: Language) -> Family {
    match language.name() {
        "rust" => Family::Rust,
        "python" => Family::Python,
        "javascript" | "jsx" | "typescript" | "tsx" => Family::Script,
        _ => Family::Other(language),
    }
}

/// Returns the path without the file's extension.
fn stem(path: &str) -> &str {
    let file = path.rfind('/').map_or(0, |slash| slash + 1);
    path[file..].rfind('.').map_or(path, |dot| &path[..file + dot])
}
