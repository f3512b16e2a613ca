//! Pins: sessions and events that are never deleted.

use std::path::Path;

use rusqlite::params;
use serde::Serialize;

use super::Trouble;
use super::database::{ChangeError, open_to_change};
use crate::model::now_ms;

/// The kind of a pin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PinKind {
    /// A session, with all its events.
    Session,
    /// An event; it keeps its session, too.
    Event,
}

/// A row of the table `pins`.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub struct Pin {
    /// `session` or `event`.
    pub kind: String,
    /// The id of the session or of the event, in the journal.
    pub id: String,
    /// The time of the pin, in milliseconds since 1970.
    pub created: u64,
}

impl PinKind {
    /// The text in the column `kind`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Event => "event",
        }
    }
}

/// Pins a session or an event; returns whether it was not pinned yet.
pub fn pin(path: &Path, kind: PinKind, id: &str) -> Result<bool, ChangeError> {
    let sql = "INSERT OR IGNORE INTO pins(kind, id, created) VALUES (?1, ?2, ?3)";
    change(path, sql, params![kind.as_str(), id, now_ms()])
}

/// Removes a pin; returns whether there was one.
pub fn unpin(path: &Path, kind: PinKind, id: &str) -> Result<bool, ChangeError> {
    change(path, "DELETE FROM pins WHERE kind = ?1 AND id = ?2", params![kind.as_str(), id])
}

fn change(path: &Path, sql: &str, params: impl rusqlite::Params) -> Result<bool, ChangeError> {
    let connection = open_to_change(path)?;
    let changed = connection.execute(sql, params);
    let changed = changed.map_err(|error| Trouble::of_sqlite(path, &error));
    Ok(changed.map_err(ChangeError::Trouble)? > 0)
}
