//! Resolves the calls of one file: the rules, in their order.

mod bases;
mod imports;
mod values;

use std::cell::OnceCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::dependencies::Lookup;
use super::heuristics;
use super::ids::{Family, FileId, NodeId};
use super::index::{Call, Definition, File, Index, NONE, On, Symbol};
use super::links::Links;
use super::names::{Name, Path};
use super::{Edge, Rule};
use crate::graph::facts::Kind;

/// Names that are looked up for one call.
const MAX_LOOKUPS: usize = 256;

/// Returns the edges from a file and its symbols, in order, each once. Records dependencies in `links`.
pub(super) fn edges(index: &Index, links: &Links<'_>, id: FileId) -> Vec<Edge> {
    let Some((file, family)) = index.file(id).and_then(|file| Some((file, file.family?))) else {
        return Vec::new();
    };
    let mut resolver = Resolver {
        index,
        links,
        id,
        file,
        family,
        imported: OnceCell::new(),
        known: FxHashMap::default(),
        bases: FxHashMap::default(),
        named_bases: FxHashMap::default(),
    };
    let mut edges = Vec::new();
    for call in &file.calls {
        let caller = file.symbols.get(call.within as usize);
        let from = caller.map_or(file.node, |symbol| symbol.node);
        if let Some((to, rule)) = resolver.call(call)
            && to != from
        {
            edges.push(Edge { from, to, rule });
        }
    }
    edges.sort_unstable();
    edges.dedup_by_key(|edge| (edge.from, edge.to));
    edges.shrink_to_fit();
    edges
}

/// The target of a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Module(FileId),
    Symbol(FileId, u32),
    /// The target is not part of the workspace.
    Outside,
    Nowhere,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Want {
    /// Callable by its bare name.
    Callable,
    /// A definition or module with members.
    Container,
}

/// The result of looking for one symbol.
enum Found<T> {
    Nothing,
    One(T),
    Many,
}

/// A name in a file; the last is whether one of the file's own imports refers to it.
type Step = (FileId, Name, Want, bool);

/// The steps of one lookup and their results. Re-exports may form a circle, which refers to nothing.
#[derive(Default)]
struct Walk(Vec<(Step, Target)>);

impl Walk {
    /// Starts a step: the index for its result. Err: the result of the same step, taken before.
    fn enter(&mut self, step: Step) -> Result<usize, Target> {
        if let Some((_, found)) = self.0.iter().find(|(known, _)| *known == step) {
            return Err(*found);
        }
        if self.0.len() >= MAX_LOOKUPS {
            return Err(Target::Nowhere);
        }
        self.0.push((step, Target::Nowhere));
        Ok(self.0.len() - 1)
    }
}

struct Resolver<'a> {
    index: &'a Index,
    links: &'a Links<'a>,
    id: FileId,
    file: &'a File,
    family: Family,
    /// The imported files, sorted; filled on first use.
    imported: OnceCell<Vec<FileId>>,
    /// Names at the top of files that were resolved.
    known: FxHashMap<(FileId, Name, Want), Target>,
    /// Bases of the file's classes that were resolved.
    bases: FxHashMap<u32, Rc<[Target]>>,
    /// Paths of bases that were resolved, by file and parent of the class.
    named_bases: FxHashMap<(FileId, u32, Path), Target>,
}

