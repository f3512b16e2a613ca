//! Judges everything that lies, or may ever lie, below a folder.

use std::fs;
use std::path::Path;

use super::{Bounds, Confine, Denied, Subtree, is_below, system};
use crate::model::{Action, KERNEL_FOLDERS};
use crate::zone::GitAccess;
use crate::zone::git::GitVerdict;
use crate::zone::patterns::Trail;

/// Entries after which a walk ends.
pub(super) const MAX_ENTRIES: usize = 500_000;

/// Depth to which a walk descends; a longer path is possible.
pub(super) const MAX_DEPTH: usize = 200;

/// A folder of the zone, with the state of the patterns there.
#[derive(Clone)]
pub(super) struct Here {
    pub(super) denied: Trail,
    /// In the order of the patterns in [`Bounds`].
    pub(super) allowed: [Trail; 2],
}

impl Bounds {
    /// The result of [`Bounds::judge`] for all paths that may ever lie below a real folder. It is
    /// mixed where they differ: in a writable part of the workspace a `.git` may always appear.
    /// Does not read the disk.
    pub fn subtree(&self, real: &Path, action: Action) -> Subtree {
        self.subtree_of(real, &self.here(real), action)
    }

    /// Judges the present contents of a real folder as if the folder were at the real path `at`, to
    /// which a call moves it. Reads the disk.
    pub fn judge_tree(&self, folder: &Path, at: &Path, action: Action) -> Result<(), Denied> {
        let mut entries = 0;
        self.judge_below(folder, at, &self.here(at), action, &mut entries, 0)
    }

    /// Whether moving or removing this real path would move or replace a path on which the bounds
    /// rely: the workspace, `$EISEN_DIR`, the git folder, the private TMPDIR, the configuration.
    pub fn is_held(&self, real: &Path) -> bool {
        self.places().any(|place| place.starts_with(real))
    }

    /// Whether moving or removing this real path would destroy a git repository: git would use the
    /// next one in a folder above.
    pub fn is_pillar(&self, real: &Path) -> bool {
        self.zone.git.is_pillar(real)
    }

    fn subtree_of(&self, real: &Path, here: &Here, action: Action) -> Subtree {
        if self.is_private(real) {
            return Subtree::All;
        }
        if self.is_barred(real) || self.denied.matched(&here.denied) {
            return Subtree::None;
        }
        match self.granted_below(real, here, action) {
            Subtree::All if self.is_quiet(real, &here.denied) && !self.heeds_git(real, action) => {
                Subtree::All
            }
            Subtree::None if !self.is_above_place(real) => Subtree::None,
            _ => Subtree::Mixed,
        }
    }

    fn judge_below(
        &self,
        folder: &Path,
        at: &Path,
        here: &Here,
        action: Action,
        entries: &mut usize,
        depth: usize,
    ) -> Result<(), Denied> {
        if self.subtree_of(at, here, action) == Subtree::All {
            return Ok(());
        }
        // Then only git folders are judged differently.
        let only_git =
            self.is_quiet(at, &here.denied) && self.granted_below(at, here, action) == Subtree::All;
        let refused = || Denied { path: self.zone.wire(at), action, grantable: true };
        let listed = fs::read_dir(folder).map_err(|_| refused())?;
        for entry in listed {
            *entries += 1;
            let Ok(entry) = entry else { return Err(refused()) };
            if *entries > MAX_ENTRIES || depth > MAX_DEPTH {
                return Err(refused());
            }
            let name = entry.file_name();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !is_folder && only_git && name != ".git" {
                continue;
            }
            let child = at.join(&name);
            self.judge(&child, action)?;
            if !is_folder && self.is_above_setting(&child) {
                return Err(refused());
            }
            if is_folder {
                let here = self.step(here, &name);
                self.judge_below(&entry.path(), &child, &here, action, entries, depth + 1)?;
            }
        }
        Ok(())
    }

    /// The patterns' trails of a real folder.
    pub(super) fn here(&self, real: &Path) -> Here {
        Here {
            denied: self.denied.to(real),
            allowed: self.allowed.each_ref().map(|trails| trails.to(real)),
        }
    }

