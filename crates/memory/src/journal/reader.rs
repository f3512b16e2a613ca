//! Reads a journal: events, sessions, contents, search. Each call is one short read, so that no
//! reader keeps the write-ahead log from being emptied.

use std::path::{Path, PathBuf};

use rusqlite::types::{Type, Value as Sql};
use rusqlite::{Connection, InterruptHandle, Row, params, params_from_iter};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use super::database::open_to_read;
use super::ids::least;
use super::{OpenError, Pin};
use crate::line::or_default;

/// Maximum events of one answer.
pub(super) const MOST: usize = 10_000;

/// Maximum steps of a lineage.
const LONGEST_LINEAGE: usize = 1_000_000;

pub(super) const COLUMNS: &str = "id, parent_id, session_id, agent_id, sequence, depth, type, timestamp, \
                       turn, payload";

/// A journal that is open for reading. Not shared by threads; each call blocks for a read of the
/// disk.
#[derive(Debug)]
pub struct Store {
    pub(super) connection: Connection,
    path: PathBuf,
}

/// An event as it is in the journal.
#[derive(Clone, Serialize, Debug)]
pub struct Event {
    /// UUID of version 7 in lower case, which grows with each event.
    pub id: String,
    /// The id of the event before it on its branch. None where it begins one, and outside sessions.
    pub parent_id: Option<String>,
    /// The session's id in the journal; None for events of no session.
    pub session_id: Option<String>,
    /// The agent's id; None for events of the team.
    pub agent_id: Option<String>,
    /// The number of the event in its session, from 0; None where `session_id` is.
    pub sequence: Option<u64>,
    /// The parent's depth + 1, from 0; None where `session_id` is.
    pub depth: Option<u64>,
    /// The column `type`, such as `tool.call`. Later versions may have others than [`super::EventType`].
    #[serde(rename = "type")]
    pub kind: String,
    /// Milliseconds since 1970; never less than that of an earlier event.
    pub timestamp: u64,
    /// The turn's number on the wire, from 0 for each session; None if it belongs to no turn.
    pub turn: Option<u64>,
    /// A JSON object on one line; null if the column has no JSON.
    pub payload: Box<RawValue>,
}

impl Event {
    /// The payload, as far as it can be read.
    pub fn read<T: DeserializeOwned + Default>(&self) -> T {
        or_default(self.payload.get())
    }
}

/// A row of the table `sessions`: the branch of events that ends at its head.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub struct Session {
    /// The session's id in the journal, a UUID of version 7.
    pub id: String,
    /// The agent's id in the team.
    pub agent_id: String,
    /// The session's id on the wire; None for a fork that no agent runs.
    pub wire_session_id: Option<String>,
    /// The id of its first event.
    pub root_event_id: String,
    /// The id of the last event on its branch; after a rewind, the event it was set back to.
    pub head_event_id: String,
    /// The session that it was forked from.
    pub forked_from: Option<String>,
    /// `open` or `ended`.
    pub status: String,
    /// The time of its first event, in milliseconds since 1970.
    pub created: u64,
    /// The time of its last event, in milliseconds since 1970.
    pub updated: u64,
}

/// A filter for events; all given conditions must fit.
#[derive(Clone, Default, Debug)]
pub struct Filter {
    /// Only events of this session, by its id in the journal.
    pub session_id: Option<String>,
    /// Only events of no session.
    pub outside: bool,
    /// Only events of this agent.
    pub agent_id: Option<String>,
    /// Whole types, or the part before the dot: `file` for `file.write`. Empty: all.
    pub types: Vec<String>,
    /// Only events of the turn with this number, in any session unless one is given.
    pub turn: Option<u64>,
    /// Only events with this `path` or `from` in the payload, behind its `tree`, if it has one. Undo and redo always fit.
    pub path: Option<String>,
    /// Only events after the one with this id.
    pub after: Option<String>,
    /// Only events before the one with this id.
    pub before: Option<String>,
    /// The last events that fit, and not the first.
    pub last: bool,
    /// Milliseconds since 1970.
    pub since: Option<u64>,
    /// Maximum events; 0: as many as one answer has.
    pub limit: usize,
    /// Bytes of the payloads after which a page ends; 0: no limit.
    pub bytes: usize,
}

/// Events, oldest first.
#[derive(Clone, Default, Serialize, Debug)]
pub struct Page {
    /// The events that fit, oldest first also with [`Filter::last`].
    pub events: Vec<Event>,
    /// If there are more: the last event's id, the `after` of the next page; with [`Filter::last`] the
    /// first event's, its `before`.
    pub next: Option<String>,
}

