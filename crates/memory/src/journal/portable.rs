//! Exports a journal as lines of JSON, and imports them: an export of the import has the same
//! bytes.
//!
//! The first line names the format; then come the lines of each kind in the order of its key.
//! Incomplete messages are left out.

use std::borrow::Cow;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::contents::{StoredContent, insert_content};
use super::database::{Database, open_to_read, with_suffix};
use super::event::{Blob, hash_of};
use super::migrations::VERSION;
use super::{OpenError, Trouble};
use crate::model::FileContent;

/// The version of the lines.
const FORMAT: u32 = 1;

/// Bytes of the longest line that is read.
const LONGEST_LINE: u64 = 1 << 30;

/// Why a journal can't be exported or imported.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The journal to export can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// `SQLite` can't read the journal, or write the new one.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The lines can't be read or written, or the new file can't be put in its place.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line of the import is malformed, or can't be inserted.
    #[error("line {line}: {why}")]
    Line {
        /// The number of the line, from 1.
        line: u64,
        /// The reason, in words.
        why: String,
    },
    /// An import finds a journal at the path, and leaves it alone.
    #[error("there is a journal already: {}", .0.display())]
    Exists(PathBuf),
    /// The new journal can't be opened.
    #[error("{0}")]
    Trouble(Trouble),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line<'a> {
    Journal {
        format: u32,
        version: i32,
    },
    Meta {
        key: String,
        value: String,
    },
    Session {
        id: String,
        agent_id: String,
        wire_session_id: Option<String>,
        root_event_id: String,
        head_event_id: String,
        forked_from: Option<String>,
        status: String,
        created: i64,
        updated: i64,
    },
    Event(EventLine<'a>),
    Content {
        hash: String,
        created: i64,
        #[serde(borrow)]
        data: Cow<'a, str>,
    },
    Pin {
        kind: String,
        id: String,
        created: i64,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EventLine<'a> {
    id: String,
    parent_id: Option<String>,
    session_id: Option<String>,
    agent_id: Option<String>,
    sequence: Option<i64>,
    depth: Option<i64>,
    #[serde(rename = "type")]
    kind: String,
    timestamp: i64,
    turn: Option<i64>,
    #[serde(borrow)]
    payload: Cow<'a, RawValue>,
    /// The text that the search index has for it.
    text: Option<String>,
}

/// Writes all of a journal, as it is at one moment.
pub fn export(path: &Path, out: &mut impl Write) -> Result<(), PortError> {
    let mut connection = open_to_read(path)?;
    let snapshot = connection.transaction()?;
    line(out, &Line::Journal { format: FORMAT, version: VERSION })?;
    each(&snapshot, "SELECT key, value FROM meta ORDER BY key", out, |row| {
        Ok(Line::Meta { key: row.get(0)?, value: row.get(1)? })
    })?;
    each(&snapshot, "SELECT * FROM sessions ORDER BY id", out, |row| {
        Ok(Line::Session {
            id: row.get("id")?,
            agent_id: row.get("agent_id")?,
            wire_session_id: row.get("wire_session_id")?,
            root_event_id: row.get("root_event_id")?,
            head_event_id: row.get("head_event_id")?,
            forked_from: row.get("forked_from")?,
            status: row.get("status")?,
            created: row.get("created")?,
            updated: row.get("updated")?,
        })
    })?;
    let events = "SELECT e.*, f.text FROM events e LEFT JOIN events_fts f ON f.rowid = e.number \
                  ORDER BY e.number";
    each(&snapshot, events, out, event_line)?;
    let columns = StoredContent::COLUMNS;
    let contents = format!("SELECT hash, created, {columns} FROM contents ORDER BY hash");
    each(&snapshot, &contents, out, |row| {
        let hash: String = row.get(0)?;
        let data = StoredContent::of_row(row, 2)?.whole(&snapshot, &hash)?.unwrap_or_default();
        let data = STANDARD.encode(data).into();
        Ok(Line::Content { hash, created: row.get(1)?, data })
    })?;
    each(&snapshot, "SELECT kind, id, created FROM pins ORDER BY kind, id", out, |row| {
        Ok(Line::Pin { kind: row.get(0)?, id: row.get(1)?, created: row.get(2)? })
    })?;
    out.flush()?;
    Ok(())
}

/// Makes a journal at `path` from the lines of an export; leaves nothing there if that fails.
/// `team` replaces the team of the export.
pub fn import(lines: &mut impl BufRead, path: &Path, team: Option<&str>) -> Result<(), PortError> {
    if path.exists() {
        return Err(PortError::Exists(path.to_owned()));
    }
    let draft = with_suffix(path, ".import");
    let clear = || {
        for suffix in ["", "-wal", "-shm", ".lock"] {
            let _ = fs::remove_file(with_suffix(&draft, suffix));
        }
    };
    clear();
    let imported = fill(lines, &draft, team).and_then(|()| {
        // Never replaces a journal that began meanwhile.
        fs::hard_link(&draft, path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => PortError::Exists(path.to_owned()),
            _ => error.into(),
        })
    });
    clear();
    imported
}

