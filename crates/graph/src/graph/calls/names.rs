//! Interned names and paths.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

/// A text of [`Names`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Name(pub(super) u32);

/// A path of names, `a::b`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Path(u32);

/// Only grows: an edited file has mostly the names that it had before.
#[derive(Default)]
pub(super) struct Names {
    texts: IndexSet<Box<str>, FxBuildHasher>,
    paths: IndexSet<Box<[Name]>, FxBuildHasher>,
}

impl Names {
    pub(super) fn add(&mut self, text: &str) -> Name {
        let at = match self.texts.get_index_of(text) {
            Some(at) => at,
            None => self.texts.insert_full(text.into()).0,
        };
        Name(number(at))
    }

    pub(super) fn add_path(&mut self, names: &[Name]) -> Path {
        let at = match self.paths.get_index_of(names) {
            Some(at) => at,
            None => self.paths.insert_full(names.into()).0,
        };
        Path(number(at))
    }

    pub(super) fn find(&self, text: &str) -> Option<Name> {
        self.texts.get_index_of(text).map(|at| Name(number(at)))
    }

    pub(super) fn text(&self, name: Name) -> &str {
        self.texts.get_index(name.0 as usize).map_or("", |text| text)
    }

    pub(super) fn path(&self, path: Path) -> &[Name] {
        self.paths.get_index(path.0 as usize).map_or(&[], |names| names)
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }
}

/// An index as a number. Nothing here is more than `u32::MAX`: the texts would not fit into memory.
pub(super) fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
