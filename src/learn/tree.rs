//! The folders of a workspace with what was used in them, and the patterns for that.

use std::collections::{BTreeMap, BTreeSet};

use super::{FoundPattern, KnownFile, UsedPath};
use crate::model::Action;

/// Files below a folder that were used, from which on a pattern may stand for it.
const LEAST_USED: usize = 2;

/// The paths of a history that may be proposed.
#[derive(Default)]
pub(super) struct CountedPaths {
    written: BTreeSet<String>,
    touched: BTreeSet<String>,
    made: BTreeSet<String>,
}

impl CountedPaths {
    pub(super) fn add(&mut self, used: &UsedPath) {
        self.touched.insert(used.path.clone());
        if used.action == Action::Write {
            self.written.insert(used.path.clone());
        }
        if used.is_made {
            self.made.insert(used.path.clone());
        }
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.touched.iter().map(String::as_str)
    }

    /// Leaves the paths out that are folders: what is used in them counts.
    pub(super) fn leave_folders_out(&mut self, files: &[KnownFile]) {
        let mut folders: BTreeSet<String> = BTreeSet::new();
        let known = files.iter().map(|file| file.path.as_str()).chain(self.paths());
        for path in known {
            let mut above = folder_of(path);
            // Those above a known one are known.
            while !above.is_empty() && folders.insert(above.to_owned()) {
                above = folder_of(above);
            }
        }
        for paths in [&mut self.written, &mut self.touched, &mut self.made] {
            paths.retain(|path| !folders.contains(path));
        }
    }
}

/// A folder.
#[derive(Default)]
pub(super) struct UsedFolder {
    path: String,
    folders: BTreeMap<String, Self>,
    /// Whether each file in it was used.
    files: BTreeMap<String, bool>,
    /// The agent made a file in it.
    has_made: bool,
    /// It has a file that only the default list closes.
    is_listed: bool,
    /// It has a file that was there without the agent, and that git does not ignore.
    is_known: bool,
}

impl UsedFolder {
    /// With what was written, or with all that was touched.
    pub(super) fn new(files: &[KnownFile], found: &CountedPaths, written: bool) -> Self {
        let used = if written { &found.written } else { &found.touched };
        let mut tree = Self::default();
        for file in files {
            let (folder, name) = tree.folder_for(&file.path);
            folder.is_listed |= file.is_listed;
            folder.is_known |= !found.made.contains(&file.path);
            if !file.is_listed {
                folder.files.insert(name, false);
            }
        }
        for path in used {
            let (folder, name) = tree.folder_for(path);
            folder.files.insert(name, true);
            folder.has_made |= written && found.made.contains(path);
        }
        tree
    }

    /// The folder of a file, and the file's name.
    fn folder_for(&mut self, file: &str) -> (&mut Self, String) {
        let (above, name) = file.rsplit_once('/').unwrap_or(("", file));
        let mut at = self;
        for part in above.split('/').filter(|part| !part.is_empty()) {
            let path =
                if at.path.is_empty() { part.to_owned() } else { format!("{}/{part}", at.path) };
            at = at.folders.entry(part.to_owned()).or_insert(Self { path, ..Self::default() });
        }
        (at, name.to_owned())
    }

    /// The patterns for what was used, in the order of their paths.
    pub(super) fn patterns(&self) -> Vec<FoundPattern> {
        let mut patterns = Vec::new();
        self.find(&mut patterns);
        patterns.sort_by(|one, other| one.place().cmp(other.place()).then(one.cmp(other)));
        patterns
    }

    fn find(&self, patterns: &mut Vec<FoundPattern>) {
        let used = self.used();
        if used == 0 {
            return;
        }
        if self.is_whole() && (used >= LEAST_USED || self.is_new()) && !self.holds_listed() {
            return patterns.push(FoundPattern::Below(self.path.clone()));
        }
        let here = self.used_here();
        let most = here >= LEAST_USED && self.is_half_used();
        let made = self.has_made && !self.path.is_empty();
        if here > 0 && (most || made) && !self.is_listed {
            patterns.push(FoundPattern::In(self.path.clone()));
        } else {
            let used = self.files.iter().filter(|(_, used)| **used);
            patterns.extend(used.map(|(name, _)| FoundPattern::File(self.child(name))));
        }
        self.folders.values().for_each(|folder| folder.find(patterns));
    }

    fn child(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.path) }
    }

    /// Whether at least half of it was used, and of each folder in it.
    fn is_whole(&self) -> bool {
        self.is_new()
            || (self.files.is_empty() || self.is_half_used())
                && self.folders.values().all(Self::is_whole)
    }

    /// Whether all in it is of the agent, or ignored by git.
    fn is_new(&self) -> bool {
        !self.path.is_empty() && !self.is_known && self.folders.values().all(Self::is_new)
    }

    fn holds_listed(&self) -> bool {
        self.is_listed || self.folders.values().any(Self::holds_listed)
    }

    fn is_half_used(&self) -> bool {
        2 * self.used_here() >= self.files.len()
    }

    fn used_here(&self) -> usize {
        self.files.values().filter(|used| **used).count()
    }

    fn used(&self) -> usize {
        self.used_here() + self.folders.values().map(Self::used).sum::<usize>()
    }
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(above, _)| above)
}
