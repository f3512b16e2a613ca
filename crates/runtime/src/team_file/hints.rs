//! Hints about a valid but probably unintended configuration: from the configuration, git, and
//! other running teams.

use std::path::Path;

use crate::config::{Config, check};
use crate::serve;

/// The hints, one sentence each.
pub fn hints(config: &Config, eisen_dir: &Path) -> Vec<String> {
    let mut hints = check::hints(config, eisen_dir);
    hints.extend(check::remembered(config));
    hints.extend(neighbours(config, eisen_dir));
    hints
}

/// Logs them, unless warnings are not logged, as in a run.
pub(crate) fn warn(config: &Config, eisen_dir: &Path) {
    if !tracing::enabled!(tracing::Level::WARN) {
        return;
    }
    for hint in hints(config, eisen_dir) {
        tracing::warn!("{hint}");
    }
}

/// Other teams that work on the same files.
fn neighbours(config: &Config, eisen_dir: &Path) -> Vec<String> {
    let own = &config.team.workspace;
    let same = |other: &Path| other.starts_with(own) || own.starts_with(other);
    let teams = serve::live_teams(eisen_dir).unwrap_or_default().into_iter();
    teams
        .filter(|team| team.team != config.team.name)
        .filter(|team| team.remains.workspace.as_deref().is_some_and(same))
        .map(|team| {
            format!(
                "the team `{}` (pid {}) works on the same files: their agents may overwrite each \
                 other's changes; `scratch = true` works on a copy",
                team.team, team.pid
            )
        })
        .collect()
}
