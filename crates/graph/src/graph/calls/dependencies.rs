//! Which lookups in the index the edges of each file depend on. After a change, only files are resolved
//! again that did a lookup whose result may have changed.

use std::cell::{Cell, RefCell};
use std::hash::{Hash as _, Hasher as _};

use rustc_hash::{FxHashSet, FxHasher};

use super::ids::{Family, FileId};
use super::names::{Name, number};

/// A lookup in the index. Lookups in the file itself are left out: each change of a file resolves it
/// again.
#[derive(Clone, Copy, Hash)]
pub(super) enum Lookup<'a> {
    /// The files at a path that is written without an extension.
    At(&'a str),
    /// The packages whose library has a name.
    Library(Name),
    /// The symbols and imports of a name in a file, and the bases of its classes of that name.
    Named(FileId, Name),
    /// The imports of a file that bring in everything, or are used by several names: `import town.till`.
    All(FileId),
    /// The symbols of the second name in classes of the first.
    InClasses(Family, Name, Name),
    /// The only method of a name.
    Method(Family, Name),
    /// The methods of a name in classes with this [ending](super::heuristics::ending), which variables
    /// have that are called after the class.
    MethodOf(Family, Name, [Option<char>; 3]),
    /// The symbols of a name at the top of any file.
    Top(Family, Name),
}

/// The hash of a [`Lookup`]. Where two have the same, a file is resolved again in vain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Dependency(u32);

impl From<Lookup<'_>> for Dependency {
    fn from(lookup: Lookup<'_>) -> Self {
        let mut hasher = FxHasher::default();
        lookup.hash(&mut hasher);
        let hash = hasher.finish();
        #[expect(clippy::cast_possible_truncation, reason = "both halves are in it")]
        Self((hash ^ (hash >> 32)) as u32)
    }
}

/// Length of a list past which duplicates are removed before it grows.
const MUCH: usize = 64 * 1024;

/// Records the dependencies of one file after the other.
#[derive(Default)]
pub(super) struct Dependencies {
    list: RefCell<Vec<Dependency>>,
    taken: Cell<usize>,
}

impl Dependencies {
    pub(super) fn add(&self, lookup: Lookup<'_>) {
        self.extend(&[lookup.into()]);
    }

    pub(super) fn extend(&self, more: &[Dependency]) {
        let mut list = self.list.borrow_mut();
        let is_full = list.len() + more.len() > list.capacity();
        if is_full && list.len() > MUCH {
            list.sort_unstable();
            list.dedup();
            let as_much = list.len();
            list.reserve(as_much + more.len());
        }
        list.extend_from_slice(more);
    }

    /// Returns how many files were done before this one.
    pub(super) fn taken(&self) -> usize {
        self.taken.get()
    }

    /// Ends a file: returns its dependencies, each once.
    pub(super) fn take(&self) -> Box<[Dependency]> {
        let mut list = self.list.borrow_mut();
        list.sort_unstable();
        list.dedup();
        let taken = list.as_slice().into();
        list.clear();
        self.taken.set(self.taken.get() + 1);
        taken
    }
}

/// The lookups and files that changes invalidate.
#[derive(Default)]
pub(super) struct Invalidated {
    /// The changed files.
    files: Vec<FileId>,
    /// Lookups whose result may have changed.
    lookups: FxHashSet<Dependency>,
    /// The index was empty before: no file has dependencies.
    all: bool,
}

/// Bits of a table that finds all invalidated lookups, and few others, at one access.
const FILTER: u32 = 1 << 15;

impl Invalidated {
    pub(super) fn file(&mut self, id: FileId) {
        self.files.push(id);
    }

    pub(super) fn lookup(&mut self, lookup: Lookup<'_>) {
        self.lookups.insert(lookup.into());
    }

    pub(super) fn all(&mut self) {
        self.all = true;
    }

    pub(super) fn is_all(&self) -> bool {
        self.all
    }

    /// Returns the files to resolve again, removed ones included, in order. `files` are the dependencies
    /// of each file.
    pub(super) fn affected<'a>(
        &self,
        files: impl ExactSizeIterator<Item = &'a [Dependency]>,
    ) -> Vec<FileId> {
        let mut ids = self.files.clone();
        if !self.lookups.is_empty() {
            let mut filter = vec![false; FILTER as usize];
            let bit = |dependency: Dependency| (dependency.0 % FILTER) as usize;
            self.lookups.iter().for_each(|lookup| filter[bit(*lookup)] = true);
            let is_invalid = |dependency: &Dependency| {
                filter[bit(*dependency)] && self.lookups.contains(dependency)
            };
            let invalid = files.enumerate().filter(|(_, list)| list.iter().any(is_invalid));
            ids.extend(invalid.map(|(at, _)| FileId(number(at))));
        }
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}
