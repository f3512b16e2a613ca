//! Symbols of a name: in another symbol, as a method of a value, anywhere.

use std::path::Path;

use super::{Found, Resolver, Target, Walk, Want, choose, only};
use crate::graph::calls::Rule;
use crate::graph::calls::dependencies::Lookup;
use crate::graph::calls::heuristics;
use crate::graph::calls::ids::{Family, FileId, NodeId};
use crate::graph::calls::index::{Call, Definition, File, Import, MANY, Symbol};
use crate::graph::calls::names::Name;
use crate::graph::facts::Kind;

impl Resolver<'_> {
    /// Returns the symbol of a name directly in another symbol, or at the top of a file.
    pub(super) fn pick(&self, id: FileId, name: Name, parent: u32, want: Want) -> Option<u32> {
        let file = self.index.file(id)?;
        self.depend_on_name(id, name);
        let fits = |(at, symbol): &(u32, Symbol)| {
            symbol.parent == parent
                && match want {
                    Want::Callable => {
                        let is_bare = symbol.kind != Kind::Method || self.family_has_bare_methods();
                        is_bare && self.declared(id, *at).is_none()
                    }
                    Want::Container => symbol.kind == Kind::Class || file.holds(*at),
                }
        };
        choose(self.family, file.named(name).filter(fits))
    }

    /// Returns the symbol of a name in another one, other `impl`s of a Rust type included.
    pub(super) fn child(&self, id: FileId, holder: u32, name: Name) -> Found<(FileId, u32)> {
        let Some(file) = self.index.file(id) else { return Found::Nothing };
        self.depend_on_name(id, name);
        let mut here = file.named(name).filter(|(_, symbol)| symbol.parent == holder).peekable();
        if here.peek().is_some() {
            let several =
                |symbol: &Symbol| symbol.kind == Kind::Method && self.family == Family::Rust;
            let all: Vec<_> = here.collect();
            if all.len() > 1 && all.iter().any(|(_, symbol)| several(symbol)) {
                return Found::Many;
            }
            return choose(self.family, all.into_iter())
                .map_or(Found::Nothing, |at| Found::One((id, at)));
        }
        let class = file.symbols[holder as usize];
        if self.family != Family::Rust || class.kind != Kind::Class {
            return Found::Nothing;
        }
        self.in_classes(class.name, name, |_| true)
    }

    /// Returns the only method of a name that a value may have: by the name of the variable, in this
    /// file, else in the workspace.
    pub(super) fn method(&self, call: &Call, variable: Option<Name>) -> Option<(NodeId, Rule)> {
        let (index, name) = (self.index, call.name);
        let mut all = index.definitions(self.family, name);
        if all.len() > MANY {
            all = index.in_file(self.family, self.file.folder, self.id, name);
        }
        // In a test, methods that it cannot mean still make a name ambiguous.
        let counts = |id| self.file.is_test || self.may_mean(id);
        let all = all.iter().filter(|found| index.is_method(found) && counts(found.file));
        let is_common = heuristics::is_common(self.family, index.names.text(name));
        if let Some(variable) = variable {
            let variable = index.names.text(variable);
            self.depend_on(Lookup::MethodOf(self.family, name, heuristics::ending(variable)));
            // The further away the class, the closer the names must match.
            let rounds = [(true, true), (true, false), (false, true)];
            let far = if heuristics::is_wrapped(variable) { 2 } else { 3 };
            for (is_known, exactly) in rounds.into_iter().take(if is_common { 1 } else { far }) {
                let of_it = all.clone().filter(|definition| {
                    let class = index.holder(definition);
                    let class = class.map_or("", |holder| index.names.text(holder.name));
                    heuristics::is_called_after(variable, class, exactly)
                        && (self.where_to(definition.file) <= Rule::Import) == is_known
                        && self.may_mean(definition.file)
                        && self.may_have(call, definition)
                });
                match only(of_it) {
                    Found::One(found) => return self.to(found),
                    Found::Many => break,
                    Found::Nothing => {}
                }
            }
        }
        if is_common {
            return None;
        }
        let here = all.clone().filter(|definition| definition.file == self.id);
        let found = match only(here) {
            Found::Nothing => {
                self.depend_on(Lookup::Method(self.family, name));
                only(all)
            }
            found => found,
        };
        let Found::One(found) = found else { return None };
        if !self.may_mean(found.file) || !self.may_have(call, found) {
            return None;
        }
        self.to(found)
    }

    fn to(&self, method: &Definition) -> Option<(NodeId, Rule)> {
        Some((self.node(method.file, method.symbol)?, self.where_to(method.file)))
    }

    /// Whether a value may be of a method's class: a local class of Python is visible in its function
    /// only.
    fn may_have(&self, call: &Call, method: &Definition) -> bool {
        let Some(file) = self.index.file(method.file) else { return false };
        if self.family != Family::Python || !file.is_local(method.parent) {
            return true;
        }
        let top = |file: &File, at| file.around(at).last().map(|(at, _)| at);
        method.file == self.id && top(file, method.parent) == top(self.file, call.within)
    }

    /// Whether a value may be of a type of that file: types of tests are used by tests nearby and by
    /// files that import them only.
    fn may_mean(&self, id: FileId) -> bool {
        let Some(file) = self.index.file(id) else { return false };
        let is_near = || {
            let [here, there] =
                [self.file.folder, file.folder].map(|name| self.index.names.text(name));
            Path::new(here).starts_with(there) || Path::new(there).starts_with(here)
        };
        !file.is_test || (self.file.is_test && is_near()) || self.imports(id)
    }

    /// Returns the rule by which a file is reached.
    pub(super) fn where_to(&self, file: FileId) -> Rule {
        if file == self.id {
            Rule::File
        } else if self.imports(file) {
            Rule::Import
        } else {
            self.near(file)
        }
    }

    fn imports(&self, other: FileId) -> bool {
        let (id, file) = (self.id, self.file);
        let imported = self.imported.get_or_init(|| {
            let target = |import: &Import| match self.import(id, import, &mut Walk::default()) {
                Target::Module(file) | Target::Symbol(file, _) => Some(file),
                Target::Outside | Target::Nowhere => None,
            };
            let mut files: Vec<_> = file.imports.iter().filter_map(target).collect();
            files.sort_unstable();
            files.dedup();
            files
        });
        imported.binary_search(&other).is_ok()
    }

    /// Looks in the same folder, then in the whole workspace.
    pub(super) fn anywhere(
        &self,
        name: Name,
        fits: impl Fn(&Symbol, &Definition) -> bool,
    ) -> Option<(NodeId, Rule)> {
        if heuristics::is_common(self.family, self.index.names.text(name)) {
            return None;
        }
        self.depend_on(Lookup::Top(self.family, name));
        let fits = |definition: &&Definition| {
            let symbol = self
                .index
                .file(definition.file)
                .and_then(|file| file.symbols.get(definition.symbol as usize));
            symbol.is_some_and(|symbol| fits(symbol, definition))
        };
        let beside = self.index.in_folder(self.family, self.file.folder, name).iter().filter(fits);
        let all = self.index.definitions(self.family, name).iter().filter(fits);
        let (found, rule) = match only(beside) {
            Found::Nothing => (only(all), Rule::Workspace),
            found => (found, Rule::Folder),
        };
        let Found::One(found) = found else { return None };
        Some((self.node(found.file, found.symbol)?, rule))
    }

    /// Looks for a member of a class of a name in any file.
    pub(super) fn anywhere_in(&self, class: Name, name: Name) -> Option<(NodeId, Rule)> {
        let beside = |id| self.index.file(id).is_some_and(|file| file.folder == self.file.folder);
        let (found, rule) = match self.in_classes(class, name, beside) {
            Found::Nothing => (self.in_classes(class, name, |_| true), Rule::Workspace),
            found => (found, Rule::Folder),
        };
        let Found::One((file, at)) = found else { return None };
        Some((self.node(file, at)?, rule))
    }

    /// Returns the only symbol of a name in all classes of another name.
    fn in_classes(
        &self,
        class: Name,
        name: Name,
        is_meant: impl Fn(FileId) -> bool,
    ) -> Found<(FileId, u32)> {
        self.depend_on(Lookup::InClasses(self.family, class, name));
        let mut found = Found::Nothing;
        for holder in self.index.definitions(self.family, class) {
            if holder.kind != Kind::Class || !is_meant(holder.file) {
                continue;
            }
            let Some(file) = self.index.file(holder.file) else { continue };
            for (at, symbol) in file.named(name) {
                if symbol.parent == holder.symbol {
                    if !matches!(found, Found::Nothing) {
                        return Found::Many;
                    }
                    found = Found::One((holder.file, at));
                }
            }
        }
        found
    }

    /// Whether it is a variable rather than a module or a type.
    pub(super) fn is_value(&self, target: Target) -> bool {
        match target {
            Target::Symbol(file, at) => self
                .index
                .file(file)
                .is_some_and(|file| file.symbols[at as usize].kind == Kind::Function),
            _ => false,
        }
    }
}
