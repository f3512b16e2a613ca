//! References from events to contents, and the pieces of incomplete messages.

use std::borrow::Cow;

use memchr::memmem;
use rusqlite::{Connection, Transaction, params};

use crate::journal::event::{NewEvent, contents_named, unstore};
use crate::journal::fold::Draft;

/// Notes which contents an event names.
pub(in crate::journal) fn insert_refs(
    connection: &Connection,
    number: i64,
    payload: &str,
) -> rusqlite::Result<()> {
    for hash in contents_named(payload) {
        let sql = "INSERT OR IGNORE INTO content_refs(hash, number) VALUES (?1, ?2)";
        connection.prepare_cached(sql)?.execute(params![hash, number])?;
    }
    Ok(())
}

/// The payload of an event. Marks contents that were removed since as not stored: by a quota, a
/// purge, or with an event that was left out.
pub(super) fn with_what_is_stored<'a>(
    connection: &Connection,
    event: &'a NewEvent,
) -> rusqlite::Result<Cow<'a, str>> {
    let payload = Cow::Borrowed(event.payload.as_str());
    let (kind, is_stored) = (event.kind.as_str(), "\"stored\":true");
    let names_files = kind.starts_with("file.") || kind == "undo" || kind == "redo";
    if !names_files || memmem::find(payload.as_bytes(), is_stored.as_bytes()).is_none() {
        return Ok(payload);
    }
    let mut missing = Vec::new();
    for hash in contents_named(&payload) {
        let mut known = connection.prepare_cached("SELECT 1 FROM contents WHERE hash = ?1")?;
        if !known.exists([hash])? {
            missing.push(hash);
        }
    }
    let Ok(mut value) = serde_json::from_str(&payload) else { return Ok(payload) };
    let changed = missing.iter().fold(false, |any, hash| unstore(&mut value, hash) | any);
    Ok(if changed { Cow::Owned(value.to_string()) } else { payload })
}

/// Adds a piece of an incomplete message.
pub(super) fn insert_draft(transaction: &Transaction<'_>, draft: &Draft) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO drafts(draft, piece, agent_id, wire_session_id, type, turn, started, text) \
         VALUES (?1, (SELECT count(*) FROM drafts WHERE draft = ?1), ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    insert.execute(params![
        draft.number,
        draft.key.agent.as_str(),
        draft.key.session.as_str(),
        draft.kind.as_str(),
        draft.turn,
        draft.started_ms,
        draft.text,
    ])?;
    Ok(())
}
