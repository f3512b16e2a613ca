//! What a proposal is measured by: the zones of the configuration, and the files of the workspace.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use crate::config::{Agent, Secrets};
use crate::ignored::{Further, Ignored};
use crate::learn::{KnownFile, Openness, UsedPath};
use crate::model::{Action, wire_real};
use crate::zone::{Zone, ZoneSpec};

/// Files of a workspace that count; more are as if git ignored them.
const MOST_FILES: usize = 200_000;

/// The zones by which the uses of one agent are judged.
pub(super) struct Ground {
    workspace: PathBuf,
    /// As it is written.
    now: Zone,
    /// What all agents have.
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

    /// The files that git tracks or would add, but those that `denied` closes. Reads the disk.
    pub(super) fn files(&self) -> Vec<KnownFile> {
        // Only the workspace decides what is ignored, not the user's settings.
        let ignored = Ignored::new(&self.workspace, Further { above: true, of_user: false });
        let walk = WalkBuilder::new(&self.workspace)
            .standard_filters(false)
            .filter_entry(move |entry| entry.file_name() != ".git" && !ignored.has(entry))
            .sort_by_file_name(Ord::cmp)
            .build();
        let is_file = |entry: &ignore::DirEntry| entry.file_type().is_some_and(|it| it.is_file());
        let files = walk.flatten().filter(is_file).take(MOST_FILES);
        let known = files.filter_map(|entry| {
            let path = wire_real(&self.workspace, entry.path());
            let is_listed = match self.standing(&path, Action::Read) {
                Openness::Denied | Openness::Own => return None,
                // What the zone itself asks for stays closed in a folder that is opened.
                Openness::Listed if self.widest.asks(&path) => return None,
                standing => standing == Openness::Listed,
            };
            Some(KnownFile { path, is_listed })
        });
        known.collect()
    }
}

/// Whether an agent wrote in a git folder.
pub(super) fn is_git_written(uses: &[UsedPath]) -> bool {
    uses.iter().any(|used| used.action == Action::Write && is_of_git(&used.path))
}

fn is_of_git(path: &str) -> bool {
    path.split('/').any(|part| part == ".git")
}