/// An event that a search found.
#[derive(Clone, Serialize, Debug)]
pub struct Found {
    /// The event itself, with its whole payload.
    pub event: Event,
    /// The words in their context, each between `[` and `]`.
    pub snippet: String,
    /// Less is better.
    pub rank: f64,
}

impl Store {
    /// Opens a journal. Fails if the file is missing, another program's, or from a newer version.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { connection: open_to_read(path)?, path: path.to_owned() })
    }

    /// One page of the events that fit. [`Page::next`] leads to the next one.
    pub fn events(&self, filter: &Filter) -> Result<Page, OpenError> {
        let (condition, mut values) = filter.condition();
        let limit = if filter.limit == 0 { MOST } else { filter.limit.min(MOST) };
        values.push(Sql::Integer(i64::try_from(limit + 1).unwrap_or(i64::MAX)));
        // By an index, all events of an agent would be read and sorted to find its last ones.
        let (source, order) =
            if filter.last { ("events NOT INDEXED", "DESC") } else { ("events", "ASC") };
        let sql = format!(
            "SELECT {COLUMNS} FROM {source} WHERE {condition} ORDER BY number {order} LIMIT ?{}",
            values.len()
        );
        let most_bytes = if filter.bytes == 0 { usize::MAX } else { filter.bytes };
        let mut page = Page::default();
        let mut bytes = 0;
        let read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params_from_iter(values))?;
            while let Some(row) = rows.next()? {
                if page.events.len() == limit || bytes >= most_bytes {
                    page.next = page.events.last().map(|event| event.id.clone());
                    break;
                }
                let event = event(row)?;
                bytes += event.payload.get().len();
                page.events.push(event);
            }
            Ok(())
        };
        read().map_err(|error| self.failed(error))?;
        if filter.last {
            page.events.reverse();
        }
        Ok(page)
    }

    /// The event with this id.
    pub fn event(&self, id: &str) -> Result<Option<Event>, OpenError> {
        let sql = format!("SELECT {COLUMNS} FROM events WHERE id = ?1");
        Ok(self.all(&sql, [id], event)?.pop())
    }

    /// The events whose ids begin with `prefix`, at most `limit`.
    pub fn events_like(&self, prefix: &str, limit: usize) -> Result<Vec<Event>, OpenError> {
        let sql =
            format!("SELECT {COLUMNS} FROM events WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3");
        let behind = format!("{prefix}\u{10ffff}");
        self.all(&sql, params![prefix, behind, limit], event)
    }

    /// The id of the last event.
    pub fn last_event(&self) -> Result<Option<String>, OpenError> {
        let sql = "SELECT id FROM events ORDER BY number DESC LIMIT 1";
        Ok(self.all(sql, [], |row| row.get(0))?.pop())
    }

    /// The event and all before it on its branch, oldest first.
    pub fn lineage(&self, id: &str) -> Result<Vec<Event>, OpenError> {
        let sql = format!(
            "WITH RECURSIVE line(id, step) AS (SELECT ?1, 0 UNION ALL \
             SELECT e.parent_id, step + 1 FROM events e JOIN line ON e.id = line.id \
             WHERE e.parent_id IS NOT NULL AND step < {LONGEST_LINEAGE}) \
             SELECT {COLUMNS} FROM events WHERE id IN (SELECT id FROM line) ORDER BY number"
        );
        self.all(&sql, [id], event)
    }

    /// All sessions, oldest first.
    pub fn sessions(&self) -> Result<Vec<Session>, OpenError> {
        self.all("SELECT * FROM sessions ORDER BY id", [], session)
    }

    /// The forked sessions, each with its branch point.
    pub fn forks(&self) -> Result<Vec<(String, Session)>, OpenError> {
        let sql = "SELECT s.*, e.parent_id FROM sessions s JOIN events e ON e.id = s.root_event_id \
                   WHERE s.forked_from IS NOT NULL AND e.parent_id IS NOT NULL ORDER BY s.id";
        self.all(sql, [], |row| Ok((row.get("parent_id")?, session(row)?)))
    }

    /// The pins, oldest first.
    pub fn pins(&self) -> Result<Vec<Pin>, OpenError> {
        self.all("SELECT kind, id, created FROM pins ORDER BY created, id", [], |row| {
            Ok(Pin { kind: row.get(0)?, id: row.get(1)?, created: row.get(2)? })
        })
    }

    /// Ends the reads of this store from another thread.
    pub fn interrupt_handle(&self) -> InterruptHandle {
        self.connection.get_interrupt_handle()
    }

    /// The value of a key of the table `meta`: `team`, `created`, `workspace`, …
    pub fn meta(&self, key: &str) -> Result<Option<String>, OpenError> {
        Ok(self.all("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))?.pop())
    }

    pub(super) fn all<T>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, OpenError> {
        let all = || -> rusqlite::Result<Vec<T>> {
            self.connection.prepare_cached(sql)?.query_map(params, read)?.collect()
        };
        all().map_err(|error| self.failed(error))
    }

    /// Calls `read` for each row.
    pub(super) fn each(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), OpenError> {
        let each = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query(params)?;
            while let Some(row) = rows.next()? {
                read(row)?;
            }
            Ok(())
        };
        each().map_err(|error| self.failed(error))
    }

    pub(super) fn failed(&self, error: rusqlite::Error) -> OpenError {
        OpenError::Sqlite { path: self.path.clone(), error }
    }
}

