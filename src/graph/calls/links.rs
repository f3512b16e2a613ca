//! Which file a module is, found out once in each update by each of its threads.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use super::index::{FileId, Index};
use super::names::Name;
use super::questions::{Asked, Notes};

pub(super) struct Links<'i> {
    index: &'i Index,
    pub(super) notes: Notes,
    children: Known<(FileId, Name)>,
    /// By the symbol in the file.
    declared: Known<(FileId, u32)>,
    parents: Known<FileId>,
    /// By the folder that a module is named in.
    libraries: Known<(Name, Name)>,
    /// By that, too, and whether tests name it.
    scripts: Known<(Name, Name, bool)>,
    packages: Known<(Name, Name, Option<Name>)>,
}

type Known<K> = RefCell<FxHashMap<K, Link>>;

struct Link {
    to: Option<FileId>,
    asked: Box<[Asked]>,
    /// The file for which that was noted last, by how many there were before it.
    noted_for: Option<usize>,
}

impl<'i> Links<'i> {
    pub(super) fn new(index: &'i Index) -> Self {
        Self {
            index,
            notes: Notes::default(),
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
        self.once(&self.children, (file, name), |notes| {
            self.index.rust_child(file, is_root, self.index.names.text(name), notes)
        })
    }

    /// The file of `mod name;` that stands in modules within a file.
    pub(super) fn rust_declared(&self, id: FileId, at: u32) -> Option<FileId> {
        let file = self.index.file(id)?;
        let is_root = self.rust_parent(id).is_none();
        self.once(&self.declared, (id, at), |notes| {
            let mut way = Vec::new();
            let mut next = at;
            while let Some(symbol) = file.symbols.get(next as usize) {
                way.push(self.index.names.text(symbol.name));
                next = symbol.parent;
            }
            way.reverse();
            self.index.rust_child(id, is_root, &way.join("/"), notes)
        })
    }

    pub(super) fn rust_parent(&self, file: FileId) -> Option<FileId> {
        self.once(&self.parents, file, |notes| self.index.rust_parent(file, notes))
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
        self.once(&self.libraries, (folder, name), |notes| {
            self.index.rust_library(from, name, notes)
        })
    }

    pub(super) fn script_module(&self, from: FileId, module: Name) -> Option<FileId> {
        let file = self.index.file(from)?;
        let is_test = file.is_test;
        self.once(&self.scripts, (file.folder, module, is_test), |notes| {
            self.index.script_module(from, self.index.names.text(module), notes)
        })
    }

    /// Of a name, it is the module of that name in a module that need not have a file.
    pub(super) fn python_module(
        &self,
        from: FileId,
        module: Name,
        name: Option<Name>,
    ) -> Option<FileId> {
        let folder = self.index.file(from)?.folder;
        self.once(&self.packages, (folder, module, name), |notes| {
            let module = self.index.names.text(module);
            let Some(name) = name else { return self.index.python_module(from, module, notes) };
            let dot = if module.ends_with('.') { "" } else { "." };
            let module = format!("{module}{dot}{}", self.index.names.text(name));
            self.index.python_module(from, &module, notes)
        })
    }

    fn once<K: Eq + std::hash::Hash>(
        &self,
        known: &Known<K>,
        key: K,
        find: impl FnOnce(&Notes) -> Option<FileId>,
    ) -> Option<FileId> {
        let mut known = known.borrow_mut();
        let link = known.entry(key).or_insert_with(|| {
            let notes = Notes::default();
            Link { to: find(&notes), asked: notes.take(), noted_for: None }
        });
        let this = Some(self.notes.taken());
        if link.noted_for != this {
            link.noted_for = this;
            self.notes.extend(&link.asked);
        }
        link.to
    }
}