    pub(super) fn step(&self, here: &Here, name: &std::ffi::OsStr) -> Here {
        let [writes, reads] = &self.allowed;
        Here {
            denied: self.denied.step(&here.denied, name),
            allowed: [writes.step(&here.allowed[0], name), reads.step(&here.allowed[1], name)],
        }
    }

    /// The grants below a folder, before denials.
    pub(super) fn granted_below(&self, real: &Path, here: &Here, action: Action) -> Subtree {
        let git = &self.zone.git;
        if action == Action::Write && git.is_sealed(real) {
            return Subtree::None;
        }
        let index = usize::from(action == Action::Read);
        let by_pattern = || self.allowed[index].below(&here.allowed[index]);
        let inside = self.is_inside(real);
        if action == Action::Write && !inside && self.is_setting(real) {
            return by_pattern();
        }
        match git.below(real, action) {
            Some((subtree, GitVerdict::Allowed)) => subtree,
            Some((subtree, _)) => both(subtree, by_pattern()),
            None if self.zone.is_beside(real) => by_pattern(),
            None if !inside && self.reach.confine == Confine::Workspace => {
                match system::may(action, real) {
                    Some(false) => Subtree::None,
                    _ if real.starts_with(system::DEV) => Subtree::Mixed,
                    _ => Subtree::All,
                }
            }
            None if !inside => self.needed_below(real, action).unwrap_or_else(by_pattern),
            None => by_pattern(),
        }
    }

    /// The part below a folder outside that strict bounds grant in addition to the zone.
    fn needed_below(&self, real: &Path, action: Action) -> Option<Subtree> {
        if let Some(may) = system::may(action, real) {
            return Some(if may { Subtree::All } else { Subtree::None });
        }
        let reads = action == Action::Read;
        let needed = || self.writable.iter().chain(self.readable.iter().filter(move |_| reads));
        if needed().any(|place| real.starts_with(place)) {
            return Some(Subtree::All);
        }
        let above = needed().any(|place| place.starts_with(real));
        (above || real.starts_with(system::DEV)).then_some(Subtree::Mixed)
    }

    /// Whether below a folder no path is judged specially, nor denied by a pattern.
    pub(super) fn is_quiet(&self, real: &Path, denied: &Trail) -> bool {
        self.denied.below(denied) == Subtree::None && !self.is_above_place(real)
    }

    /// Whether the name `.git` makes a difference below a folder.
    pub(super) fn heeds_git(&self, real: &Path, action: Action) -> bool {
        let git = &self.zone.git;
        self.is_inside(real)
            && git.below(real, action).is_none()
            && (action == Action::Write || git.access() == GitAccess::None)
    }

    /// Whether a path that is judged specially lies below a folder.
    pub(super) fn is_above_place(&self, real: &Path) -> bool {
        self.places().any(|place| is_below(real, place))
            || KERNEL_FOLDERS.iter().any(|place| is_below(real, Path::new(place)))
            || is_below(real, Path::new(system::DEV))
            || !self.is_inside(real) && self.is_above_setting(real)
    }

    /// Whether a real path is judged differently from its surroundings.
    pub(super) fn is_place(&self, real: &Path) -> bool {
        self.places().any(|place| *place == *real) || self.zone.is_of_journal(real)
    }

    /// The real paths that are judged differently from their surroundings, except the system's.
    pub(super) fn places(&self) -> impl Iterator<Item = &Path> {
        let barred = self.barred.iter().map(std::path::PathBuf::as_path);
        let workspace = [self.zone.workspace()];
        let sealed = self.zone.sealed.iter().map(std::path::PathBuf::as_path);
        let own = workspace.into_iter().chain([&*self.private]);
        let beside = self.zone.beside.iter().map(std::path::PathBuf::as_path);
        barred.chain(own).chain(self.zone.git.places()).chain(sealed).chain(beside)
    }
}

fn both(one: Subtree, other: Subtree) -> Subtree {
    match (one, other) {
        (Subtree::None, _) | (_, Subtree::None) => Subtree::None,
        (Subtree::All, Subtree::All) => Subtree::All,
        _ => Subtree::Mixed,
    }
}
