//! The kept states of batches all of whose runs are removed.

use std::path::Path;

use crate::care::garbage::files::names_of;
use crate::care::garbage::{Garbage, Removal};
use crate::jobs::{folder_of_batches, runs_of};
use crate::runs::{FindError, find_run};

pub(super) fn forgotten(eisen_dir: &Path) -> anyhow::Result<Vec<Garbage>> {
    let folder = folder_of_batches(eisen_dir);
    let mut found = Vec::new();
    for name in names_of(&folder)? {
        let path = folder.join(&name);
        // What can't be read is left to whoever performs the batch again.
        let Ok((file, runs)) = runs_of(&path) else { continue };
        let is_gone = |run: &String| matches!(find_run(eisen_dir, run), Err(FindError::Unknown(_)));
        if runs.iter().all(is_gone) {
            found.push(Garbage {
                what: format!("state of the batch {}", file.display()),
                reason: "its runs are removed".to_owned(),
                bytes: path.metadata().map_or(0, |it| it.len()),
                team: None,
                removal: Removal::Paths(vec![path]),
            });
        }
    }
    Ok(found)
}
