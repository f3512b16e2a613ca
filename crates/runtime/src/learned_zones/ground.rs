//! The zones of the configuration and the files of the workspace, by which a proposal is measured.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::{DirEntry, WalkBuilder};
use parking_lot::Mutex;

use crate::config::{Agent, Secrets};
use crate::ignored::{Further, Ignored};
use crate::learn::{FolderKind, KnownFile, Openness, UsedPath};
use crate::model::{Action, wire_real};
use crate::zone::{Zone, ZoneSpec};

/// Files of a workspace that count.
pub(super) const MOST_FILES: usize = 200_000;

/// How many times as many files are looked at for names of the default list, with those that git ignores.
const IGNORED_TIMES: usize = 5;

/// The files of the workspace.
pub(super) struct WalkedFiles {
    pub(super) files: Vec<KnownFile>,
    /// Folders that git ignores.
    ignored: BTreeSet<String>,
    /// There is more.
    pub(super) is_cut: bool,
}

/// The zones by which the uses of one agent are judged.
pub(super) struct Ground {
    workspace: PathBuf,
    /// As it is written.
    now: Zone,
    /// The zone of all agents.
    team: Zone,
    /// All that may be opened.
    widest: Zone,
    /// The same, with the default list of secrets whatever the configuration says.
    listed: Zone,
}

impl Ground {
    pub(super) fn of(agent: &Agent) -> Result<Self, globset::Error> {
        let spec = &agent.zone.spec;
        let of_team = |pattern: &&String| !agent.zone.readable.contains(pattern);
        let readable = spec.readable.iter().filter(of_team).cloned().collect();
        let team = ZoneSpec { allowed: Vec::new(), readable, ..spec.clone() };
        let widest = ZoneSpec { allowed: vec!["**".to_owned()], ..spec.clone() };
        let listed = ZoneSpec { asked: Secrets::Ask.asked(), ..widest.clone() };
        let now = Zone::compile(spec)?;
        Ok(Self {
            workspace: now.workspace().to_owned(),
            now,
            team: Zone::compile(&team)?,
            widest: Zone::compile(&widest)?,
            listed: Zone::compile(&listed)?,
        })
    }

    pub(super) fn standing(&self, path: &str, action: Action) -> Openness {
        let real = self.workspace.join(path);
        if path.is_empty() || Path::new(path).is_absolute() || !real.starts_with(&self.workspace) {
            return Openness::Outside;
        }
        if is_of_git(path) {
            return Openness::Git;
        }
        if self.listed.asks(path) {
            return Openness::Listed;
        }
        if self.widest.denied_by(path).is_some() {
            return Openness::Denied;
        }
        if !self.widest.covers(&real, action) {
            return Openness::Own;
        }
        if self.team.covers(&real, action) { Openness::Shared } else { Openness::Open }
    }

    pub(super) fn allows_now(&self, path: &str, action: Action) -> bool {
        self.now.covers(&self.workspace.join(path), action)
    }

    /// The files that git tracks or would add, but those that `denied` closes, and what the default list names.
    /// Reads the disk.
    pub(super) fn files(&self, uses: &[UsedPath], most: usize) -> WalkedFiles {
        // Only the workspace decides what is ignored, not the user's settings.
        let ignored = Ignored::new(&self.workspace, Further { above: true, of_user: false });
        let folders: Arc<Mutex<BTreeSet<PathBuf>>> = Arc::default();
        let found = Arc::clone(&folders);
        let entered = move |entry: &DirEntry| {
            let is_ignored = ignored.has(entry);
            if is_ignored && entry.file_type().is_some_and(|it| it.is_dir()) {
                found.lock().insert(entry.path().to_owned());
            }
            !is_ignored
        };
        let mut is_cut = false;
        let mut files = Vec::new();
        for (at, path) in self.walk(entered).enumerate() {
            if at == most {
                is_cut = true;
                break;
            }
            // What the zone itself asks for stays closed in a folder that is opened.
            match self.standing(&path, Action::Read) {
                Openness::Denied | Openness::Own | Openness::Listed => {}
                _ => files.push(KnownFile { path, is_listed: false }),
            }
        }
        let mut listed = BTreeSet::new();
        for (at, path) in self.walk(|_| true).enumerate() {
            if at == most.saturating_mul(IGNORED_TIMES) {
                is_cut = true;
                break;
            }
            listed.extend(Some(path).filter(|path| self.is_only_listed(path)));
        }
        let gone = uses.iter().map(|used| &used.path).filter(|path| self.is_only_listed(path));
        listed.extend(gone.cloned());
        files.extend(listed.into_iter().map(|path| KnownFile { path, is_listed: true }));
        let folders = folders.lock().iter().map(|it| wire_real(&self.workspace, it)).collect();
        WalkedFiles { files, ignored: folders, is_cut }
    }

    /// Whether the default list names a path, and the zone does not.
    fn is_only_listed(&self, path: &str) -> bool {
        self.listed.asks(path)
            && !self.widest.asks(path)
            && self.standing(path, Action::Read) == Openness::Listed
    }

    /// The files of the workspace but those of git folders, in folders that are entered.
    fn walk(
        &self,
        entered: impl Fn(&DirEntry) -> bool + Send + Sync + 'static,
    ) -> impl Iterator<Item = String> {
        let walk = WalkBuilder::new(&self.workspace)
            .standard_filters(false)
            .filter_entry(move |entry| entry.file_name() != ".git" && entered(entry))
            .sort_by_file_name(Ord::cmp)
            .build();
        let is_file = |entry: &DirEntry| entry.file_type().is_some_and(|it| it.is_file());
        walk.flatten().filter(is_file).map(move |entry| wire_real(&self.workspace, entry.path()))
    }
}

impl WalkedFiles {
    /// `made` are the folders that the agent made.
    pub(super) fn kind(&self, made: &BTreeSet<String>, folder: &str) -> FolderKind {
        let is_in = |folders: &BTreeSet<String>| {
            let above = Path::new(folder).ancestors();
            above.filter_map(Path::to_str).any(|above| folders.contains(above))
        };
        if is_in(made) {
            FolderKind::Made
        } else if is_in(&self.ignored) {
            FolderKind::Ignored
        } else {
            FolderKind::Other
        }
    }
}

/// Whether an agent wrote in a git folder.
pub(super) fn is_git_written(uses: &[UsedPath]) -> bool {
    uses.iter().any(|used| used.action == Action::Write && is_of_git(&used.path))
}

fn is_of_git(path: &str) -> bool {
    path.split('/').any(|part| part == ".git")
}
