//! Removes the oldest part of a journal by its quotas: ended sessions with their events, events of
//! no session, and contents that no event names any more. Pinned sessions and events stay, and the
//! origins of forks that stay.
//!
//! Each step is a short transaction. A session's row goes first, then its events: the next run removes
//! events that a kill left.

pub(super) mod candidates;

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use self::candidates::{OUTSIDE, Quota, Team, next_session, outside_before, target, used_bytes};
use super::contents::delete_content;
use super::event::contents_named;

/// Events of one step, and bytes of their payloads.
const STEP_EVENTS: usize = 256;
const STEP_BYTES: usize = 1 << 20;

/// Pages of one step that are given back to the disk.
const STEP_PAGES: u32 = 256;

/// The numbers of removed rows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pruned {
    /// Sessions whose row was removed.
    pub sessions: u64,
    /// Events of these sessions, and events of no session.
    pub events: u64,
    /// Contents that no event names any more.
    pub contents: u64,
}

/// One removal, from step to step.
#[derive(Debug)]
pub(super) struct Prune {
    team: Team,
    /// None: only the leftovers of an earlier removal go.
    quota: Option<Quota>,
    /// The session whose events go; its row is gone.
    session: Option<String>,
    pub(super) pruned: Pruned,
}

impl Prune {
    pub(super) fn new(team: Team, quota: Quota) -> Self {
        Self { team, quota: Some(quota), session: None, pruned: Pruned::default() }
    }

    /// A removal of the leftovers of an earlier one; None without leftovers.
    pub(super) fn of_leftovers(
        connection: &Connection,
        team: Team,
    ) -> rusqlite::Result<Option<Self>> {
        let left = leftover(connection)?;
        let of = |left| Self { team, quota: None, session: Some(left), pruned: Pruned::default() };
        Ok(left.map(of))
    }

    /// Removes a little. False once there is nothing more to remove.
    pub(super) fn step(&mut self, connection: &mut Connection) -> rusqlite::Result<bool> {
        let behavior = rusqlite::TransactionBehavior::Immediate;
        let transaction = connection.transaction_with_behavior(behavior)?;
        let found = self.remove(&transaction)?;
        transaction.commit()?;
        Ok(found || shrink(connection)?)
    }

    fn remove(&mut self, transaction: &Transaction<'_>) -> rusqlite::Result<bool> {
        if let Some(session) = &self.session {
            let sql = "SELECT number, payload FROM events WHERE session_id = ?1 LIMIT ?2";
            let (removed, contents) = remove_events(transaction, sql, session)?;
            self.count(removed, contents);
            if removed == 0 {
                self.session = leftover(transaction)?;
            }
            return Ok(true);
        }
        let Some(quota) = self.quota else { return Ok(false) };
        if let Quota::Size { max_mb, .. } = quota
            && used_bytes(transaction)? <= target(max_mb)
        {
            return Ok(false);
        }
        let before = outside_before(transaction, self.team, quota)?;
        let sql = format!("SELECT number, payload FROM events e WHERE {OUTSIDE} LIMIT ?2");
        let (removed, contents) = remove_events(transaction, &sql, before)?;
        self.count(removed, contents);
        if removed > 0 {
            return Ok(true);
        }
        let Some((session, _)) = next_session(transaction, self.team, quota)? else {
            return Ok(false);
        };
        transaction.execute("DELETE FROM sessions WHERE id = ?1", [&session])?;
        self.pruned.sessions += 1;
        self.session = Some(session);
        Ok(true)
    }

    fn count(&mut self, events: usize, contents: usize) {
        self.pruned.events += events as u64;
        self.pruned.contents += contents as u64;
    }
}

/// Removes the events that a query selects by one value and a limit; returns how many, and the number
/// of contents that went with them.
fn remove_events(
    transaction: &Transaction<'_>,
    sql: &str,
    value: impl rusqlite::ToSql,
) -> rusqlite::Result<(usize, usize)> {
    let mut statement = transaction.prepare_cached(sql)?;
    let mut rows = statement.query(params![value, STEP_EVENTS])?;
    let (mut events, mut bytes) = (Vec::new(), 0);
    while bytes < STEP_BYTES
        && let Some(row) = rows.next()?
    {
        let (number, payload): (i64, String) = (row.get(0)?, row.get(1)?);
        bytes += payload.len();
        events.push((number, payload));
    }
    let mut text = transaction.prepare_cached("DELETE FROM events_fts WHERE rowid = ?1")?;
    let mut event = transaction.prepare_cached("DELETE FROM events WHERE number = ?1")?;
    let mut contents = 0;
    for (number, payload) in &events {
        text.execute([number])?;
        event.execute([number])?;
        for hash in contents_named(payload) {
            contents += forget_name(transaction, hash, *number)?;
        }
    }
    Ok((events.len(), contents))
}

/// Removes an event's reference to a content, and the content with its last reference.
fn forget_name(transaction: &Transaction<'_>, hash: &str, number: i64) -> rusqlite::Result<usize> {
    let mut name =
        transaction.prepare_cached("DELETE FROM content_refs WHERE hash = ?1 AND number = ?2")?;
    name.execute(params![hash, number])?;
    let mut others =
        transaction.prepare_cached("SELECT 1 FROM content_refs WHERE hash = ?1 LIMIT 1")?;
    Ok(usize::from(!others.exists([hash])? && delete_content(transaction, hash)?))
}

/// A session whose row is gone, while events of it are still there.
fn leftover(connection: &Connection) -> rusqlite::Result<Option<String>> {
    // Steps from one session to the next one in the index.
    let sql = "WITH RECURSIVE of(id) AS (SELECT min(session_id) FROM events WHERE session_id NOT NULL \
               UNION ALL SELECT (SELECT min(session_id) FROM events WHERE session_id > of.id) \
               FROM of WHERE of.id NOT NULL) \
               SELECT id FROM of WHERE id NOT NULL AND id NOT IN (SELECT id FROM sessions) LIMIT 1";
    connection.query_row(sql, [], |row| row.get(0)).optional()
}

/// Gives some free pages back to the disk, if the file was made for that. False without free pages.
fn shrink(connection: &Connection) -> rusqlite::Result<bool> {
    let free: i64 = connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    let mode: i64 = connection.pragma_query_value(None, "auto_vacuum", |row| row.get(0))?;
    if free == 0 || mode == 0 {
        return Ok(false);
    }
    connection.execute_batch(&format!("PRAGMA incremental_vacuum({STEP_PAGES})"))?;
    Ok(true)
}
