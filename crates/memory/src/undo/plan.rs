//! Plans an undo: the changes that it takes back, the files that it writes, and the obstacles.
//! Changes nothing.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::UndoError;
use super::aim::{Chosen, Deed, UndoRequest};
use super::arrange::{PathChange, PathChanges, complete};
use super::disk::{Disk, MOST_READ};
use super::path::{FilePath, ShownPath};
use crate::changes::{
    ChangeSet, ClashReason, EntrySource, FileChange, FileState, Operation, Reverted, revert,
};
use crate::journal::{EventType, Keep, Store};

/// Why a file outside the workspace stays.
const NOT_KEPT: &str = "not kept: the journal has no content of it (`[journal] outside`)";

/// Maximum files of one undo.
const MOST_FILES: usize = 100_000;

/// The plan of an undo.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) deed: Deed,
    pub(super) targets: PathChanges,
    /// Files that can't be set back, or only by force.
    pub(super) obstacles: Vec<Obstacle>,
    forced: bool,
    /// Folders of the agent that stay, since others have files in them.
    stay: Vec<FilePath>,
    /// Changes of repositories' own files, which stay.
    pub(super) of_git: usize,
    /// Changes outside the workspace, which stay.
    pub(super) outside: usize,
    /// The worktrees of agents that files are in.
    pub(super) trees: HashSet<PathBuf>,
}

/// A file that can't be set back by merging.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Obstacle {
    pub(super) path: FilePath,
    /// The class of the obstacle.
    pub kind: ObstacleKind,
    /// The reason, in words that follow the path.
    pub why: String,
    /// Whether it gets the content from before the agent's change. Otherwise it stays as it is.
    pub forced: bool,
}

#[derive(Serialize)]
struct ShownObstacle<'a> {
    #[serde(flatten)]
    path: ShownPath,
    kind: &'static str,
    why: &'a str,
    forced: bool,
}

/// A file that an undo writes, with its states before and after.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct UndonePath {
    /// The path of the file; in JSON its fields stand among the others.
    #[serde(flatten)]
    pub path: ShownPath,
    /// The state that the undo replaces; None if nothing is there.
    pub before: Option<FileState>,
    /// The state that the undo sets; None if it removes the file.
    pub after: Option<FileState>,
}

/// The class of an obstacle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObstacleKind {
    /// The file was changed since. `force` overwrites the change.
    Clash,
    /// A content is missing.
    NotRestorable,
    /// Another entry is in its place, or it can't be read.
    InTheWay,
}

impl ObstacleKind {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clash => "clash",
            Self::NotRestorable => "not_restorable",
            Self::InTheWay => "in_the_way",
        }
    }
}

impl Obstacle {
    /// The path as the wire shows it.
    pub fn path(&self) -> String {
        self.path.to_string()
    }

    fn shown(&self) -> ShownObstacle<'_> {
        ShownObstacle {
            path: self.path.shown(),
            kind: self.kind.as_str(),
            why: &self.why,
            forced: self.forced,
        }
    }
}

impl Plan {
    pub(super) fn new(
        store: &Store,
        disk: &Disk,
        keep: Keep,
        chosen: Chosen,
        request: &UndoRequest,
    ) -> Result<Self, UndoError> {
        let Chosen { mut deed, changes } = chosen;
        let force = request.force;
        let stays_inside = !request.outside && matches!(deed, Deed::Undo { .. });
        let trees = changes.all.iter().filter_map(|change| change.tree.clone()).collect();
        let mut work = Planning { stays_inside, trees, ..Planning::default() };
        let changes = work.sift(changes, force);
        let mut disk_now = disk;
        let Reverted { files, clashes } = revert(&changes, &mut disk_now, store, force);
        if files.len() > MOST_FILES {
            return Err(UndoError::TooMany { most: MOST_FILES });
        }
        for clash in clashes {
            if !work.is_in_reach(&clash.path) {
                continue;
            }
            let kind = match clash.why {
                ClashReason::Changed | ClashReason::Removed | ClashReason::Occupied => {
                    ObstacleKind::Clash
                }
                ClashReason::Denied | ClashReason::Missing(_) => ObstacleKind::NotRestorable,
                ClashReason::Unreadable(_) => ObstacleKind::InTheWay,
            };
            let why = match clash.why {
                ClashReason::Missing(_) if work.is_outside(&clash.path) => NOT_KEPT.to_owned(),
                why => why.to_string(),
            };
            work.hit(&clash.path, kind, why, clash.forced);
        }
        let mut targets = PathChanges::new();
        // A file that a rename moved into the workspace does not go back to its old path.
        for file in files {
            if !work.is_in_reach(&file.path) {
                continue;
            }
            match FilePath::new(file.path.clone()) {
                Some(path) => {
                    targets.insert(path, PathChange { before: file.before, after: file.after });
                }
                None => work.left.extend([file.path]),
            }
        }
        work.leave(&changes, &mut targets);
        work.check_kept(store, keep, &mut targets)?;
        let (stay, in_the_way) = complete(disk, &mut targets);
        for it in in_the_way {
            let (kind, why) = (ObstacleKind::InTheWay, it.why);
            work.hit(it.path.as_path(), kind, why, false);
        }
        work.leave(&changes, &mut targets);
        deed.keep_only(&work.handled(&changes));
        let Planning { obstacles, of_git, outside, trees, .. } = work;
        Ok(Self { deed, targets, obstacles, forced: force, stay, of_git, outside, trees })
    }

