//! The file of a module, by paths and names of packages, as each language finds it. Uses no other
//! content of the files.

use super::dependencies::{Dependencies, Lookup};
use super::heuristics;
use super::ids::{Family, FileId};
use super::index::Index;
use super::names::Name;
use crate::graph::manifest;

/// Folders of a package's sources, below the package.
const SOURCES: [&str; 4] = ["", "src", "lib", "python"];
const SCRIPT_ENDINGS: [&str; 8] = [".js", ".ts", ".jsx", ".tsx", ".mjs", ".cjs", ".mts", ".cts"];

/// Finds modules, and records the lookups that it does.
pub(super) struct ModuleFinder<'a> {
    pub(super) index: &'a Index,
    pub(super) dependencies: &'a Dependencies,
}

impl ModuleFinder<'_> {
    /// Returns the file of `mod name;` in a Rust file; of `outer/name` for one in an inline module.
    /// `is_root`: the file is the root of a crate, as a test or an example is.
    pub(super) fn rust_child(&self, file: FileId, is_root: bool, name: &str) -> Option<FileId> {
        let (folder, base) = split(&self.index.file(file)?.path);
        let inside = join(folder, if is_root || base == "mod" { "" } else { base });
        let child = join(&inside, name);
        self.first(&[&child, &join(&child, "mod")], Family::Rust).filter(|child| *child != file)
    }

    /// Returns the parent of a Rust module. None: it is a root.
    pub(super) fn rust_parent(&self, file: FileId) -> Option<FileId> {
        let path = &self.index.file(file)?.path;
        if is_rust_root(split(path).1) {
            return None;
        }
        let mut above = folder_above(path);
        loop {
            let inside = |name| join(above, name);
            let stems = [above.to_owned(), inside("mod"), inside("lib"), inside("main")];
            let found = self.first(&stems, Family::Rust).filter(|above| *above != file);
            if found.is_some() || holds_rust_roots(above) {
                return found;
            }
            // The parent may be an inline module, without a file.
            above = split_folder(above).0;
        }
    }

    /// Returns the library of a name: of the package around the file, else the only one.
    pub(super) fn rust_library(&self, from: FileId, name: Name) -> Option<FileId> {
        self.dependencies.add(Lookup::Library(name));
        let manifests = self.index.packages.get(&name)?;
        let folder = |id: &FileId| self.index.file(*id).map(|file| split(&file.path).0);
        let mut above = split(&self.index.file(from)?.path).0;
        let own = loop {
            let manifest =
                self.index.id(&join(above, manifest::FILE)).and_then(|id| self.index.file(id));
            if manifest.is_some_and(|manifest| manifest.package == Some(name)) {
                break Some(above);
            }
            if above.is_empty() {
                break None;
            }
            above = split_folder(above).0;
        };
        let only = || manifests.first().filter(|_| manifests.len() == 1).and_then(folder);
        let folder = own.or_else(only)?;
        self.first(&[join(folder, "src/lib"), join(folder, "lib")], Family::Rust)
    }

    /// Returns the file of a Python module, written `a.b`, `.a` or `..`.
    pub(super) fn python_module(&self, from: FileId, module: &str) -> Option<FileId> {
        let mut folder = split(&self.index.file(from)?.path).0;
        let name = module.trim_start_matches('.');
        let way = name.replace('.', "/");
        let package = |stem: &str| self.first(&[stem, &join(stem, "__init__")], Family::Python);
        let dots = module.len() - name.len();
        if dots > 0 {
            for _ in 1..dots {
                folder = split_folder(folder).0;
            }
            return package(&join(folder, &way));
        }
        while !folder.is_empty()
            && self.first(&[&join(folder, "__init__")], Family::Python).is_some()
        {
            folder = split_folder(folder).0;
        }
        loop {
            for sources in SOURCES {
                let found = package(&join(&join(folder, sources), &way));
                if found.is_some() {
                    return found;
                }
            }
            if folder.is_empty() {
                return self.python_module_of_root(&way);
            }
            folder = split_folder(folder).0;
        }
    }

    /// Returns the file of a module of the package that the root folder is.
    fn python_module_of_root(&self, way: &str) -> Option<FileId> {
        let way = way.strip_prefix(&*self.index.root).filter(|_| !self.index.root.is_empty())?;
        let package = self.first(&["__init__"], Family::Python)?;
        if way.is_empty() {
            return Some(package);
        }
        let way = way.strip_prefix('/')?;
        self.first(&[way, &join(way, "__init__")], Family::Python)
    }

    /// Returns the file of a script's module, written `./a`, `../a/b.js`, `@/a` or `@scope/package`.
    pub(super) fn script_module(&self, from: FileId, module: &str) -> Option<FileId> {
        let path = self.index.file(from)?.path.clone();
        let mut folder = split(&path).0;
        let bare = SCRIPT_ENDINGS.iter().find_map(|ending| module.strip_suffix(ending));
        let module = bare.unwrap_or(module);
        let file = |stem: &str| {
            self.first(&[stem, &join(stem, "index"), &format!("{stem}.d")], Family::Script)
        };
        if module.starts_with('.') {
            return file(&resolve(folder, module)?);
        }
        let alias = ["@/", "~/", "#/"].iter().find_map(|prefix| module.strip_prefix(prefix));
        let way = alias.unwrap_or(module);
        loop {
            for sources in ["", "src"] {
                let found = (alias.is_some() || way.contains('/'))
                    .then(|| file(&join(&join(folder, sources), way)))
                    .flatten();
                if found.is_some() {
                    return found;
                }
            }
            let found = alias.is_none().then(|| self.script_package(folder, way)).flatten();
            let found = found.or_else(|| {
                // Tests import their own package by its name, which no path contains.
                let inside = way.split('/').skip(1 + usize::from(way.starts_with('@')));
                let inside: Vec<_> = inside.collect();
                let sources = join(&join(folder, "src"), &inside.join("/"));
                heuristics::is_test(&path).then(|| file(&sources)).flatten()
            });
            if found.is_some() || folder.is_empty() {
                return found;
            }
            folder = split_folder(folder).0;
        }
    }

    /// Returns the entry file of a package of the workspace.
    fn script_package(&self, folder: &str, name: &str) -> Option<FileId> {
        let name = match name.strip_prefix('@') {
            Some(scoped) => scoped.split_once('/')?.1,
            None => name,
        };
        let (name, inside) = name.split_once('/').unwrap_or((name, "index"));
        for packages in ["packages", ""] {
            let package = join(&join(folder, packages), name);
            let sources = join(&package, "src");
            let stems = [
                join(&sources, inside),
                join(&join(&sources, inside), "index"),
                join(&package, inside),
            ];
            let found = self.first(&stems, Family::Script);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Returns the first file that exists at one of these paths. Of files that differ by extension only,
    /// it prefers code to declarations.
    fn first<const N: usize, S: AsRef<str>>(
        &self,
        stems: &[S; N],
        family: Family,
    ) -> Option<FileId> {
        stems.iter().find_map(|stem| {
            self.dependencies.add(Lookup::At(stem.as_ref()));
            let path = |id: &FileId| {
                self.index.file(*id).map(|file| (file.path.ends_with('i'), &file.path))
            };
            self.index.at(stem.as_ref(), family).min_by(|a, b| path(a).cmp(&path(b)))
        })
    }
}

/// Returns the inline modules of a Rust file that are between it and the module of another file, outer
/// ones first, as far as paths show.
pub(super) fn modules_between<'p>(above: &str, path: &'p str) -> impl Iterator<Item = &'p str> {
    let (folder, base) = split(above);
    let inside = join(folder, if is_rust_root(base) || base == "mod" { "" } else { base });
    let between = folder_above(path).strip_prefix(&inside).unwrap_or_default();
    between.split('/').filter(|name| !name.is_empty())
}

/// Returns the folder of a Rust file's parent module.
fn folder_above(path: &str) -> &str {
    let (folder, base) = split(path);
    if base == "mod" { split_folder(folder).0 } else { folder }
}

fn is_rust_root(base: &str) -> bool {
    matches!(base, "lib" | "main" | "build")
}

/// Whether roots of crates lie in this folder: modules do not extend above it.
fn holds_rust_roots(folder: &str) -> bool {
    let name = split_folder(folder).1;
    matches!(name, "" | "src" | "bin" | "tests" | "examples" | "benches" | "fuzz_targets")
}

/// Returns the folder of a file and its name without the extension.
fn split(path: &str) -> (&str, &str) {
    let (folder, name) = split_folder(path);
    (folder, name.rsplit_once('.').map_or(name, |(base, _)| base))
}

fn split_folder(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn join(folder: &str, name: &str) -> String {
    match (folder, name) {
        ("", other) | (other, "") => other.to_owned(),
        (folder, name) => format!("{folder}/{name}"),
    }
}

/// Resolves a relative path. None: it leaves the root.
fn resolve(folder: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<_> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
