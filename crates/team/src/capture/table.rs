//! The files that are tracked: those with possible writers, and those whose last content an event
//! names.
//!
//! A file's lock is taken before the table's, never after it.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;

use super::tracked::Tracked;

/// Files that are tracked; past that, files without writers are forgotten, then no more are taken.
const MOST: usize = 65_536;

/// Files that are searched for one to forget.
const LOOKS: usize = 64;

pub(super) type File = Arc<Mutex<Tracked>>;

#[derive(Default)]
pub(super) struct FileTable {
    inner: Mutex<Inner>,
    orders: AtomicU64,
}

#[derive(Default)]
struct Inner {
    files: IndexMap<Arc<Path>, File>,
    /// The files with writers.
    dirty: IndexMap<Arc<Path>, File>,
}

impl FileTable {
    pub(super) fn find(&self, path: &Path) -> Option<File> {
        self.lock().files.get(path).cloned()
    }

    /// The file of a path; None if there are too many.
    pub(super) fn file(
        &self,
        path: &Path,
        make: impl FnOnce(Arc<Path>) -> Tracked,
    ) -> Option<File> {
        let mut inner = self.lock();
        if let Some(file) = inner.files.get(path) {
            return Some(Arc::clone(file));
        }
        if inner.files.len() >= MOST && !inner.forget_one() {
            return None;
        }
        let path: Arc<Path> = path.into();
        let file = Arc::new(Mutex::new(make(Arc::clone(&path))));
        inner.files.insert(path, Arc::clone(&file));
        Some(file)
    }

    /// The other paths of a file, by device and inode.
    pub(super) fn other_names(&self, path: &Path, identity: (u64, u64)) -> Vec<Arc<Path>> {
        let files: Vec<_> =
            self.lock().files.iter().map(|(at, it)| (at.clone(), it.clone())).collect();
        let is_other = |(at, file): &(Arc<Path>, File)| {
            **at != *path && locked(file).identity() == Some(identity)
        };
        files.into_iter().filter(is_other).map(|(at, _)| at).collect()
    }

    /// The order of the next registration.
    pub(super) fn next_order(&self) -> u64 {
        self.orders.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds a file that has a writer now; returns whether it is the first. The caller has its lock.
    pub(super) fn add_dirty(&self, path: &Arc<Path>, file: &File) -> bool {
        let mut inner = self.lock();
        let is_first = inner.dirty.is_empty();
        inner.dirty.insert(Arc::clone(path), Arc::clone(file));
        is_first
    }

    /// Removes a file that has no writer any more. The caller has its lock.
    pub(super) fn clean(&self, path: &Path, is_known: bool) {
        let mut inner = self.lock();
        inner.dirty.swap_remove(path);
        if !is_known {
            // The holder of another reference may add the file again, so it stays.
            let is_ours = |file: &File| Arc::strong_count(file) <= 2;
            if inner.files.get(path).is_some_and(is_ours) {
                inner.files.swap_remove(path);
            }
        }
    }

    /// The files with writers, in order.
    pub(super) fn dirty(&self) -> Vec<File> {
        self.lock().dirty.values().cloned().collect()
    }

    pub(super) fn is_clean(&self) -> bool {
        self.lock().dirty.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn forget_one(&mut self) -> bool {
        let mut first = self.files.iter().take(LOOKS).enumerate();
        let idle = first.find(|(_, (path, file))| {
            Arc::strong_count(file) == 1 && !self.dirty.contains_key(*path)
        });
        let idle = idle.map(|(at, _)| at);
        idle.is_some_and(|at| self.files.swap_remove_index(at).is_some())
    }
}

/// A file's lock.
pub(super) fn locked(file: &File) -> MutexGuard<'_, Tracked> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}
