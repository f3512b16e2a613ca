//! Where teams keep their files: the journal of each, and the note of its workspace.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::config::{Config, journal_path};
use crate::kept::{KeptFile, Whole};
use crate::zone::DRAFTS;

/// The file with the path of a team's workspace.
const WORKSPACE: &str = "workspace";

/// Bytes of a file with a path.
const MOST_BYTES: u64 = 64 << 10;

/// The journal of a team: at the path of its last run, else at the default one.
pub fn journal_place(eisen_dir: &Path, team: &str) -> PathBuf {
    let kept = pointer(eisen_dir, team);
    match noted(&kept).read() {
        Ok(Some(path)) if !path.is_empty() => PathBuf::from(OsString::from_vec(path)),
        _ => journal_path(eisen_dir, team),
    }
}

/// Every team that has a journal, in order.
pub fn teams_with_journals(eisen_dir: &Path) -> Vec<String> {
    let mut teams = every_team(eisen_dir);
    teams.retain(|team| journal_place(eisen_dir, team).is_file());
    teams
}

/// Every team that was started here, in order.
pub(crate) fn every_team(eisen_dir: &Path) -> Vec<String> {
    let folders = fs::read_dir(eisen_dir.join("teams")).into_iter().flatten().flatten();
    let mut teams: Vec<_> =
        folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    teams.sort();
    teams
}

/// Notes the workspace of a team, which later shows whether the team is gone for good.
pub(crate) fn note_workspace(team: &str, workspace: &Path, eisen_dir: &Path) {
    let file = team_folder(eisen_dir, team).join(WORKSPACE);
    if let Err(error) = note(&file, workspace) {
        tracing::warn!(%error, "cannot note the workspace of the team for `gc`");
    }
}

/// The workspace that a team had in its last run.
pub fn workspace_of(eisen_dir: &Path, team: &str) -> Option<PathBuf> {
    let path = noted(&team_folder(eisen_dir, team).join(WORKSPACE)).read().ok().flatten()?;
    let path = PathBuf::from(OsString::from_vec(path));
    path.is_absolute().then_some(path)
}

/// The folder of a team's own files.
pub(crate) fn team_folder(eisen_dir: &Path, team: &str) -> PathBuf {
    eisen_dir.join("teams").join(team)
}

/// The folder of files that the team's client writes, before they take their places.
pub(crate) fn drafts(eisen_dir: &Path, team: &str) -> PathBuf {
    team_folder(eisen_dir, team).join(DRAFTS)
}

/// Notes the place of a journal that is not at the default one.
pub(crate) fn note_place(config: &Config, eisen_dir: &Path) {
    if !config.journal.enabled {
        return;
    }
    let kept = pointer(eisen_dir, &config.team.name);
    let noted = match &config.journal.path {
        Some(path) => note(&kept, path),
        None => noted(&kept).remove(),
    };
    if let Err(error) = noted {
        tracing::warn!(%error, "cannot note the place of the journal for `history`");
    }
}

/// Notes a path, if it is another one than before.
fn note(file: &Path, path: &Path) -> io::Result<()> {
    let (file, path) = (noted(file), path.as_os_str().as_bytes());
    let is_noted = file.read().is_ok_and(|noted| noted.is_some_and(|noted| noted == path));
    if is_noted { Ok(()) } else { file.replace(path) }
}

/// A file with a path: by a part of one, `gc` would take a workspace for one that is gone.
fn noted(file: &Path) -> KeptFile<Whole> {
    KeptFile::new(file, MOST_BYTES)
}

fn pointer(eisen_dir: &Path, team: &str) -> PathBuf {
    team_folder(eisen_dir, team).join("journal.path")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_noted_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("teams/shop/workspace");
        note(&file, Path::new("/a/longer/path")).unwrap();
        note(&file, Path::new("/work")).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"/work");
        for (path, mode) in [(&*file, 0o600), (file.parent().unwrap(), 0o700)] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, mode);
        }
    }
}