/// The team of an export, read from its first lines.
pub fn team_of(lines: &mut impl BufRead) -> Option<String> {
    let mut text = String::new();
    for _ in 0..16 {
        text.clear();
        io::Read::take(&mut *lines, 1 << 20).read_line(&mut text).ok()?;
        match serde_json::from_str(text.trim_end()).ok()? {
            Line::Meta { key, value } if key == "team" => return Some(value),
            Line::Journal { .. } | Line::Meta { .. } => {}
            _ => return None,
        }
    }
    None
}

fn fill(lines: &mut impl BufRead, draft: &Path, team: Option<&str>) -> Result<(), PortError> {
    let mut database = Database::open(draft).map_err(PortError::Trouble)?;
    let connection = &mut database.connection;
    let transaction = connection.transaction()?;
    let (mut text, mut number) = (String::new(), 0);
    loop {
        text.clear();
        number += 1;
        let read = io::Read::take(&mut *lines, LONGEST_LINE).read_line(&mut text);
        let failed = |why: String| PortError::Line { line: number, why };
        let length = read.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => failed("it is no UTF-8".to_owned()),
            _ => error.into(),
        })?;
        if length == 0 && number > 1 {
            break;
        }
        let line: Line<'_> =
            serde_json::from_str(text.trim_end()).map_err(|error| failed(error.to_string()))?;
        if (number == 1) != matches!(line, Line::Journal { .. }) {
            return Err(failed("this is no export of a journal".to_owned()));
        }
        insert(&transaction, line, team).map_err(failed)?;
    }
    transaction.commit()?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

fn insert(connection: &Connection, line: Line<'_>, team: Option<&str>) -> Result<(), String> {
    let run = |sql: &str, params: &[&dyn rusqlite::ToSql]| {
        let mut statement = connection.prepare_cached(sql).map_err(|error| error.to_string())?;
        statement.execute(params).map(drop).map_err(|error| error.to_string())
    };
    match line {
        Line::Journal { format, version } if format > FORMAT || version > VERSION => {
            Err("it is from a newer version: update this program".to_owned())
        }
        Line::Journal { .. } => Ok(()),
        Line::Meta { key, value } => {
            let value = team.filter(|_| key == "team").map_or(value, str::to_owned);
            run("INSERT INTO meta(key, value) VALUES (?1, ?2)", params![key, value])
        }
        Line::Session {
            id,
            agent_id,
            wire_session_id,
            root_event_id,
            head_event_id,
            forked_from,
            status,
            created,
            updated,
        } => run(
            "INSERT INTO sessions(id, agent_id, wire_session_id, root_event_id, head_event_id, \
             forked_from, status, created, updated) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                id,
                agent_id,
                wire_session_id,
                root_event_id,
                head_event_id,
                forked_from,
                status,
                created,
                updated
            ],
        ),
        Line::Event(event) => insert_event(connection, &event).map_err(|error| error.to_string()),
        Line::Content { hash, created, data } => {
            let data = STANDARD.decode(data.as_bytes()).map_err(|error| error.to_string())?;
            if hash_of(&data) != hash {
                return Err(format!("the content is not that of the hash {hash}"));
            }
            let blob = Blob { hash: hash.clone(), data: FileContent::Bytes(data) };
            insert_content(connection, &blob).map_err(|error| error.to_string())?;
            run("UPDATE contents SET created = ?2 WHERE hash = ?1", params![hash, created])
        }
        Line::Pin { kind, id, created } => run(
            "INSERT INTO pins(kind, id, created) VALUES (?1, ?2, ?3)",
            params![kind, id, created],
        ),
    }
}

fn insert_event(connection: &Connection, event: &EventLine<'_>) -> rusqlite::Result<()> {
    let mut row = connection.prepare_cached(
        "INSERT INTO events(id, parent_id, session_id, agent_id, sequence, depth, type, \
         timestamp, turn, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    row.execute(params![
        event.id,
        event.parent_id,
        event.session_id,
        event.agent_id,
        event.sequence,
        event.depth,
        event.kind,
        event.timestamp,
        event.turn,
        event.payload.get()
    ])?;
    let number = connection.last_insert_rowid();
    super::writer::insert_refs(connection, number, event.payload.get())?;
    if let Some(text) = &event.text {
        let found = "INSERT INTO events_fts(rowid, text) VALUES (?1, ?2)";
        connection.prepare_cached(found)?.execute(params![number, text])?;
    }
    Ok(())
}

fn event_line<'a>(row: &Row<'_>) -> rusqlite::Result<Line<'a>> {
    Ok(Line::Event(EventLine {
        id: row.get("id")?,
        parent_id: row.get("parent_id")?,
        session_id: row.get("session_id")?,
        agent_id: row.get("agent_id")?,
        sequence: row.get("sequence")?,
        depth: row.get("depth")?,
        kind: row.get("type")?,
        timestamp: row.get("timestamp")?,
        turn: row.get("turn")?,
        payload: Cow::Owned(super::reader::payload(row.get("payload")?)?),
        text: row.get("text")?,
    }))
}

fn each<'a>(
    connection: &Connection,
    sql: &str,
    out: &mut impl Write,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<Line<'a>>,
) -> Result<(), PortError> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        line(out, &read(row)?)?;
    }
    Ok(())
}

fn line(out: &mut impl Write, line: &Line<'_>) -> Result<(), PortError> {
    serde_json::to_writer(&mut *out, line).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}