    /// Fails if there are obstacles and the undo is not forced.
    pub(super) fn check(&self) -> Result<(), UndoError> {
        if self.forced || self.obstacles.is_empty() {
            return Ok(());
        }
        Err(UndoError::InTheWay { obstacles: self.obstacles.clone() })
    }

    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The agent's folders that stay, since others have files in them.
    pub(super) fn staying(&self) -> impl Iterator<Item = String> {
        self.stay.iter().map(ToString::to_string)
    }

    /// The files, with their present and planned states.
    pub(super) fn paths(&self) -> Vec<UndonePath> {
        let paths = self.targets.iter().map(|(path, target)| UndonePath {
            path: path.shown(),
            before: target.before.clone(),
            after: target.after.as_ref().map(|entry| entry.state.clone()),
        });
        paths.collect()
    }

    /// The event that records the undo.
    pub(super) fn event(&self) -> (EventType, Value) {
        self.deed.event(&self.paths(), self.forced)
    }
}

impl Serialize for Obstacle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.shown().serialize(serializer)
    }
}

#[derive(Default)]
struct Planning {
    obstacles: Vec<Obstacle>,
    /// Paths that stay as they are.
    left: HashSet<PathBuf>,
    of_git: usize,
    /// Whether files outside the workspace stay.
    stays_inside: bool,
    outside: usize,
    /// The worktrees of agents, which are not outside.
    trees: HashSet<PathBuf>,
}

impl Planning {
    /// Whether a path is in neither the workspace nor a worktree of an agent.
    fn is_outside(&self, path: &Path) -> bool {
        path.is_absolute() && !path.ancestors().any(|folder| self.trees.contains(folder))
    }

    fn is_in_reach(&self, path: &Path) -> bool {
        !(self.stays_inside && self.is_outside(path))
    }

    /// Disowns the changes that can't be taken back at all.
    fn sift(&mut self, changes: ChangeSet, force: bool) -> ChangeSet {
        let kept: Vec<_> = (0..changes.all.len()).map(|at| changes.is_own(at)).collect();
        let skipped = changes.skipped;
        let sifted = changes.all.into_iter().zip(kept).map(|(change, is_own)| {
            let is_own = is_own && self.can_be_taken_back(&change, force);
            (change, is_own)
        });
        let mut sifted = ChangeSet::new(sifted);
        sifted.skipped = skipped;
        sifted
    }

    fn can_be_taken_back(&mut self, change: &FileChange, force: bool) -> bool {
        let names = [Some(&change.path), change.from.as_ref()];
        let paths = names.into_iter().flatten().map(|path| FilePath::new(path.clone()));
        if paths.clone().any(|path| path.is_some_and(|path| path.is_of_git())) {
            self.of_git += 1;
            return false;
        }
        if paths.clone().any(|path| path.is_none()) {
            return false;
        }
        if !paths.flatten().any(|path| self.is_in_reach(path.as_path())) {
            self.outside += usize::from(is_of_agent(change));
            return false;
        }
        let needs_before = matches!(change.operation, Operation::Write | Operation::Delete);
        if needs_before && change.before.is_none() && !change.denied && is_of_agent(change) {
            let why = "what was there before is not known".to_owned();
            self.hit(&change.path, ObstacleKind::NotRestorable, why, false);
            return false;
        }
        if !change.contested.is_empty() {
            let others = change.contested.join(", ");
            let why =
                format!("{others} wrote it at the same time, and who wrote what is not known");
            self.hit(&change.path, ObstacleKind::Clash, why, force);
            return force;
        }
        true
    }

