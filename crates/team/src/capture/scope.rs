//! Decides whether and how paths are recorded: never the program's and git's own files; files that
//! a `denied` pattern matches without content; and files that git ignores with a mark.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::SystemTime;

use ignore::Match;
use ignore::gitignore::Gitignore;

use super::index::GitIndex;
use crate::ignored::{self, Links};
use crate::model::{AgentId, FileName, OutsideFiles, is_of_machine, wire_real, within};
use crate::zone::Zone;

/// Folders whose ignore file is remembered; when full, all are read again.
const MOST_FOLDERS: usize = 4096;

pub(super) struct CaptureScope {
    /// Real.
    workspace: Arc<Path>,
    /// Paths that are not recorded, with all paths that begin with them.
    left_out: Vec<PathBuf>,
    outside: OutsideFiles,
    zones: RwLock<CaptureZones>,
    /// By the folder whose paths they match, and the ignore file.
    ignores: Mutex<HashMap<(PathBuf, PathBuf), Remembered>>,
}

/// The zones of agents, and the worktrees in which some of them work.
#[derive(Default)]
struct CaptureZones {
    of: HashMap<AgentId, Arc<Zone>>,
    /// Real. They stay known: what is settled late belongs to them, too.
    trees: Vec<Arc<Path>>,
    /// The index of each repository, by the folder that was asked for.
    indices: HashMap<Arc<Path>, Arc<GitIndex>>,
}

struct Remembered {
    state: Fingerprint,
    matcher: Arc<Gitignore>,
}

type Fingerprint = Option<(SystemTime, u64)>;

impl CaptureScope {
    pub(super) fn new(workspace: PathBuf, left_out: Vec<PathBuf>, outside: OutsideFiles) -> Self {
        let (zones, ignores) = (RwLock::default(), Mutex::default());
        Self { workspace: workspace.into(), left_out, outside, zones, ignores }
    }

    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    pub(super) fn set_zone(&self, agent: &AgentId, zone: Arc<Zone>) {
        let mut zones = self.zones.write().unwrap_or_else(PoisonError::into_inner);
        let root = zone.workspace();
        if *root != *self.workspace && !zones.trees.iter().any(|tree| **tree == *root) {
            zones.trees.push(root.into());
        }
        zones.of.insert(agent.clone(), zone);
    }

    /// The workspace or the worktree that a path lies in; the workspace for all other paths.
    pub(super) fn root(&self, real: &Path) -> Arc<Path> {
        if within(&self.workspace, real).is_none() {
            let zones = self.zones();
            if let Some(tree) = zones.trees.iter().find(|tree| within(tree, real).is_some()) {
                return Arc::clone(tree);
            }
        }
        Arc::clone(&self.workspace)
    }

    pub(super) fn leaves_out(&self, real: &Path) -> bool {
        let bytes = real.as_os_str().as_bytes();
        let root = self.root(real);
        real == &*root
            || self.outside == OutsideFiles::Nothing && within(&root, real).is_none()
            || is_of_machine(&root, real)
            || self.left_out.iter().any(|path| bytes.starts_with(path.as_os_str().as_bytes()))
            || bytes.split(|byte| *byte == b'/').any(|name| name == b".git")
    }

    /// Whether a path is in neither the workspace nor a worktree.
    pub(super) fn is_outside(&self, real: &Path) -> bool {
        within(&self.root(real), real).is_none()
    }

    /// Whether a `denied` pattern of any agent matches.
    pub(super) fn denies(&self, real: &Path) -> bool {
        let zones = self.zones();
        let denies = |zone: &Zone| zone.denied_by(&wire_real(zone.workspace(), real)).is_some();
        zones.of.values().any(|zone| denies(zone))
    }

    pub(super) fn name(&self, real: &Path) -> FileName {
        name_in(&self.root(real), real)
    }

    /// Whether git tracks a path of the workspace or of a worktree, or would add it.
    pub(super) fn is_of_repository(&self, real: &Path) -> bool {
        let root = self.root(real);
        if within(&root, real).is_none() {
            return false;
        }
        if !self.ignores(real, false) {
            return true;
        }
        let index = {
            let mut zones = self.zones.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(zones.indices.entry(Arc::clone(&root)).or_default())
        };
        index.tracks(&root, real)
    }

    /// Whether the ignore files of git name a path of the workspace or of a worktree, or a folder above it.
    pub(super) fn ignores(&self, real: &Path, is_folder: bool) -> bool {
        let root = self.root(real);
        let Some(inside) = within(&root, real) else { return false };
        let mut at = root.to_path_buf();
        let mut matchers = self.of_repository(&root);
        let mut names = inside.iter().peekable();
        while let Some(name) = names.next() {
            matchers.push(self.matcher(&at, &at.join(".gitignore"), Links::Refused));
            at.push(name);
            let is_folder = is_folder || names.peek().is_some();
            let verdict = matchers.iter().rev().map(|it| it.matched(&at, is_folder));
            if matches!(verdict.into_iter().find(|it| !it.is_none()), Some(Match::Ignore(_))) {
                return true;
            }
        }
        false
    }

    fn zones(&self) -> RwLockReadGuard<'_, CaptureZones> {
        self.zones.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The matchers of all repositories of the user, and of this one, for paths in `root`.
    fn of_repository(&self, root: &Path) -> Vec<Arc<Gitignore>> {
        // Worktrees have those of the repository that they are of.
        let info = self.workspace.join(".git/info/exclude");
        let global = ignore::gitignore::gitconfig_excludes_path();
        let files = global.into_iter().chain([info]);
        files.map(|file| self.matcher(root, &file, Links::Followed)).collect()
    }

    /// The matcher of an ignore file, for paths in `folder`; read again if the file changed.
    fn matcher(&self, folder: &Path, file: &Path, links: Links) -> Arc<Gitignore> {
        let found = match links {
            Links::Refused => fs::symlink_metadata(file),
            Links::Followed => fs::metadata(file),
        };
        let found = found.ok().filter(fs::Metadata::is_file);
        let state = found.and_then(|found| Some((found.modified().ok()?, found.len())));
        let mut known = self.ignores.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (folder.to_owned(), file.to_owned());
        if let Some(known) = known.get(&place).filter(|known| known.state == state) {
            return Arc::clone(&known.matcher);
        }
        let matcher = Arc::new(ignored::rules(folder, state.map(|_| (file, links))));
        if known.len() >= MOST_FOLDERS {
            known.clear();
        }
        known.insert(place, Remembered { state, matcher: Arc::clone(&matcher) });
        matcher
    }
}

/// The name of a path, relative to `root` where it is in there.
pub(super) fn name_in(root: &Path, real: &Path) -> FileName {
    match within(root, real) {
        Some(inside) if inside.as_os_str().is_empty() => FileName::of(Path::new(".")),
        inside => FileName::of(inside.unwrap_or(real)),
    }
}