impl Resolver<'_> {
    fn depend_on(&self, lookup: Lookup<'_>) {
        self.links.dependencies.add(lookup);
    }

    /// Records a lookup of a name in another file.
    fn depend_on_name(&self, file: FileId, name: Name) {
        if file != self.id {
            self.depend_on(Lookup::Named(file, name));
        }
    }

    fn call(&mut self, call: &Call) -> Option<(NodeId, Rule)> {
        match call.on {
            On::Nothing => self.bare(call),
            On::Own => self.own(call),
            On::Base => self.base(call),
            On::Value => self.method(call, None),
            On::Named(path) => self.named(call, self.index.names.path(path), false),
            On::Within(path) => match self.index.names.path(path) {
                [own] if self.is_own_module(*own) => self.bare(call),
                [own, rest @ ..] if self.is_own_module(*own) => self.named(call, rest, true),
                path => self.named(call, path, true),
            },
        }
    }

    /// Whether a path starts at this module.
    fn is_own_module(&self, name: Name) -> bool {
        self.family == Family::Rust && self.index.names.text(name) == "self"
    }

    /// Resolves a name at the top of a file.
    fn top(&mut self, id: FileId, name: Name, want: Want) -> Target {
        if let Some(target) = self.known.get(&(id, name, want)) {
            return *target;
        }
        let target = self.member(id, name, want, &mut Walk::default());
        self.known.insert((id, name, want), target);
        target
    }

    fn bare(&mut self, call: &Call) -> Option<(NodeId, Rule)> {
        let mut at = call.within;
        while let Some(holder) = self.file.symbols.get(at as usize) {
            let members = self.family_has_bare_methods() || holder.kind != Kind::Class;
            if members && let Some(found) = self.pick(self.id, call.name, at, Want::Callable) {
                return Some((self.node(self.id, found)?, Rule::Scope));
            }
            at = holder.parent;
        }
        let target = self.top(self.id, call.name, Want::Callable);
        match self.called(target, call.name, &mut Walk::default()) {
            Target::Symbol(file, at) => Some((self.node(file, at)?, self.rule(file))),
            Target::Outside | Target::Module(_) => None,
            // In languages with imports, a name that is not imported is a variable.
            Target::Nowhere if !self.family_has_bare_methods() => None,
            Target::Nowhere => self.anywhere(call.name, |symbol, _| {
                symbol.parent == NONE && symbol.kind != Kind::Method
            }),
        }
    }

    fn own(&mut self, call: &Call) -> Option<(NodeId, Rule)> {
        if let Some(class) = self.class(call) {
            match self.child(self.id, class, call.name) {
                Found::One((file, at)) => {
                    let rule = if file == self.id { Rule::Scope } else { self.near(file) };
                    return Some((self.node(file, at)?, rule));
                }
                Found::Many => return None,
                Found::Nothing => {}
            }
            match self.inherited(class, call.name) {
                Target::Symbol(file, at) => return Some((self.node(file, at)?, self.rule(file))),
                Target::Outside => return None,
                Target::Module(_) | Target::Nowhere => {}
            }
        }
        self.method(call, None)
    }

    /// `is_within`: a module or a type is named, not a variable.
    fn named(&mut self, call: &Call, path: &[Name], is_within: bool) -> Option<(NodeId, Rule)> {
        let (first, last) = (*path.first()?, *path.last()?);
        let is_type = self.index.names.text(last).starts_with(char::is_uppercase);
        if self.family == Family::Rust && !is_within && !is_type {
            return self.method(call, Some(last));
        }
        let (mut target, rest) = self.start(self.id, call.within, path);
        let walk = &mut Walk::default();
        for name in rest {
            target = self.step(target, *name, Want::Container, walk);
        }
        match target {
            // No module of Rust has a name like a type.
            Target::Module(_) if is_type && self.family == Family::Rust => return None,
            Target::Module(_) | Target::Symbol(..) => {}
            Target::Outside => return None,
            Target::Nowhere if is_type => {
                return self.anywhere_in(last, call.name);
            }
            Target::Nowhere if is_within => return None,
            Target::Nowhere if heuristics::is_global(self.family, self.index.names.text(first)) => {
                return None;
            }
            Target::Nowhere => return self.method(call, Some(last)),
        }
        let found = self.step(target, call.name, Want::Callable, walk);
        match self.called(found, call.name, walk) {
            Target::Symbol(file, at) => Some((self.node(file, at)?, self.rule(file))),
            Target::Nowhere if !is_type && !is_within && self.is_value(target) => {
                self.method(call, Some(last))
            }
            _ => None,
        }
    }

    /// Returns the target of a call of `target`: of a script's module, the default export.
    fn called(&self, target: Target, name: Name, walk: &mut Walk) -> Target {
        match target {
            Target::Module(module) if self.family == Family::Script => {
                self.default(module, name, walk)
            }
            target => target,
        }
    }

    /// Resolves the first name of a path that is written within a symbol; returns the rest of the path.
    fn start<'p>(&mut self, id: FileId, within: u32, path: &'p [Name]) -> (Target, &'p [Name]) {
        let walk = &mut Walk::default();
        let Some((first, rest)) = path.split_first() else { return (Target::Nowhere, path) };
        let Some(file) = self.index.file(id) else { return (Target::Nowhere, path) };
        let mut at = within;
        while let Some(holder) = file.symbols.get(at as usize) {
            if let Some(found) = self.pick(id, *first, at, Want::Container) {
                return (Target::Symbol(id, found), rest);
            }
            let mut inside = file.named(*first).filter(|(_, symbol)| symbol.parent == at);
            if let Some(module) = inside.find_map(|(found, _)| self.declared(id, found)) {
                return (Target::Module(module), rest);
            }
            at = holder.parent;
        }
        if self.family == Family::Rust {
            return self.rust_start(id, path, is_in_module(file, within), None, walk);
        }
        if id != self.id && path.len() > 1 {
            self.depend_on(Lookup::All(id));
        }
        let longest = file.imports.iter().filter_map(|import| {
            let alias = self.index.names.path(import.alias);
            (alias.len() > 1 && path.starts_with(alias)).then_some((alias.len(), import))
        });
        if let Some((length, import)) = longest.max_by_key(|(length, _)| *length) {
            return (self.import(id, import, walk), &path[length..]);
        }
        (self.top(id, *first, Want::Container), rest)
    }

    fn rule(&self, file: FileId) -> Rule {
        if file == self.id { Rule::File } else { Rule::Import }
    }

    fn near(&self, file: FileId) -> Rule {
        let folder = self.index.file(file).map(|file| file.folder);
        if folder == Some(self.file.folder) { Rule::Folder } else { Rule::Workspace }
    }

    fn node(&self, file: FileId, at: u32) -> Option<NodeId> {
        Some(self.index.file(file)?.symbols.get(at as usize)?.node)
    }

    /// Whether `open()` may mean `this.open()`.
    fn family_has_bare_methods(&self) -> bool {
        matches!(self.family, Family::Other(_))
    }
}

/// Returns whether a symbol is in an inline module.
fn is_in_module(file: &File, at: u32) -> bool {
    file.around(at).skip(1).any(|(_, symbol)| symbol.kind == Kind::Function)
}

/// Chooses among siblings of one name. In Python and scripts the last one replaces the others.
fn choose(family: Family, mut among: impl Iterator<Item = (u32, Symbol)>) -> Option<u32> {
    let found = match family {
        Family::Python | Family::Script => among.last(),
        Family::Rust | Family::Other(_) => among.next(),
    };
    found.map(|(at, _)| at)
}

/// Overloads of one method count as one.
fn only<'d>(mut among: impl Iterator<Item = &'d Definition>) -> Found<&'d Definition> {
    let Some(mut one) = among.next() else { return Found::Nothing };
    for other in among {
        if !one.is_overload_of(other) {
            return Found::Many;
        }
        one = other;
    }
    Found::One(one)
}
