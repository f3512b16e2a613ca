//! Removes a text from a journal: from payloads, the search index, contents, drafts, and the bytes
//! that `SQLite` leaves in free pages and in the write-ahead log.
//!
//! A purge works in short transactions, also while a team writes. Only the last step, which rewrites the
//! file, takes longer.

pub(super) mod pattern;

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::json;

use self::pattern::Pattern;
use super::Trouble;
use super::contents::{StoredContent, delete_content};
use super::database::{ChangeError, open_to_change, open_to_read};
use super::event::{EventType, NewEvent, Place, unstore};

/// Events that are read at once.
const PAGE: usize = 500;

/// Pages of the search index that are merged at once.
const MERGED_PAGES: i64 = 500;

/// How long readers may hold the write-ahead log.
const PATIENCE: Duration = Duration::from_secs(10);

/// The events, contents and drafts with the text.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Matches {
    events: Vec<i64>,
    /// The ids of these events.
    pub ids: Vec<String>,
    /// Hashes of contents.
    pub contents: Vec<String>,
    /// The number of incomplete messages.
    pub drafts: u64,
    /// The journal's ids of sessions whose ids on the wire have it.
    pub sessions: Vec<String>,
}

impl Matches {
    /// Whether the journal has the text nowhere.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
            && self.contents.is_empty()
            && self.drafts == 0
            && self.sessions.is_empty()
    }
}

/// Finds the events, contents and drafts with the text.
pub fn find(path: &Path, pattern: &Pattern) -> Result<Matches, ChangeError> {
    let connection = open_to_read(path)?;
    find_in(&connection, pattern).map_err(|error| failed(path, &error))
}

/// Removes the text from the journal at `path`; returns the places that had it.
pub fn purge(path: &Path, pattern: &Pattern) -> Result<Matches, ChangeError> {
    let mut connection = open_to_change(path)?;
    let matches = replace_all(&mut connection, pattern).map_err(|error| failed(path, &error))?;
    // Also without matches: deleted rows may still be in free pages.
    scrub(&connection).map_err(|error| failed(path, &error))?;
    empty_log(&connection, path)?;
    Ok(matches)
}

fn failed(path: &Path, error: &rusqlite::Error) -> ChangeError {
    ChangeError::Trouble(Trouble::of_sqlite(path, error))
}

fn find_in(connection: &Connection, pattern: &Pattern) -> rusqlite::Result<Matches> {
    let mut found = Matches::default();
    let mut last = 0;
    while find_events(connection, pattern, &mut last, &mut found)? {}
    let contents = format!("SELECT hash, {} FROM contents", StoredContent::COLUMNS);
    let mut contents = connection.prepare(&contents)?;
    let mut rows = contents.query([])?;
    while let Some(row) = rows.next()? {
        let hash: String = row.get(0)?;
        let whole = StoredContent::of_row(row, 1)?.whole(connection, &hash)?;
        if whole.is_some_and(|data| pattern.is_in(&data)) {
            found.contents.push(hash);
        }
    }
    for (_, text) in drafts(connection)? {
        found.drafts += u64::from(pattern.is_in(text.as_bytes()));
    }
    found.sessions = purged_sessions(connection, pattern)?.into_iter().map(|(id, _)| id).collect();
    Ok(found)
}

/// Looks at one page of events behind `last`; false at the end.
fn find_events(
    connection: &Connection,
    pattern: &Pattern,
    last: &mut i64,
    found: &mut Matches,
) -> rusqlite::Result<bool> {
    let mut page = connection.prepare_cached(
        "SELECT e.number, e.id, e.payload, f.text FROM events e LEFT JOIN events_fts f \
         ON f.rowid = e.number WHERE e.number > ?1 ORDER BY e.number LIMIT ?2",
    )?;
    let mut rows = page.query(params![*last, PAGE])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        (*last, count) = (row.get(0)?, count + 1);
        let (payload, text): (String, Option<String>) = (row.get(2)?, row.get(3)?);
        let is_in_text = || text.is_some_and(|text| pattern.is_in(text.as_bytes()));
        if pattern.purged_json(&payload).is_some() || is_in_text() {
            found.events.push(*last);
            found.ids.push(row.get(1)?);
        }
    }
    Ok(count == PAGE)
}

/// The sessions whose ids on the wire have the text, each with the id that takes its place.
fn purged_sessions(
    connection: &Connection,
    pattern: &Pattern,
) -> rusqlite::Result<Vec<(String, String)>> {
    let sql = "SELECT id, wire_session_id FROM sessions WHERE wire_session_id NOT NULL";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        if let Some(purged) = pattern.purged(row.get_ref(1)?.as_str()?) {
            found.push((row.get(0)?, purged));
        }
    }
    Ok(found)
}

