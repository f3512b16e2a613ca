//! The paths that the program itself writes into the workspace, and no agent: an undo.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of announcements of each path.
#[derive(Default)]
pub(super) struct OwnPaths(Mutex<HashMap<PathBuf, usize>>);

impl OwnPaths {
    pub(super) fn has(&self, path: &Path) -> bool {
        self.lock().contains_key(path)
    }

    pub(super) fn add(&self, paths: &[PathBuf]) {
        let mut own = self.lock();
        for path in paths {
            *own.entry(path.clone()).or_default() += 1;
        }
    }

    pub(super) fn remove(&self, paths: &[PathBuf]) {
        let mut own = self.lock();
        for path in paths {
            if let Some(count) = own.get_mut(path) {
                *count -= 1;
                if *count == 0 {
                    own.remove(path);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
