//! The changes of one file through its names, oldest first.

use std::path::Path;

use super::event::{FileChange, types};
use super::select::{SelectError, each};
use crate::journal::{Filter, Store};

/// Maximum names of a file that are followed back.
const MOST_NAMES: usize = 100;

/// The changes of a file in the journal.
#[derive(Default, Debug)]
pub struct FileHistory {
    /// Oldest first.
    pub changes: Vec<FileChange>,
    /// The number of changes that could not be read, or are from a later version.
    pub skipped: usize,
}

/// The changes of the file that is at `path`, also under its earlier names.
pub fn follow(store: &Store, path: &Path) -> Result<FileHistory, SelectError> {
    let mut history = FileHistory::default();
    let mut name = path.to_owned();
    // Only changes from before the file got its later name.
    let mut until: Option<String> = None;
    for _ in 0..MOST_NAMES {
        let mut of_name = of_path(store, &name, until.as_deref(), &mut history.skipped)?;
        // The file that moved away from the name was another one.
        if let Some(left) = of_name.iter().rposition(|it| it.from.as_ref() == Some(&name)) {
            of_name.drain(..=left);
        }
        let came = of_name.iter().rposition(|it| it.from.is_some());
        let origin = came.and_then(|at| {
            of_name.drain(..at);
            of_name.first().and_then(|it| Some((it.from.clone()?, it.event_id.clone())))
        });
        of_name.append(&mut history.changes);
        history.changes = of_name;
        match origin {
            Some((from, event)) => (name, until) = (from, Some(event)),
            None => break,
        }
    }
    Ok(history)
}

fn of_path(
    store: &Store,
    path: &Path,
    until: Option<&str>,
    skipped: &mut usize,
) -> Result<Vec<FileChange>, SelectError> {
    let text = path.to_string_lossy().into_owned();
    let filter = Filter { types: types(), path: Some(text), ..Filter::default() };
    let mut changes = Vec::new();
    each(store, filter, &mut |id, parsed| {
        if until.is_some_and(|until| id >= until) {
            return Ok(());
        }
        *skipped += parsed.skipped;
        changes.extend(parsed.changes.into_iter().filter(|it| it.concerns(path)));
        Ok(())
    })?;
    Ok(changes)
}