/// Each incomplete message, with its text so far.
fn drafts(connection: &Connection) -> rusqlite::Result<Vec<(i64, String)>> {
    let sql = "SELECT draft, group_concat(text, '' ORDER BY piece) FROM drafts GROUP BY draft";
    let mut statement = connection.prepare(sql)?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn replace_all(connection: &mut Connection, pattern: &Pattern) -> rusqlite::Result<Matches> {
    let mut found = find_in(connection, pattern)?;
    let mut last = found.events.last().copied().unwrap_or(0);
    for events in found.events.chunks(PAGE) {
        replace_events(connection, pattern, events)?;
    }
    for hash in &found.contents {
        remove_content(connection, hash)?;
    }
    replace_drafts(connection, pattern)?;
    for (id, purged) in purged_sessions(connection, pattern)? {
        let sql = "UPDATE sessions SET wire_session_id = ?2 WHERE id = ?1";
        connection.execute(sql, [id, purged])?;
    }
    // Events that were written meanwhile.
    let mut later = Matches::default();
    while find_events(connection, pattern, &mut last, &mut later)? {}
    replace_events(connection, pattern, &later.events)?;
    found.events.extend(later.events);
    found.ids.extend(later.ids);
    if !found.is_empty() {
        let payload = json!({
            "events": found.events.len(),
            "contents": found.contents.len(),
            "drafts": found.drafts,
        });
        let event = NewEvent::new(Place::Team, EventType::PURGE, &payload);
        super::writer::append(connection, event)?;
    }
    Ok(found)
}

fn replace_events(
    connection: &mut Connection,
    pattern: &Pattern,
    events: &[i64],
) -> rusqlite::Result<()> {
    let behavior = rusqlite::TransactionBehavior::Immediate;
    let transaction = connection.transaction_with_behavior(behavior)?;
    for number in events {
        let sql = "SELECT e.payload, f.text FROM events e LEFT JOIN events_fts f \
                   ON f.rowid = e.number WHERE e.number = ?1";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let row: Option<(String, Option<String>)> =
            transaction.prepare_cached(sql)?.query_row([number], read).optional()?;
        // It may have been deleted meanwhile.
        let Some((payload, text)) = row else { continue };
        if let Some(payload) = pattern.purged_json(&payload) {
            let sql = "UPDATE events SET payload = ?2 WHERE number = ?1";
            transaction.prepare_cached(sql)?.execute(params![number, payload])?;
        }
        if let Some(text) = text.and_then(|text| pattern.purged(&text)) {
            let sql = "UPDATE events_fts SET text = ?2 WHERE rowid = ?1";
            transaction.prepare_cached(sql)?.execute(params![number, text])?;
        }
    }
    transaction.commit()
}

/// Removes a content, and marks it as not stored in the events that name it.
pub(super) fn remove_content(connection: &mut Connection, hash: &str) -> rusqlite::Result<()> {
    let behavior = rusqlite::TransactionBehavior::Immediate;
    let transaction = connection.transaction_with_behavior(behavior)?;
    let sql = "SELECT e.number, e.payload FROM content_refs r JOIN events e \
               ON e.number = r.number WHERE r.hash = ?1";
    let mut statement = transaction.prepare_cached(sql)?;
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let naming: Vec<(i64, String)> =
        statement.query_map([hash], read)?.collect::<Result<_, _>>()?;
    for (number, payload) in naming {
        let Ok(mut payload) = serde_json::from_str::<serde_json::Value>(&payload) else {
            continue;
        };
        if unstore(&mut payload, hash) {
            let sql = "UPDATE events SET payload = ?2 WHERE number = ?1";
            transaction.execute(sql, params![number, payload.to_string()])?;
        }
    }
    drop(statement);
    delete_content(&transaction, hash)?;
    transaction.commit()
}

/// A purged draft becomes one piece; its other pieces stay, empty, since pieces are counted.
fn replace_drafts(connection: &mut Connection, pattern: &Pattern) -> rusqlite::Result<()> {
    let behavior = rusqlite::TransactionBehavior::Immediate;
    let transaction = connection.transaction_with_behavior(behavior)?;
    for (draft, text) in drafts(&transaction)? {
        if let Some(text) = pattern.purged(&text) {
            let sql = "UPDATE drafts SET text = iif(piece = 0, ?2, '') WHERE draft = ?1";
            transaction.execute(sql, params![draft, text])?;
        }
    }
    transaction.commit()
}

/// Rewrites the search index and the file, so that no page keeps a replaced text.
pub(super) fn scrub(connection: &Connection) -> rusqlite::Result<()> {
    // Merges all segments of the index, which drops the words of replaced texts. A negative number
    // begins the merge; while it goes on, more than one row changes.
    let merge = "INSERT INTO events_fts(events_fts, rank) VALUES ('merge', ?1)";
    let mut pages = -MERGED_PAGES;
    loop {
        let before = connection.total_changes();
        connection.prepare_cached(merge)?.execute([pages])?;
        if connection.total_changes() - before < 2 {
            break;
        }
        pages = MERGED_PAGES;
    }
    connection.execute_batch("VACUUM")
}

/// Empties the write-ahead log, which may need readers to end.
pub(super) fn empty_log(connection: &Connection, path: &Path) -> Result<(), ChangeError> {
    let begun = Instant::now();
    loop {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: bool = connection
            .query_row(sql, [], |row| row.get(0))
            .map_err(|error| failed(path, &error))?;
        if !busy {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            return Err(ChangeError::HeldByReader(path.to_owned()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
