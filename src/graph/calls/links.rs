//! Which file a module is, found out once in each update by each of its threads.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use super::index::{FileId, Index};
use super::names::Name;

type Known<K> = RefCell<FxHashMap<K, Option<FileId>>>;

#[derive(Default)]
pub(super) struct Links {
    children: Known<(FileId, Name)>,
    parents: Known<FileId>,
    libraries: Known<FileId>,
    /// By the folder that a module is named in.
    scripts: Known<(Name, Name)>,
    packages: Known<(Name, Name, Option<Name>)>,
}

impl Links {
    pub(super) fn rust_child(&self, index: &Index, file: FileId, name: Name) -> Option<FileId> {
        once(&self.children, (file, name), || {
            let is_root = self.rust_parent(index, file).is_none();
            index.rust_child(file, is_root, index.names.text(name))
        })
    }

    pub(super) fn rust_parent(&self, index: &Index, file: FileId) -> Option<FileId> {
        once(&self.parents, file, || index.rust_parent(file))
    }

    pub(super) fn rust_root(&self, index: &Index, file: FileId) -> FileId {
        let mut root = file;
        while let Some(above) = self.rust_parent(index, root) {
            root = above;
        }
        root
    }

    /// The library beside the crate that a file belongs to.
    pub(super) fn rust_library(&self, index: &Index, file: FileId) -> Option<FileId> {
        once(&self.libraries, file, || index.rust_library(self.rust_root(index, file)))
    }

    pub(super) fn script_module(
        &self,
        index: &Index,
        from: FileId,
        module: Name,
    ) -> Option<FileId> {
        let folder = index.file(from)?.folder;
        let find = || index.script_module(from, index.names.text(module));
        once(&self.scripts, (folder, module), find)
    }

    /// Of a name, it is the module of that name in a module that need not have a file.
    pub(super) fn python_module(
        &self,
        index: &Index,
        from: FileId,
        module: Name,
        name: Option<Name>,
    ) -> Option<FileId> {
        let folder = index.file(from)?.folder;
        let find = || {
            let module = index.names.text(module);
            let Some(name) = name else { return index.python_module(from, module) };
            let dot = if module.ends_with('.') { "" } else { "." };
            index.python_module(from, &format!("{module}{dot}{}", index.names.text(name)))
        };
        once(&self.packages, (folder, module, name), find)
    }
}

fn once<K: Copy + Eq + std::hash::Hash>(
    known: &Known<K>,
    key: K,
    find: impl FnOnce() -> Option<FileId>,
) -> Option<FileId> {
    if let Some(found) = known.borrow().get(&key) {
        return *found;
    }
    let found = find();
    known.borrow_mut().insert(key, found);
    found
}
