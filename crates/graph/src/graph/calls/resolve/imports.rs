//! Resolves a name in a file: its declarations, submodules and imports.

use super::{Found, Resolver, Target, Walk, Want};
use crate::graph::calls::dependencies::Lookup;
use crate::graph::calls::ids::{Family, FileId};
use crate::graph::calls::index::{File, Import, NONE};
use crate::graph::calls::modules::modules_between;
use crate::graph::calls::names::Name;
use crate::graph::facts::Kind;

impl Resolver<'_> {
    pub(super) fn rust_start<'p>(
        &self,
        from: FileId,
        path: &'p [Name],
        in_module: bool,
        skip: Option<&Import>,
        walk: &mut Walk,
    ) -> (Target, &'p [Name]) {
        let Some((first, rest)) = path.split_first() else { return (Target::Nowhere, path) };
        match self.index.names.text(*first) {
            "crate" | "$crate" => {
                return (Target::Module(self.links.rust_root(from)), rest);
            }
            "self" => return (Target::Module(from), rest),
            "super" => {
                let mut module = Target::Module(from);
                if !in_module {
                    module = self.above(module, walk);
                }
                let mut rest = rest;
                while let Some((next, after)) = rest.split_first()
                    && self.index.names.text(*next) == "super"
                {
                    module = self.above(module, walk);
                    rest = after;
                }
                return (module, rest);
            }
            _ => {}
        }
        let local = self.member_but(from, *first, Want::Container, skip, walk);
        if local != Target::Nowhere {
            return (local, rest);
        }
        if let Some(library) = self.links.rust_library(from, *first) {
            return (Target::Module(library), rest);
        }
        if matches!(self.index.names.text(*first), "std" | "core" | "alloc") {
            return (Target::Outside, rest);
        }
        (if skip.is_some() { Target::Outside } else { Target::Nowhere }, rest)
    }

    /// Returns the parent of a Rust module, which may be an inline module.
    fn above(&self, module: Target, walk: &mut Walk) -> Target {
        match module {
            Target::Module(id) => {
                let Some(above) = self.links.rust_parent(id) else { return Target::Nowhere };
                let path = |id| self.index.file(id).map_or("", |file| &*file.path);
                let between = modules_between(path(above), path(id));
                between.fold(Target::Module(above), |module, name| {
                    let name = self.index.names.find(name);
                    name.map_or(Target::Nowhere, |name| {
                        self.step(module, name, Want::Container, walk)
                    })
                })
            }
            Target::Symbol(id, at) => {
                let symbol = self.index.file(id).and_then(|file| file.symbols.get(at as usize));
                match symbol.map_or(NONE, |symbol| symbol.parent) {
                    NONE => Target::Module(id),
                    outer => Target::Symbol(id, outer),
                }
            }
            other => other,
        }
    }

    pub(super) fn step(&self, target: Target, name: Name, want: Want, walk: &mut Walk) -> Target {
        match target {
            Target::Module(file) => {
                let found = self.member(file, name, want, walk);
                if found != Target::Nowhere || self.family != Family::Script {
                    return found;
                }
                // A member of the default export may be defined beside it.
                match self.default(file, name, walk) {
                    Target::Symbol(other, at) => match self.inside(other, at, name, want) {
                        Target::Nowhere if other != file => self.member(other, name, want, walk),
                        found => found,
                    },
                    Target::Module(other) => self.member(other, name, want, walk),
                    Target::Outside | Target::Nowhere => found,
                }
            }
            Target::Symbol(file, at) => self.inside(file, at, name, want),
            other => other,
        }
    }

    fn inside(&self, holder: FileId, at: u32, name: Name, want: Want) -> Target {
        let Found::One((file, found)) = self.child(holder, at, name) else {
            return Target::Nowhere;
        };
        let Some(module) = self.declared(file, found) else { return Target::Symbol(file, found) };
        match want {
            Want::Callable => self
                .pick(holder, name, at, want)
                .map_or(Target::Module(module), |function| Target::Symbol(holder, function)),
            Want::Container => Target::Module(module),
        }
    }

    /// Returns the file of `mod name;`. A symbol of kind function without calls may be such a line.
    pub(super) fn declared(&self, id: FileId, at: u32) -> Option<FileId> {
        let file = self.index.file(id)?;
        let may_declare = self.family == Family::Rust
            && file.symbols.get(at as usize)?.kind == Kind::Function
            && !file.holds(at)
            && !file.calls_in(at);
        may_declare.then(|| self.links.rust_declared(id, at)).flatten()
    }

    pub(super) fn member(&self, file: FileId, name: Name, want: Want, walk: &mut Walk) -> Target {
        self.member_but(file, name, want, None, walk)
    }

    /// Resolves a name at the top of a file: a declaration, a submodule, an import.
    pub(super) fn member_but(
        &self,
        id: FileId,
        name: Name,
        want: Want,
        skip: Option<&Import>,
        walk: &mut Walk,
    ) -> Target {
        match walk.enter((id, name, want, skip.is_some())) {
            Err(known) => known,
            Ok(at) => {
                let found = self.find_member(id, name, want, skip, walk);
                walk.0[at].1 = found;
                found
            }
        }
    }

    /// Looks a name up among a file's declarations and submodules, then among its named imports,
    /// then in its exports from others.
    fn find_member(
        &self,
        id: FileId,
        name: Name,
        want: Want,
        skip: Option<&Import>,
        walk: &mut Walk,
    ) -> Target {
        let Some(file) = self.index.file(id) else { return Target::Nowhere };
        self.depend_on_name(id, name);
        let found = self.own_member(id, file, name, want);
        if found != Target::Nowhere {
            return found;
        }
        let is_default = self.family == Family::Script
            && matches!(self.index.names.text(name), "default" | "exports");
        let is_skipped = |import: &Import| skip.is_some_and(|skip| std::ptr::eq(skip, import));
        let imports = || file.imports.iter().filter(|import| !is_skipped(import));
        let named = imports().filter(|import| import.known_as == Some(name) && !import.all);
        let found = self.named_import(id, name, is_default, named, walk);
        if found != Target::Nowhere {
            return found;
        }
        if id != self.id {
            self.depend_on(Lookup::All(id));
        }
        // `export *` leaves the default export out.
        let all = imports().filter(|import| import.all && !is_default);
        self.glob_import(id, name, want, all, walk).unwrap_or(Target::Nowhere)
    }

    fn own_member(&self, id: FileId, file: &File, name: Name, want: Want) -> Target {
        // `const shop = require('./shop')` is both a declaration and an import.
        let is_import = self.family == Family::Script
            && file.imports.iter().any(|import| import.known_as == Some(name));
        if !is_import && let Some(found) = self.pick(id, name, NONE, want) {
            return Target::Symbol(id, found);
        }
        let is_container = want == Want::Container;
        let module = is_container.then(|| self.submodule(id, file, name)).flatten();
        module.map_or(Target::Nowhere, Target::Module)
    }

    /// Resolves the imports of a name: the first that is found, of default exports the last.
    fn named_import<'i>(
        &self,
        id: FileId,
        name: Name,
        is_default: bool,
        mut imports: impl DoubleEndedIterator<Item = &'i Import>,
        walk: &mut Walk,
    ) -> Target {
        let mut none = Target::Nowhere;
        while let Some(import) = if is_default { imports.next_back() } else { imports.next() } {
            match self.import(id, import, walk) {
                Target::Nowhere => {}
                Target::Outside => none = Target::Outside,
                Target::Module(other) if is_default => {
                    let found = self.default(other, import.name.unwrap_or(name), walk);
                    return if found == Target::Nowhere { Target::Module(other) } else { found };
                }
                found => return found,
            }
        }
        none
    }

    /// Resolves a name by `import *` and the like; None if two of them disagree.
    fn glob_import<'i>(
        &self,
        id: FileId,
        name: Name,
        want: Want,
        imports: impl Iterator<Item = &'i Import>,
        walk: &mut Walk,
    ) -> Option<Target> {
        let mut found = Target::Nowhere;
        for import in imports {
            let found_there = match self.import(id, import, walk) {
                Target::Module(other) if self.family == Family::Script => {
                    self.member(other, name, want, walk)
                }
                holder => self.step(holder, name, want, walk),
            };
            match found_there {
                Target::Nowhere | Target::Outside => {}
                other if found == Target::Nowhere || found == other => found = other,
                _ => return None,
            }
        }
        if found == Target::Nowhere
            && want == Want::Container
            && let Some(any) = self.pick(id, name, NONE, Want::Callable)
        {
            return Some(Target::Symbol(id, any));
        }
        Some(found)
    }

    pub(super) fn submodule(&self, id: FileId, file: &File, name: Name) -> Option<FileId> {
        match self.family {
            Family::Rust => self.links.rust_child(id, name),
            Family::Python if file.path.ends_with("__init__.py") => {
                let here = self.index.names.find(".")?;
                self.links.python_module(id, here, Some(name))
            }
            _ => None,
        }
    }

    /// Resolves an import; for `*`, to the module.
    pub(super) fn import(&self, id: FileId, import: &Import, walk: &mut Walk) -> Target {
        let module = self.index.names.text(import.module);
        if module.is_empty() {
            let own = import.name.filter(|name| import.known_as != Some(*name));
            return own.map_or(Target::Nowhere, |name| {
                self.member_but(id, name, Want::Callable, Some(import), walk)
            });
        }
        match self.family {
            Family::Rust => self.rust_import(id, import, walk),
            Family::Python => {
                let found = self.links.python_module(id, import.module, None);
                match (found, import.name) {
                    (Some(file), Some(name)) => match self.member(file, name, Want::Callable, walk)
                    {
                        Target::Nowhere => self.member(file, name, Want::Container, walk),
                        found => found,
                    },
                    (Some(file), None) => Target::Module(file),
                    (None, name @ Some(_)) => self
                        .links
                        .python_module(id, import.module, name)
                        .map_or(Target::Outside, Target::Module),
                    (None, None) => Target::Outside,
                }
            }
            Family::Script => match (self.links.script_module(id, import.module), import.name) {
                (None, _) => Target::Outside,
                (Some(file), None) => Target::Module(file),
                (Some(file), Some(name)) if self.index.names.text(name) == "default" => {
                    let alias = self.index.names.path(import.alias).first().copied();
                    self.default(file, alias.unwrap_or(name), walk)
                }
                (Some(file), Some(name)) => self.member(file, name, Want::Callable, walk),
            },
            Family::Other(_) => Target::Nowhere,
        }
    }

    pub(super) fn rust_import(&self, id: FileId, import: &Import, walk: &mut Walk) -> Target {
        let path = self.index.names.path(import.path);
        let (mut target, rest) = self.rust_start(id, path, false, Some(import), walk);
        for (at, name) in rest.iter().enumerate() {
            let is_last = at + 1 == rest.len();
            let before = target;
            target = Target::Nowhere;
            if is_last && !import.all {
                target = self.step(before, *name, Want::Callable, walk);
            }
            if target == Target::Nowhere {
                target = self.step(before, *name, Want::Container, walk);
            }
        }
        target
    }

    /// Returns the default export of a script, else its member named as `alias` or as the file.
    pub(super) fn default(&self, file: FileId, alias: Name, walk: &mut Walk) -> Target {
        let stem =
            self.index.file(file).and_then(|file| file.path.rsplit('/').next()?.split('.').next());
        let find = |name| self.index.names.find(name);
        let default = find("default");
        let names = [default, find("exports"), Some(alias), stem.and_then(find)];
        let mut found =
            names.into_iter().flatten().map(|name| self.member(file, name, Want::Callable, walk));
        found.find(|found| *found != Target::Nowhere).unwrap_or_else(|| {
            default
                .and_then(|name| self.pick(file, name, NONE, Want::Callable))
                .map_or(Target::Nowhere, |at| Target::Symbol(file, at))
        })
    }
}
