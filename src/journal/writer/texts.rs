//! Contents, each stored once, their references from events, and the pieces of incomplete messages.

use std::borrow::Cow;

use memchr::memmem;
use rusqlite::{Connection, Transaction, params};

use crate::journal::contents::KEPT;
use crate::journal::event::{Blob, NewEvent, contents_named, unstore};
use crate::journal::fold::Draft;
use crate::journal::kept;
use crate::model::FileContent;

/// The level of zstd for contents.
const LEVEL: i32 = 3;

/// Contents below this are stored as they are.
const LEAST_COMPRESSED: usize = 128;

/// Stores a content that is not there yet.
pub(in crate::journal) fn insert_content(
    connection: &Connection,
    blob: &Blob,
) -> rusqlite::Result<()> {
    let mut known = connection.prepare_cached("SELECT 1 FROM contents WHERE hash = ?1")?;
    if known.exists([&blob.hash])? {
        return Ok(());
    }
    let (bytes, packed, encoding): (&[u8], Option<Vec<u8>>, _) = match &blob.data {
        FileContent::Bytes(bytes) => {
            let packs = bytes.len() >= LEAST_COMPRESSED;
            let packed = packs.then(|| zstd::bulk::compress(bytes, LEVEL).ok()).flatten();
            let packed = packed.filter(|packed| packed.len() < bytes.len());
            let encoding = if packed.is_some() { "zstd" } else { "raw" };
            (bytes, packed, encoding)
        }
        // It may have been removed since, with the last event that named it.
        FileContent::Kept { .. } if !kept::is_there(connection, &blob.hash) => return Ok(()),
        FileContent::Kept { .. } => (&[], None, KEPT),
    };
    let mut insert = connection.prepare_cached(
        "INSERT INTO contents(hash, size, encoding, data, created) \
         VALUES (?1, ?2, ?3, ?4, unixepoch('subsec') * 1000)",
    )?;
    let data = packed.as_deref().unwrap_or(bytes);
    insert.execute(params![blob.hash, blob.data.size(), encoding, data])?;
    Ok(())
}

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
