//! Decides whether and how paths are recorded: never the program's and git's own files; files that
//! a `denied` pattern matches without content; and files that git ignores with a mark.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
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
    workspace: PathBuf,
    /// Paths that are not recorded, with all paths that begin with them.
    left_out: Vec<PathBuf>,
    outside: OutsideFiles,
    /// The zone of each agent.
    zones: RwLock<HashMap<AgentId, Arc<Zone>>>,
    ignores: Mutex<HashMap<PathBuf, Remembered>>,
    index: GitIndex,
}

struct Remembered {
    state: Fingerprint,
    matcher: Arc<Gitignore>,
}

type Fingerprint = Option<(SystemTime, u64)>;

impl CaptureScope {
    pub(super) fn new(workspace: PathBuf, left_out: Vec<PathBuf>, outside: OutsideFiles) -> Self {
        let (zones, ignores) = (RwLock::default(), Mutex::default());
        let index = GitIndex::default();
        Self { workspace, left_out, outside, zones, ignores, index }
    }

    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    pub(super) fn set_zone(&self, agent: &AgentId, zone: Arc<Zone>) {
        let mut zones = self.zones.write().unwrap_or_else(PoisonError::into_inner);
        zones.insert(agent.clone(), zone);
    }

    pub(super) fn leaves_out(&self, real: &Path) -> bool {
        let bytes = real.as_os_str().as_bytes();
        real == self.workspace
            || self.outside == OutsideFiles::Nothing && self.is_outside(real)
            || is_of_machine(&self.workspace, real)
            || self.left_out.iter().any(|path| bytes.starts_with(path.as_os_str().as_bytes()))
            || bytes.split(|byte| *byte == b'/').any(|name| name == b".git")
    }

    /// Whether a path is outside the workspace.
    pub(super) fn is_outside(&self, real: &Path) -> bool {
        within(&self.workspace, real).is_none()
    }

    /// Whether a `denied` pattern of any agent matches.
    pub(super) fn denies(&self, real: &Path) -> bool {
        let wire = wire_real(&self.workspace, real);
        let zones = self.zones.read().unwrap_or_else(PoisonError::into_inner);
        zones.values().any(|zone| zone.denied_by(&wire).is_some())
    }

    pub(super) fn name(&self, real: &Path) -> FileName {
        let text = wire_real(&self.workspace, real).into();
        let shown = within(&self.workspace, real).unwrap_or(real).as_os_str();
        let bytes = shown.to_str().is_none().then(|| shown.as_bytes().into());
        FileName { text, bytes }
    }

    /// Whether git tracks a path of the workspace, or would add it.
    pub(super) fn is_of_repository(&self, real: &Path) -> bool {
        let is_inside = within(&self.workspace, real).is_some();
        is_inside && (!self.ignores(real, false) || self.index.tracks(&self.workspace, real))
    }

    /// Whether the ignore files of git name a path of the workspace, or a folder above it.
    pub(super) fn ignores(&self, real: &Path, is_folder: bool) -> bool {
        let Some(inside) = within(&self.workspace, real) else { return false };
        let mut at = self.workspace.clone();
        let mut matchers = self.of_repository();
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

    /// The matchers of all repositories of the user, and of this one.
    fn of_repository(&self) -> Vec<Arc<Gitignore>> {
        let info = self.workspace.join(".git/info/exclude");
        let global = ignore::gitignore::gitconfig_excludes_path();
        let files = global.into_iter().chain([info]);
        files.map(|file| self.matcher(&self.workspace, &file, Links::Followed)).collect()
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
        if let Some(known) = known.get(file).filter(|known| known.state == state) {
            return Arc::clone(&known.matcher);
        }
        let matcher = Arc::new(ignored::rules(folder, state.map(|_| (file, links))));
        if known.len() >= MOST_FOLDERS {
            known.clear();
        }
        known.insert(file.to_owned(), Remembered { state, matcher: Arc::clone(&matcher) });
        matcher
    }
}
