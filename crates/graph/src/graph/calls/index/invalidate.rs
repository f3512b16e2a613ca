//! Which lookups a change of a file invalidates.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Definition, Family, File, FileId, Import, Index, MANY, NodeId, Symbol, stem};
use crate::graph::calls::dependencies::{Invalidated, Lookup};
use crate::graph::calls::heuristics;
use crate::graph::calls::names::{Name, Path};
use crate::graph::facts::Kind;

/// A file before a change and after it.
type Change<'a> = [Option<&'a File>; 2];

/// The properties of a symbol that lookups depend on.
#[derive(PartialEq)]
struct Shape {
    kind: Kind,
    holder: Option<Kind>,
    is_local: bool,
    /// Whether it has children; always false for a class, which may get some.
    holds: bool,
    calls: bool,
    bases: Vec<Path>,
}

/// A changed method, and its class.
struct Method {
    name: Name,
    class: Option<Name>,
}

/// A name of a family, and the file that is looked at.
#[derive(Clone, Copy)]
struct FamilyName {
    family: Family,
    name: Name,
    id: FileId,
}

impl Index {
    /// Records the lookups that a change invalidates. Call it after the index has taken the change
    /// in.
    pub(super) fn invalidate(&mut self, id: FileId, path: &str, before: Option<&File>) {
        let mut invalidated = std::mem::take(&mut self.invalidated);
        invalidated.file(id);
        if !invalidated.is_all() {
            let change = [before, self.file(id)];
            invalidate_path(&mut invalidated, path, change);
            invalidate_imports(&mut invalidated, id, change);
            self.invalidate_symbols(&mut invalidated, id, change);
        }
        self.invalidated = invalidated;
    }

    fn invalidate_symbols(&self, invalidated: &mut Invalidated, file: FileId, change: Change<'_>) {
        let family = change.into_iter().flatten().find_map(|file| file.family);
        let Some(family) = family else { return };
        let [old, new] = change.map(shapes);
        let mut names = FxHashSet::default();
        let mut methods = Vec::new();
        for id in old.keys().chain(new.keys().filter(|id| !old.contains_key(id))) {
            let shapes = [old.get(id), new.get(id)];
            let Some(node) = self.nodes.get(id.0 as usize) else { continue };
            if shapes[0] == shapes[1] {
                continue;
            }
            invalidated.lookup(Lookup::Named(file, node.name));
            names.insert(node.name);
            let holder = self.nodes.get(node.parent.0 as usize).map(|holder| holder.name);
            for shape in shapes.into_iter().flatten() {
                let class = holder.filter(|_| shape.holder == Some(Kind::Class));
                if shape.holder.is_none() {
                    invalidated.lookup(Lookup::Top(family, node.name));
                }
                if let Some(class) = class {
                    invalidated.lookup(Lookup::InClasses(family, class, node.name));
                }
                if shape.kind == Kind::Method {
                    methods.push(Method { name: node.name, class });
                }
            }
        }
        let of = |name| FamilyName { family, name, id: file };
        names.retain(|name| !self.is_too_common(invalidated, of(*name), change));
        methods.retain(|method| names.contains(&method.name));
        for method in &methods {
            invalidated.lookup(self.method_of(of(method.name), method.class));
        }
        let names: FxHashSet<Name> = methods.into_iter().map(|method| method.name).collect();
        for name in names.into_iter().filter(|name| !self.is_ambiguous(of(*name))) {
            invalidated.lookup(Lookup::Method(family, name));
        }
    }

    /// Returns whether a name has more than [`MANY`] symbols before and after the change. If only before
    /// or only after, invalidates the lookups of its methods.
    fn is_too_common(
        &self,
        invalidated: &mut Invalidated,
        of: FamilyName,
        change: Change<'_>,
    ) -> bool {
        let others = self.others(of).take(MANY + 1).count();
        let own = |file: Option<&File>| file.map_or(0, |file| file.named(of.name).count());
        let [before, now] = change.map(|file| others + own(file) > MANY);
        if before != now {
            invalidated.lookup(Lookup::Method(of.family, of.name));
            for definition in self.all(of.name) {
                let class = self.holder(definition).map(|holder| holder.name);
                invalidated.lookup(self.method_of(of, class));
            }
        }
        before && now
    }

    /// Returns whether a name is ambiguous regardless of this file: other files have two methods of
    /// it that are no overloads, both outside of tests.
    fn is_ambiguous(&self, of: FamilyName) -> bool {
        let is_anywhere = |id| self.file(id).is_some_and(|file| !file.is_test);
        let mut others =
            self.others(of).filter(|other| self.is_method(other) && is_anywhere(other.file));
        let Some(one) = others.next() else { return false };
        others.any(|other| !one.is_overload_of(other))
    }

    fn others(&self, of: FamilyName) -> impl Iterator<Item = &Definition> {
        let all = self.all(of.name).iter();
        all.filter(move |other| other.family == of.family && other.file != of.id)
    }

    fn method_of(&self, of: FamilyName, class: Option<Name>) -> Lookup<'static> {
        let class = class.map_or("", |class| self.names.text(class));
        Lookup::MethodOf(of.family, of.name, heuristics::ending(class))
    }
}

fn invalidate_path(invalidated: &mut Invalidated, path: &str, change: Change<'_>) {
    let [before, now] = change.map(|file| file.and_then(|file| file.family));
    if before != now {
        invalidated.lookup(Lookup::At(stem(path)));
    }
    let [before, now] = change.map(|file| file.and_then(|file| file.package));
    if before != now {
        let names = [before, now].into_iter().flatten();
        names.for_each(|name| invalidated.lookup(Lookup::Library(name)));
    }
}

fn invalidate_imports(invalidated: &mut Invalidated, id: FileId, change: Change<'_>) {
    let [before, now] = change.map(|file| file.map_or(&[][..], |file| &file.imports));
    if before == now {
        return;
    }
    let [before, now] = [before, now].map(by_name);
    for (name, imports) in before.iter().chain(&now) {
        let is_same = [&before, &now].iter().all(|list| list.get(name) == Some(imports));
        match name {
            _ if is_same => {}
            Some(name) if imports.iter().all(|import| !import.all) => {
                invalidated.lookup(Lookup::Named(id, *name));
            }
            _ => invalidated.lookup(Lookup::All(id)),
        }
    }
}

fn by_name(imports: &[Import]) -> FxHashMap<Option<Name>, Vec<&Import>> {
    let mut by_name: FxHashMap<_, Vec<_>> = FxHashMap::default();
    for import in imports {
        by_name.entry(import.known_as).or_default().push(import);
    }
    by_name
}

fn shapes(file: Option<&File>) -> FxHashMap<NodeId, Shape> {
    let Some(file) = file else { return FxHashMap::default() };
    let shape = |(symbol, at): (&Symbol, u32)| {
        let holder = file.symbols.get(symbol.parent as usize).map(|holder| holder.kind);
        let holds = symbol.kind != Kind::Class && file.holds(at);
        let (is_local, calls) = (file.is_local(symbol.parent), file.calls_in(at));
        let bases = file.bases(at).collect();
        (symbol.node, Shape { kind: symbol.kind, holder, is_local, holds, calls, bases })
    };
    file.symbols.iter().zip(0..).map(shape).collect()
}