    /// Adds an obstacle, once for each path.
    fn hit(&mut self, path: &Path, kind: ObstacleKind, why: String, forced: bool) {
        if !forced {
            self.left.insert(path.to_owned());
        }
        let Some(path) = FilePath::new(path.to_owned()) else { return };
        match self.obstacles.iter_mut().find(|it| it.path == path) {
            Some(known) if known.forced && !forced => {
                (known.kind, known.why, known.forced) = (kind, why, forced);
            }
            Some(_) => {}
            None => self.obstacles.push(Obstacle { path, kind, why, forced }),
        }
    }

    /// Takes out the paths that stay as they are, with those that were renamed from or to them.
    fn leave(&mut self, changes: &ChangeSet, targets: &mut PathChanges) {
        let renames: Vec<_> = changes.own().filter(|change| change.from.is_some()).collect();
        loop {
            let before = self.left.len();
            for change in &renames {
                let Some(from) = &change.from else { continue };
                if self.left.contains(&change.path) || self.left.contains(from) {
                    self.left.extend([change.path.clone(), from.clone()]);
                }
            }
            if self.left.len() == before {
                break;
            }
        }
        targets.retain(|path, _| !self.left.contains(path.as_path()));
    }

    /// Checks that the contents to lose can be kept: a file that the journal can't take stays as it
    /// is. Marks the contents that the journal will have.
    fn check_kept(
        &mut self,
        store: &Store,
        keep: Keep,
        targets: &mut PathChanges,
    ) -> Result<(), UndoError> {
        let moved: HashSet<PathBuf> = targets.values().filter_map(moved_from).collect();
        let mut stored: HashMap<String, bool> = HashMap::new();
        for (path, target) in targets.iter_mut() {
            let is_lost = target.is_lost() && !moved.contains(path.as_path());
            let Some(before) = &mut target.before else { continue };
            let Some(hash) = &before.hash else { continue };
            let is_outside = self.is_outside(path.as_path());
            let can_be_kept = keep.contents(is_outside) && before.size <= MOST_READ;
            before.stored = can_be_kept || store.has_content(hash)?;
            stored.insert(hash.clone(), before.stored);
            if is_lost && !before.stored {
                let why = match keep {
                    _ if is_outside => NOT_KEPT.to_owned(),
                    Keep { texts: true, .. } => {
                        format!("it is too large to be kept: {} bytes", before.size)
                    }
                    Keep { texts: false, .. } => {
                        "the journal keeps no contents of files".to_owned()
                    }
                };
                self.hit(path.as_path(), ObstacleKind::NotRestorable, why, false);
            }
        }
        for entry in targets.values_mut().filter_map(|target| target.after.as_mut()) {
            let hash = entry.state.hash.as_ref();
            let known = hash.and_then(|hash| stored.get(hash)).copied();
            entry.state.stored = known.unwrap_or(true);
        }
        targets.retain(|path, _| !self.left.contains(path.as_path()));
        Ok(())
    }

    /// The events of the changes that are taken back.
    fn handled(&self, changes: &ChangeSet) -> BTreeSet<String> {
        let is_left = |change: &&FileChange| !self.left.contains(&change.path);
        changes.own().filter(is_left).map(|change| change.event_id.clone()).collect()
    }
}

fn is_of_agent(change: &FileChange) -> bool {
    change.cause == crate::changes::ChangeCause::Agent
}

/// The path of the file that comes here unchanged.
fn moved_from(target: &PathChange) -> Option<PathBuf> {
    match target.after.as_ref().map(|entry| &entry.source) {
        Some(EntrySource::Tree(from)) => Some(from.clone()),
        _ => None,
    }
}

impl PathChange {
    /// Whether the present content will be lost.
    fn is_lost(&self) -> bool {
        self.before.as_ref().is_some_and(|before| {
            !self.after.as_ref().is_some_and(|entry| entry.state.has_content_of(before))
        })
    }

    /// The hash of a content to keep.
    pub(super) fn to_keep(&self) -> Option<&str> {
        let before = self.before.as_ref().filter(|before| before.stored && self.is_lost())?;
        before.hash.as_deref()
    }
}
