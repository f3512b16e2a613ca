//! Selects the sessions and events that may go by a quota, in their order.

use std::fmt;

use rusqlite::{Connection, OptionalExtension as _};

use crate::journal::kept;
use crate::model::{TimestampMs, rfc3339};

pub(in crate::journal) const MB: u64 = 1 << 20;

/// Whether the team runs: then its open sessions are in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::journal) enum Team {
    Running,
    /// No session is in use, even one that never ended.
    Gone,
}

/// A quota that is exceeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::journal) enum Quota {
    Age {
        name: &'static str,
        days: u64,
        before: TimestampMs,
    },
    /// Only what is from before a time goes.
    Size {
        max_mb: u64,
        bytes: u64,
        before: TimestampMs,
    },
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Age { name, days, before } => {
                let day = rfc3339(before / 1000);
                write!(f, "older than {}, `{name}` is {days}", &day[..10.min(day.len())])
            }
            Self::Size { max_mb, bytes, .. } => {
                write!(f, "the journal has {} MB, `max_mb` is {max_mb}", bytes.div_ceil(MB))
            }
        }
    }
}

/// The events of no session before a time that are not pinned.
pub(in crate::journal) const OUTSIDE: &str = "session_id IS NULL AND timestamp < ?1 AND NOT EXISTS \
                       (SELECT 1 FROM pins WHERE kind = 'event' AND pins.id = e.id)";

pub(in crate::journal) fn count_outside(
    connection: &Connection,
    before: TimestampMs,
) -> rusqlite::Result<u64> {
    let sql = format!("SELECT count(*) FROM events e WHERE {OUTSIDE}");
    connection.query_row(&sql, [before], |row| row.get(0))
}

/// The condition of a session `s` that may go, if its last event is before `?1`.
pub(in crate::journal) fn removable(team: Team) -> String {
    let ended = match team {
        Team::Running => "s.status = 'ended' AND ",
        Team::Gone => "",
    };
    format!(
        "{ended}s.updated < ?1 \
         AND NOT EXISTS (SELECT 1 FROM sessions f WHERE f.forked_from = s.id) \
         AND NOT EXISTS (SELECT 1 FROM pins WHERE kind = 'session' AND pins.id = s.id) \
         AND NOT EXISTS (SELECT 1 FROM pins JOIN events e ON e.id = pins.id \
                         WHERE kind = 'event' AND e.session_id = s.id)"
    )
}

/// The session that goes next, and the time of its last event.
pub(in crate::journal) fn next_session(
    connection: &Connection,
    team: Team,
    quota: Quota,
) -> rusqlite::Result<Option<(String, TimestampMs)>> {
    let (Quota::Age { before, .. } | Quota::Size { before, .. }) = quota;
    let sql = format!(
        "SELECT s.id, s.updated FROM sessions s WHERE {} ORDER BY s.updated, s.id DESC LIMIT 1",
        removable(team)
    );
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    connection.query_row(&sql, [before], read).optional()
}

/// The time before which events of no session may go. By size they go with the sessions of their
/// time; if no session may go, only those from before all sessions.
pub(in crate::journal) fn outside_before(
    connection: &Connection,
    team: Team,
    quota: Quota,
) -> rusqlite::Result<TimestampMs> {
    let before = match quota {
        Quota::Age { before, .. } => return Ok(before),
        Quota::Size { before, .. } => before,
    };
    if let Some((_, updated)) = next_session(connection, team, quota)? {
        return Ok(updated);
    }
    let first = "SELECT min(created) FROM sessions";
    let first: Option<TimestampMs> = connection.query_row(first, [], |row| row.get(0))?;
    Ok(first.unwrap_or(0).min(before))
}

/// Bytes to which a journal over its quota shrinks: somewhat less, so that it is not over again at
/// once.
pub(in crate::journal) fn target(max_mb: u64) -> u64 {
    max_mb * MB / 8 * 7
}

/// Bytes of the pages that are in use, and of the contents beside the file.
pub(in crate::journal) fn used_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    let pages = pragma("page_count")? - pragma("freelist_count")?;
    Ok(pages * pragma("page_size")? + kept::bytes(connection))
}
