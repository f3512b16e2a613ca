//! The names of files that have several of them (hard links), within the workspace.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::disk::{self, Stamp};
use super::scope::CaptureScope;

/// Entries of the workspace that are looked at for further names.
const MOST_ENTRIES: usize = 500_000;

/// How often it is searched.
const AGAIN: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct HardLinks(Mutex<LinkIndex>);

#[derive(Default)]
struct LinkIndex {
    /// By device and inode.
    names: HashMap<(u64, u64), Vec<PathBuf>>,
    searched: Option<Instant>,
}

impl HardLinks {
    /// A file gets another name.
    pub(super) fn add(&self, of: &Path, name: &Path) {
        let Some(stamp) = disk::stamp(of) else { return };
        let mut known = self.0.lock();
        let names = known.names.entry(stamp.identity()).or_default();
        for path in [of, name] {
            if !names.iter().any(|it| it == path) {
                names.push(path.to_owned());
            }
        }
    }

    /// The other names of a file. Searches the workspace if it has more than are known.
    pub(super) fn others(&self, scope: &CaptureScope, path: &Path, stamp: Stamp) -> Vec<PathBuf> {
        let identity = stamp.identity();
        let mut known = self.0.lock();
        let mut others = known.others(path, identity);
        let is_due = known.searched.is_none_or(|at| at.elapsed() >= AGAIN);
        if is_due && (others.len() as u64) + 1 < stamp.links() {
            known.search(scope);
            others = known.others(path, identity);
        }
        others
    }
}

impl LinkIndex {
    fn others(&self, path: &Path, identity: (u64, u64)) -> Vec<PathBuf> {
        let is_name = |name: &&PathBuf| {
            *name != path && disk::stamp(name).is_some_and(|now| now.identity() == identity)
        };
        self.names.get(&identity).into_iter().flatten().filter(is_name).cloned().collect()
    }

    fn search(&mut self, scope: &CaptureScope) {
        self.names.clear();
        let (mut folders, mut seen) = (vec![scope.workspace().to_owned()], 0);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                seen += 1;
                // Of the entry itself, not of what a link leads to.
                let (path, Ok(found)) = (entry.path(), entry.metadata()) else { continue };
                if seen > MOST_ENTRIES || scope.leaves_out(&path) {
                    continue;
                }
                if found.is_dir() {
                    folders.push(path);
                } else if found.nlink() > 1 {
                    self.names.entry((found.dev(), found.ino())).or_default().push(path);
                }
            }
        }
        if seen > MOST_ENTRIES {
            tracing::warn!(
                "the workspace has more than {MOST_ENTRIES} entries: not all names of files with \
                 several are known"
            );
        }
        self.searched = Some(Instant::now());
    }
}
