//! Keeps the journal of a team that is gone within its quotas.

use std::path::Path;

use rusqlite::Connection;

use super::OpenError;
use super::database::{Database, is_written, open_to_read};
use super::event::{EventType, NewEvent, Place};
use super::prune::Pruned;
use super::prune::candidates::{Quota, Team};
use super::quotas::{DAY_MS, Excess, Quotas, too_old};
use super::trouble::Trouble;
use crate::model::now_ms;

/// The part of the journal at `path` that a team with these quotas would remove.
pub fn past(path: &Path, quotas: Quotas) -> Result<Option<Excess>, OpenError> {
    let connection = open_to_read(path)?;
    let team = if is_written(path) { Team::Running } else { Team::Gone };
    let excess = quotas.excess(&connection, team, now_ms());
    excess.map_err(|error| OpenError::Sqlite { path: path.to_owned(), error })
}

/// The part of the journal at `path`, whose team is gone, that is past its quotas or older than
/// `max_age_days`.
pub fn excess(path: &Path, max_age_days: Option<u64>) -> Result<Option<Excess>, OpenError> {
    let connection = open_to_read(path)?;
    let find = || {
        if let Some(days) = max_age_days {
            let before = now_ms().saturating_sub(days.saturating_mul(DAY_MS));
            let quota = Quota::Age { name: "--max-age-days", days, before };
            let excess = too_old(&connection, Team::Gone, quota, before)?;
            if excess.is_some() {
                return Ok(excess);
            }
        }
        Quotas::noted(&connection)?.excess(&connection, Team::Gone, now_ms())
    };
    find().map_err(|error| OpenError::Sqlite { path: path.to_owned(), error })
}

/// Removes the excess of the journal at `path`, whose team is gone, and gives the room back to the
/// disk.
pub fn prune(path: &Path, excess: &Excess) -> Result<Pruned, Trouble> {
    let mut database = Database::open(path)?;
    let remove = |connection: &mut Connection| {
        let mut removal = excess.removal(Team::Gone);
        while removal.step(connection)? {}
        let event = NewEvent::new(Place::Team, EventType::PRUNE, &excess.event(removal.pruned));
        super::writer::append(connection, event)?;
        let mode: i64 = connection.pragma_query_value(None, "auto_vacuum", |row| row.get(0))?;
        if mode == 0 {
            // A file of version 1.
            connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM")?;
        }
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(removal.pruned)
    };
    remove(&mut database.connection).map_err(|error| Trouble::of_sqlite(path, &error))
}
