//! Removes a text from the tasks that a team keeps. The room `journal` does so for its journal.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::journaling::team_folder;
use crate::journal::Pattern;

/// The folder of a team's tasks, with their results.
pub(super) fn tasks_folder(eisen_dir: &Path, team: &str) -> PathBuf {
    team_folder(eisen_dir, team).join("tasks")
}

/// Replaces the text in a team's tasks, or with `dry_run` only finds it; returns the files that
/// have it. A running task has it in memory until it ends.
pub fn purge_tasks(
    eisen_dir: &Path,
    team: &str,
    pattern: &Pattern,
    dry_run: bool,
) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(tasks_folder(eisen_dir, team)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if !path.symlink_metadata().is_ok_and(|it| it.is_file()) {
            continue;
        }
        let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        let Some(purged) = pattern.purged_json(&text) else { continue };
        if !dry_run {
            fs::write(&path, purged)?;
        }
        found.push(path);
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_secret_goes_from_tasks_and_their_results() {
        let dir = tempfile::tempdir().unwrap();
        let folder = tasks_folder(dir.path(), "shop");
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("t-1.json");
        fs::write(&file, r#"{"id":"t-1","text":"use hunter2","result":"hunter2 works"}"#).unwrap();
        fs::write(folder.join("t-2.json"), r#"{"id":"t-2"}"#).unwrap();
        let pattern = Pattern::text("hunter2").unwrap();
        let purge = |dry_run| purge_tasks(dir.path(), "shop", &pattern, dry_run).unwrap();
        assert_eq!(purge(true), std::slice::from_ref(&file));
        assert!(fs::read_to_string(&file).unwrap().contains("hunter2"));
        assert_eq!(purge(false), std::slice::from_ref(&file));
        let left = r#"{"id":"t-1","text":"use [purged]","result":"[purged] works"}"#;
        assert_eq!(fs::read_to_string(&file).unwrap(), left);
        assert!(purge(false).is_empty());
        assert!(purge_tasks(dir.path(), "other", &pattern, false).unwrap().is_empty());
    }
}
