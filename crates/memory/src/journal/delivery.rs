//! Reads a journal in the order in which it was written, for those who deliver it: events with their
//! numbers, and where a reader stands that was told an event before.

use rusqlite::{OptionalExtension as _, params};

use super::reader::{COLUMNS, Event, MOST, event};
use super::{OpenError, Store};

/// An event with its number.
#[derive(Clone, Debug)]
pub struct Numbered {
    /// The column `number` of the table `events`; it grows, and a removal leaves gaps.
    pub number: u64,
    /// The event, without its number.
    pub event: Event,
}

/// A part of a journal to read.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// Only events with higher numbers.
    pub after: u64,
    /// Only events with numbers up to this one.
    pub until: Option<u64>,
    /// Only events of this session, by its id in the journal.
    pub session: Option<&'a str>,
    /// Maximum events; less than 1 counts as 1, and more than 10,000 as 10,000.
    pub limit: usize,
    /// The delivery ends after so many bytes of payloads.
    pub bytes: usize,
}

impl Store {
    /// Events in the order of their numbers, and whether there are more.
    pub fn stretch(&self, stretch: Stretch<'_>) -> Result<(Vec<Numbered>, bool), OpenError> {
        let limit = stretch.limit.clamp(1, MOST);
        let of_session = if stretch.session.is_some() { "session_id = ?4" } else { "?4 IS NULL" };
        let sql = format!(
            "SELECT {COLUMNS}, number FROM events WHERE number > ?1 AND number <= ?2 \
             AND {of_session} ORDER BY number LIMIT ?3"
        );
        let until =
            stretch.until.map_or(i64::MAX, |until| i64::try_from(until).unwrap_or(i64::MAX));
        let after = i64::try_from(stretch.after).unwrap_or(i64::MAX);
        let (mut events, mut bytes, mut more) = (Vec::new(), 0, false);
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params![after, until, limit + 1, stretch.session])?;
            while let Some(row) = rows.next()? {
                if events.len() == limit || bytes >= stretch.bytes {
                    more = true;
                    break;
                }
                let event = event(row)?;
                bytes += event.payload.get().len();
                events.push(Numbered { number: row.get("number")?, event });
            }
            Ok(())
        };
        read().map_err(|error| self.failed(error))?;
        Ok((events, more))
    }

    /// Number and id of the last event.
    pub fn end(&self) -> Result<Option<(u64, String)>, OpenError> {
        let sql = "SELECT number, id FROM events ORDER BY number DESC LIMIT 1";
        Ok(self.all(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?.pop())
    }

    /// The id of the event with this number.
    pub fn id_of(&self, number: u64) -> Result<Option<String>, OpenError> {
        let sql = "SELECT id FROM events WHERE number = ?1";
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        Ok(self.all(sql, [number], |row| row.get(0))?.pop())
    }

    /// The number of the last event whose id is not greater; 0 without one.
    pub fn number_of(&self, id: &str) -> Result<u64, OpenError> {
        let sql = "SELECT number FROM events WHERE id <= ?1 ORDER BY id DESC LIMIT 1";
        let found = self.connection.query_row(sql, [id], |row| row.get(0)).optional();
        Ok(found.map_err(|error| self.failed(error))?.unwrap_or(0))
    }

    /// The agent of a session, and its id on the wire.
    pub fn wire_session(&self, id: &str) -> Result<Option<(String, Option<String>)>, OpenError> {
        let sql = "SELECT agent_id, wire_session_id FROM sessions WHERE id = ?1";
        Ok(self.all(sql, [id], |row| Ok((row.get(0)?, row.get(1)?)))?.pop())
    }
}
