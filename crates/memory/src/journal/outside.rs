//! The contents of files outside the workspace that a journal has: which they are, and their removal.
//! A content that a file of the workspace has, too, is none of them.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::Connection;
use serde::Deserialize;
use serde_json::json;

use super::Trouble;
use super::contents::StoredContent;
use super::database::{ChangeError, open_to_change, open_to_read};
use super::event::{EventType, NewEvent, Place};
use super::purge::{empty_log, remove_content, scrub};

/// Contents of files outside the workspace.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OutsideContents {
    hashes: Vec<String>,
    /// Bytes of the files.
    pub bytes: u64,
}

impl OutsideContents {
    /// The number of contents that no file of the workspace has.
    pub fn count(&self) -> usize {
        self.hashes.len()
    }
}

/// The change of a file in a payload, or several of them.
#[derive(Deserialize)]
struct NamedChange {
    path: Option<String>,
    from: Option<String>,
    before: Option<State>,
    after: Option<State>,
    /// The files of an undo or redo.
    #[serde(default)]
    paths: Vec<NamedChange>,
}

#[derive(Deserialize)]
struct State {
    hash: Option<String>,
}

#[derive(Default)]
struct Sorted {
    outside: HashSet<String>,
    inside: HashSet<String>,
}

impl Sorted {
    fn add(&mut self, change: NamedChange) {
        let NamedChange { path, from, before, after, paths } = change;
        let was = from.as_ref().or(path.as_ref());
        for (path, state) in [(was, before), (path.as_ref(), after)] {
            let Some(hash) = state.and_then(|state| state.hash) else { continue };
            // Paths in the workspace are relative.
            let is_outside = path.is_some_and(|path| path.starts_with('/'));
            let hashes = if is_outside { &mut self.outside } else { &mut self.inside };
            hashes.insert(hash);
        }
        for change in paths {
            self.add(change);
        }
    }
}

/// The contents of files outside the workspace in the journal at `path`.
pub fn outside(path: &Path) -> Result<OutsideContents, ChangeError> {
    let connection = open_to_read(path)?;
    find(&connection).map_err(|error| failed(path, &error))
}

/// Removes these contents, so that no byte of them is left in the file; returns how many there were.
/// Works also while a team writes.
pub fn remove_outside(path: &Path) -> Result<OutsideContents, ChangeError> {
    let mut connection = open_to_change(path)?;
    let mut remove = || -> rusqlite::Result<OutsideContents> {
        let found = find(&connection)?;
        for hash in &found.hashes {
            remove_content(&mut connection, hash)?;
        }
        if found.count() > 0 {
            let payload = json!({
                "sessions": 0,
                "events": 0,
                "contents": found.count(),
                "reason": "files outside the workspace, by `gc --outside`",
            });
            let event = NewEvent::new(Place::Team, EventType::PRUNE, &payload);
            super::writer::append(&mut connection, event)?;
        }
        scrub(&connection)?;
        Ok(found)
    };
    let found = remove().map_err(|error| failed(path, &error))?;
    empty_log(&connection, path)?;
    Ok(found)
}

fn failed(path: &Path, error: &rusqlite::Error) -> ChangeError {
    ChangeError::Trouble(Trouble::of_sqlite(path, error))
}

fn find(connection: &Connection) -> rusqlite::Result<OutsideContents> {
    let mut sorted = Sorted::default();
    // A payload from another program may be no JSON.
    let sql = "SELECT payload FROM events WHERE type GLOB 'file.*' OR type IN ('undo', 'redo')";
    let mut events = connection.prepare(sql)?;
    let mut rows = events.query([])?;
    while let Some(row) = rows.next()? {
        if let Ok(change) = serde_json::from_str(row.get_ref(0)?.as_str()?) {
            sorted.add(change);
        }
    }
    let mut hashes: Vec<_> = sorted.outside.difference(&sorted.inside).cloned().collect();
    hashes.sort_unstable();
    let mut found = OutsideContents::default();
    for hash in hashes {
        if let Some(size) = StoredContent::size(connection, &hash)? {
            found.bytes += size;
            found.hashes.push(hash);
        }
    }
    Ok(found)
}
