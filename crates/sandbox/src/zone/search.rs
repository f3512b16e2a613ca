//! Judges searches, which read everything below a folder.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use globset::Error;

use super::patterns::{Subtree, Trail, Trails, Workspace};
use super::{Denied, GitAccess, Permit, Verdict, Zone};
use crate::model::{Action, within};

/// Entries after which a search is denied, since the rest is unknown.
const MAX_ENTRIES: usize = 200_000;

/// Depth to which folders are read; a longer path is possible.
const MAX_DEPTH: usize = 200;

/// The result for all paths that may ever lie below a folder.
#[derive(Debug)]
pub(super) struct Below {
    allowed: Trails,
    denied: Trails,
}

impl Below {
    /// `readable` has all patterns that allow reading.
    pub(super) fn new(
        workspace: &Workspace,
        readable: &[String],
        denied: &[String],
    ) -> Result<Self, Error> {
        Ok(Self {
            allowed: Trails::granting(workspace, readable)?,
            denied: Trails::denying(workspace, denied)?,
        })
    }
}

impl Zone {
    /// Judges a search of a folder: all files that now lie below it must be readable, or the folder
    /// is denied. Reads the disk.
    pub fn check_search(&self, path: &Path) -> Result<Permit, Denied> {
        self.check_search_granted(path, &|_| false)
    }

    /// Like [`Zone::check_search`], but allows what was granted, as [`Zone::check_granted`].
    pub fn check_search_granted(
        &self,
        path: &Path,
        granted: &dyn Fn(&Denied) -> bool,
    ) -> Result<Permit, Denied> {
        self.check_readings(path, Action::Read, granted, |real, place| {
            let verdict = self.judge(real, place, Action::Read);
            let is_open = matches!(verdict, Verdict::Allowed) || self.is_above(real, place);
            if !is_open || !real.is_dir() {
                return verdict;
            }
            if self.closed().any(|closed| within(real, closed).is_some()) {
                return Verdict::Never;
            }
            let here = [&self.below.allowed, &self.below.denied].map(|trails| trails.to(real));
            let mut entries = 0;
            let is_whole = self.may_search(real, &here, &mut entries, 0);
            if is_whole { Verdict::Allowed } else { Verdict::Denied }
        })
    }

    /// The pattern of `denied` that matches a folder, or a file that a search of it reads: to allow
    /// the search is to open that file. `path` is in the wire's form. Reads the disk.
    pub fn search_denied_by(&self, path: &str) -> Option<Arc<str>> {
        let real = self.named(path);
        let here = self.below.denied.to(&real);
        self.denied_by(path).or_else(|| self.denied_below(&real, &here, &mut 0, 0))
    }

    fn denied_below(
        &self,
        folder: &Path,
        here: &Trail,
        entries: &mut usize,
        depth: usize,
    ) -> Option<Arc<str>> {
        let denied = &self.below.denied;
        if denied.below(here) == Subtree::None {
            return None;
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            *entries += 1;
            if *entries > MAX_ENTRIES || depth > MAX_DEPTH {
                // The remaining entries are unknown.
                return self.denials.first().map(|(pattern, _)| Arc::clone(pattern));
            }
            let path = entry.path();
            let found = self.denial(&self.place(&path)).or_else(|| {
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let here = is_folder.then(|| denied.step(here, &entry.file_name()))?;
                self.denied_below(&path, &here, entries, depth + 1)
            });
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// `here` is the state of the patterns at the folder.
    fn may_search(
        &self,
        real: &Path,
        here: &[Trail; 2],
        entries: &mut usize,
        depth: usize,
    ) -> bool {
        let Below { allowed, denied } = &self.below;
        if allowed.below(&here[0]) == Subtree::All
            && denied.below(&here[1]) == Subtree::None
            && self.git.access() != GitAccess::None
        {
            return true;
        }
        // A search cannot list it either.
        for entry in fs::read_dir(real).into_iter().flatten().flatten() {
            *entries += 1;
            if *entries > MAX_ENTRIES || depth > MAX_DEPTH {
                return false;
            }
            let (path, name) = (entry.path(), entry.file_name());
            let may = match entry.file_type() {
                // Searches do not follow links.
                Ok(kind) if kind.is_symlink() => true,
                Ok(kind) if kind.is_dir() => {
                    let here = [allowed.step(&here[0], &name), denied.step(&here[1], &name)];
                    self.may_search(&path, &here, entries, depth + 1)
                }
                _ => {
                    let verdict = self.judge(&path, &self.place(&path), Action::Read);
                    matches!(verdict, Verdict::Allowed)
                }
            };
            if !may {
                return false;
            }
        }
        true
    }
}