impl Filter {
    fn condition(&self) -> (String, Vec<Sql>) {
        let (mut conditions, mut values) = (vec!["1".to_owned()], Vec::new());
        let mut and = |condition: &str, value: Sql| {
            values.push(value);
            conditions.push(condition.replace('?', &format!("?{}", values.len())));
        };
        if let Some(session) = &self.session_id {
            and("session_id = ?", session.clone().into());
        }
        if let Some(agent) = &self.agent_id {
            and("agent_id = ?", agent.clone().into());
        }
        if let Some(turn) = self.turn {
            and("turn = ?", i64::try_from(turn).unwrap_or(i64::MAX).into());
        }
        if let Some(path) = &self.path {
            // A payload that is not JSON is no error, and never fits.
            and(
                "CASE WHEN type IN ('undo', 'redo') THEN 1 WHEN json_valid(payload) THEN \
                 ? IN (coalesce(payload ->> 'tree' || '/', '') || (payload ->> 'path'), \
                 coalesce(payload ->> 'tree' || '/', '') || (payload ->> 'from')) ELSE 0 END",
                path.clone().into(),
            );
        }
        if let Some(after) = &self.after {
            and("id > ?", after.clone().into());
        }
        if let Some(before) = &self.before {
            // The numbers rise with the ids, and a range of them is read from its end.
            and(
                "number <= (SELECT number FROM events WHERE id < ? ORDER BY id DESC LIMIT 1)",
                before.clone().into(),
            );
        }
        if let Some(since) = self.since {
            and("id >= ?", least(since).into());
        }
        if self.outside {
            conditions.push("session_id IS NULL".to_owned());
        }
        let mut types = Vec::new();
        for name in &self.types {
            values.push(name.clone().into());
            let place = values.len();
            types.push(format!("type = ?{place}"));
            if !name.contains('.') {
                values.push(format!("{name}/").into());
                types.push(format!("(type > ?{place} || '.' AND type < ?{})", values.len()));
            }
        }
        if !types.is_empty() {
            conditions.push(format!("({})", types.join(" OR ")));
        }
        (conditions.join(" AND "), values)
    }
}

/// The payload of an event. One from another program may be no JSON, or have several lines.
pub(super) fn payload(text: String) -> rusqlite::Result<Box<RawValue>> {
    let raw = match RawValue::from_string(text) {
        Ok(raw) if !raw.get().contains('\n') => return Ok(raw),
        Ok(raw) => {
            serde_json::from_str::<serde_json::Value>(raw.get()).and_then(|it| to_raw_value(&it))
        }
        Err(_) => to_raw_value(&()),
    };
    raw.map_err(|error| rusqlite::Error::FromSqlConversionFailure(9, Type::Text, Box::new(error)))
}

pub(super) fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        id: row.get(0)?,
        parent_id: row.get(1)?,
        session_id: row.get(2)?,
        agent_id: row.get(3)?,
        sequence: row.get(4)?,
        depth: row.get(5)?,
        kind: row.get(6)?,
        timestamp: row.get(7)?,
        turn: row.get(8)?,
        payload: payload(row.get(9)?)?,
    })
}

pub(super) fn session(row: &Row<'_>) -> rusqlite::Result<Session> {
    Ok(Session {
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
}
