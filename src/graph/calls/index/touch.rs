//! Which questions may have another answer after a change of a file.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Definition, End, Family, File, FileId, Import, Index, MANY, Symbol, stem};
use crate::graph::calls::common;
use crate::graph::calls::names::{Name, Path};
use crate::graph::calls::questions::{Question, Touched};
use crate::graph::facts::Kind;

/// A file before a change and after it.
type Change<'a> = [Option<&'a File>; 2];

/// What it depends on, beside its place, what a symbol is found as.
#[derive(PartialEq)]
struct Shape {
    kind: Kind,
    holder: Option<Kind>,
    is_local: bool,
    /// Whether others stand in it; a class may always hold some.
    holds: bool,
    calls: bool,
    bases: Vec<Path>,
}

/// A method that is not what it was, and the class that has it.
struct Method {
    name: Name,
    class: Option<Name>,
}

/// A name of a family, as it is asked about for one file.
#[derive(Clone, Copy)]
struct Of {
    family: Family,
    name: Name,
    id: FileId,
}

impl Index {
    /// Notes what a change touches, once the index has it.
    pub(super) fn touch(&mut self, id: FileId, path: &str, before: Option<&File>) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.file(id);
        if !touched.is_everything() {
            let change = [before, self.file(id)];
            touch_path(&mut touched, path, change);
            touch_imports(&mut touched, id, change);
            self.touch_symbols(&mut touched, id, change);
        }
        self.touched = touched;
    }

    fn touch_symbols(&self, touched: &mut Touched, id: FileId, change: Change<'_>) {
        let family = change.into_iter().flatten().find_map(|file| file.family);
        let Some(family) = family else { return };
        let [old, new] = change.map(shapes);
        let mut names = FxHashSet::default();
        let mut methods = Vec::new();
        for end in old.keys().chain(new.keys().filter(|end| !old.contains_key(end))) {
            let shapes = [old.get(end), new.get(end)];
            let Some(place) = self.places.get(end.0 as usize) else { continue };
            if shapes[0] == shapes[1] {
                continue;
            }
            touched.question(Question::Named(id, place.name));
            names.insert(place.name);
            let holder = self.places.get(place.parent.0 as usize).map(|holder| holder.name);
            for shape in shapes.into_iter().flatten() {
                let class = holder.filter(|_| shape.holder == Some(Kind::Class));
                if shape.holder.is_none() {
                    touched.question(Question::Top(family, place.name));
                }
                if let Some(class) = class {
                    touched.question(Question::InClasses(family, class, place.name));
                }
                if shape.kind == Kind::Method {
                    methods.push(Method { name: place.name, class });
                }
            }
        }
        let of = |name| Of { family, name, id };
        names.retain(|name| !self.tells_nothing(touched, of(*name), change));
        methods.retain(|method| names.contains(&method.name));
        for method in &methods {
            touched.question(self.method_of(of(method.name), method.class));
        }
        let names: FxHashSet<Name> = methods.into_iter().map(|method| method.name).collect();
        for name in names.into_iter().filter(|name| !self.is_ambiguous(of(*name))) {
            touched.question(Question::Method(family, name));
        }
    }

    /// Returns whether a name tells nothing of a value, before as after; where it did so only before,
    /// or does only now, notes that.
    fn tells_nothing(&self, touched: &mut Touched, of: Of, change: Change<'_>) -> bool {
        let others = self.others(of).take(MANY + 1).count();
        let own = |file: Option<&File>| file.map_or(0, |file| file.named(of.name).count());
        let [before, now] = change.map(|file| others + own(file) > MANY);
        if before != now {
            touched.question(Question::Method(of.family, of.name));
            for definition in self.all(of.name) {
                let class = self.holder(definition).map(|holder| holder.name);
                touched.question(self.method_of(of, class));
            }
        }
        before && now
    }

    /// Returns whether others have methods of a name that are not one and the same, whatever the file
    /// has, and wherever one asks.
    fn is_ambiguous(&self, of: Of) -> bool {
        let is_anywhere = |id| self.file(id).is_some_and(|file| !file.is_test);
        let mut others =
            self.others(of).filter(|other| self.is_method(other) && is_anywhere(other.file));
        let Some(one) = others.next() else { return false };
        others.any(|other| !one.is_overload_of(other))
    }

    fn others(&self, of: Of) -> impl Iterator<Item = &Definition> {
        let all = self.all(of.name).iter();
        all.filter(move |other| other.family == of.family && other.file != of.id)
    }

    fn method_of(&self, of: Of, class: Option<Name>) -> Question<'static> {
        let class = class.map_or("", |class| self.names.text(class));
        Question::MethodOf(of.family, of.name, common::ending(class))
    }
}

fn touch_path(touched: &mut Touched, path: &str, change: Change<'_>) {
    let [before, now] = change.map(|file| file.and_then(|file| file.family));
    if before != now {
        touched.question(Question::At(stem(path)));
    }
    let [before, now] = change.map(|file| file.and_then(|file| file.package));
    if before != now {
        let names = [before, now].into_iter().flatten();
        names.for_each(|name| touched.question(Question::Library(name)));
    }
}

fn touch_imports(touched: &mut Touched, id: FileId, change: Change<'_>) {
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
                touched.question(Question::Named(id, *name));
            }
            _ => touched.question(Question::All(id)),
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

fn shapes(file: Option<&File>) -> FxHashMap<End, Shape> {
    let Some(file) = file else { return FxHashMap::default() };
    let shape = |(symbol, at): (&Symbol, u32)| {
        let holder = file.symbols.get(symbol.parent as usize).map(|holder| holder.kind);
        let holds = symbol.kind != Kind::Class && file.holds(at);
        let (is_local, calls) = (file.is_local(symbol.parent), file.calls_in(at));
        let bases = file.bases(at).collect();
        (symbol.end, Shape { kind: symbol.kind, holder, is_local, holds, calls, bases })
    };
    file.symbols.iter().zip(0..).map(shape).collect()
}
