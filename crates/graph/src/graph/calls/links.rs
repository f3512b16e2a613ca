//! The file of each module, looked up once by each thread of an update.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use super::dependencies::{Dependencies, Dependency};
use super::ids::FileId;
use super::index::Index;
use super::modules::ModuleFinder;
use super::names::Name;

pub(super) struct Links<'i> {
    index: &'i Index,
    pub(super) dependencies: Dependencies,
    children: Known<(FileId, Name)>,
    /// By the symbol of the module in the file.
    declared: Known<(FileId, u32)>,
    parents: Known<FileId>,
    /// By the folder of the importing file.
    libraries: Known<(Name, Name)>,
    /// By the folder and whether the importing file is a test.
    scripts: Known<(Name, Name, bool)>,
    packages: Known<(Name, Name, Option<Name>)>,
}

type Known<K> = RefCell<FxHashMap<K, Link>>;

struct Link {
    to: Option<FileId>,
    dependencies: Box<[Dependency]>,
    /// The file that these were recorded for last, as [`Dependencies::taken`].
    recorded_for: Option<usize>,
}

impl<'i> Links<'i> {
    pub(super) fn new(index: &'i Index) -> Self {
        Self {
            index,
            dependencies: Dependencies::default(),
            children: Known::default(),
            declared: Known::default(),
            parents: Known::default(),
            libraries: Known::default(),
            scripts: Known::default(),
            packages: Known::default(),
        }
    }

    pub(super) fn rust_child(&self, file: FileId, name: Name) -> Option<FileId> {
        let is_root = self.rust_parent(file).is_none();
        self.once(&self.children, (file, name), |modules| {
            modules.rust_child(file, is_root, self.index.names.text(name))
        })
    }

    /// The file of `mod name;` in an inline module of a file.
    pub(super) fn rust_declared(&self, id: FileId, at: u32) -> Option<FileId> {
        let file = self.index.file(id)?;
        let is_root = self.rust_parent(id).is_none();
        self.once(&self.declared, (id, at), |modules| {
            let mut path = Vec::new();
            let mut next = at;
            while let Some(symbol) = file.symbols.get(next as usize) {
                path.push(self.index.names.text(symbol.name));
                next = symbol.parent;
            }
            path.reverse();
            modules.rust_child(id, is_root, &path.join("/"))
        })
    }

    pub(super) fn rust_parent(&self, file: FileId) -> Option<FileId> {
        self.once(&self.parents, file, |modules| modules.rust_parent(file))
    }

    pub(super) fn rust_root(&self, file: FileId) -> FileId {
        let mut root = file;
        while let Some(above) = self.rust_parent(root) {
            root = above;
        }
        root
    }

    pub(super) fn rust_library(&self, from: FileId, name: Name) -> Option<FileId> {
        let folder = self.index.file(from)?.folder;
        self.once(&self.libraries, (folder, name), |modules| modules.rust_library(from, name))
    }

    pub(super) fn script_module(&self, from: FileId, module: Name) -> Option<FileId> {
        let file = self.index.file(from)?;
        let is_test = file.is_test;
        self.once(&self.scripts, (file.folder, module, is_test), |modules| {
            modules.script_module(from, self.index.names.text(module))
        })
    }

    /// With a name: the module of that name in a module that need not have a file.
    pub(super) fn python_module(
        &self,
        from: FileId,
        module: Name,
        name: Option<Name>,
    ) -> Option<FileId> {
        let folder = self.index.file(from)?.folder;
        self.once(&self.packages, (folder, module, name), |modules| {
            let module = self.index.names.text(module);
            let Some(name) = name else {
                return modules.python_module(from, module);
            };
            let dot = if module.ends_with('.') { "" } else { "." };
            let module = format!("{module}{dot}{}", self.index.names.text(name));
            modules.python_module(from, &module)
        })
    }

    fn once<K: Eq + std::hash::Hash>(
        &self,
        known: &Known<K>,
        key: K,
        find: impl FnOnce(&ModuleFinder<'_>) -> Option<FileId>,
    ) -> Option<FileId> {
        let mut known = known.borrow_mut();
        let link = known.entry(key).or_insert_with(|| {
            let dependencies = Dependencies::default();
            let modules = ModuleFinder { index: self.index, dependencies: &dependencies };
            Link { to: find(&modules), dependencies: dependencies.take(), recorded_for: None }
        });
        let this = Some(self.dependencies.taken());
        if link.recorded_for != this {
            link.recorded_for = this;
            self.dependencies.extend(&link.dependencies);
        }
        link.to
    }
}
