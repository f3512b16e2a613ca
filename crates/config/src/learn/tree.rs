//! The folders of a workspace with what was used in them, and the patterns for that.

use std::collections::{BTreeMap, BTreeSet};

use super::{FolderKind, FoundPattern, KnownFile, UsedPath};
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
#[expect(clippy::struct_excessive_bools, reason = "each is an independent property of the folder")]
pub(super) struct UsedFolder {
    path: String,
    folders: BTreeMap<String, Self>,
    /// Whether each file in it was used.
    files: BTreeMap<String, bool>,
    /// The agent made a file in it.
    has_made: bool,
    /// The folder has a file that only the default list closes.
    is_listed: bool,
    /// The folder has a file that was there without the agent, and that git does not ignore.
    is_known: bool,
    /// The files in it that git does not ignore are known.
    is_walked: bool,
    /// The agent wrote in it, or below.
    is_written: bool,
    /// The agent made the folder, or wrote in it where git ignores it.
    is_own: bool,
}

impl UsedFolder {
    /// With what was written, or with all that was touched.
    pub(super) fn new(
        files: &[KnownFile],
        found: &CountedPaths,
        kind: &dyn Fn(&str) -> FolderKind,
        written: bool,
    ) -> Self {
        let used = if written { &found.written } else { &found.touched };
        let mut tree = Self::default();
        for file in files {
            let (folder, name) = tree.folder_for(&file.path);
            folder.is_listed |= file.is_listed;
            folder.is_known |= !found.made.contains(&file.path);
            folder.is_walked = true;
            if !file.is_listed {
                folder.files.insert(name, false);
            }
        }
        for path in used {
            let (folder, name) = tree.folder_for(path);
            folder.files.insert(name, true);
            folder.has_made |= written && found.made.contains(path);
        }
        for path in &found.written {
            tree.folder_for(path).0.is_written = true;
        }
        tree.find_own(kind);
        tree
    }

    fn find_own(&mut self, kind: &dyn Fn(&str) -> FolderKind) {
        for folder in self.folders.values_mut() {
            folder.find_own(kind);
            self.is_written |= folder.is_written;
        }
        self.is_own = !self.path.is_empty()
            && match kind(&self.path) {
                FolderKind::Made => true,
                FolderKind::Ignored => self.is_written,
                FolderKind::Other => false,
            };
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

    /// The patterns for what was used, in the order of their paths. `alone`: each file by itself.
    pub(super) fn patterns(&self, alone: bool) -> Vec<FoundPattern> {
        let mut patterns = Vec::new();
        self.find(alone, &mut patterns);
        patterns.sort_by(|one, other| one.place().cmp(other.place()).then(one.cmp(other)));
        patterns
    }

    fn find(&self, alone: bool, patterns: &mut Vec<FoundPattern>) {
        let used = self.used();
        if used == 0 {
            return;
        }
        let is_whole = self.is_whole() && (self.used_known() >= LEAST_USED || self.is_new());
        if is_whole && !alone && !self.holds_listed() {
            return patterns.push(FoundPattern::Below(self.path.clone()));
        }
        let here = self.used_here();
        let most = here >= LEAST_USED && self.is_half_used();
        let made = self.has_made && self.is_walked && !self.path.is_empty();
        if here > 0 && (most || made) && !alone && !self.is_listed {
            patterns.push(FoundPattern::In(self.path.clone()));
        } else {
            let used = self.files.iter().filter(|(_, used)| **used);
            patterns.extend(used.map(|(name, _)| FoundPattern::File(self.child(name))));
        }
        self.folders.values().for_each(|folder| folder.find(alone, patterns));
    }

    fn child(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.path) }
    }

    /// Whether at least half of it was used, and of each folder in it. Those of which no file is known say nothing.
    fn is_whole(&self) -> bool {
        self.is_new()
            || (self.files.is_empty() || !self.is_walked || self.is_half_used())
                && self.folders.values().all(Self::is_whole)
    }

    /// Whether it is the agent's own, with all in it.
    fn is_new(&self) -> bool {
        self.is_own && self.holds_nothing_known()
    }

    fn holds_nothing_known(&self) -> bool {
        !self.is_known && self.folders.values().all(Self::holds_nothing_known)
    }

    fn holds_listed(&self) -> bool {
        self.is_listed || self.folders.values().any(Self::holds_listed)
    }

    fn is_half_used(&self) -> bool {
        self.is_walked && 2 * self.used_here() >= self.files.len()
    }

    fn used_here(&self) -> usize {
        self.files.values().filter(|used| **used).count()
    }

    /// Without the folders of which no file is known, unless they are the agent's own.
    fn used_known(&self) -> usize {
        let here = if self.is_walked || self.is_own { self.used_here() } else { 0 };
        here + self.folders.values().map(Self::used_known).sum::<usize>()
    }

    fn used(&self) -> usize {
        self.used_here() + self.folders.values().map(Self::used).sum::<usize>()
    }
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(above, _)| above)
}
