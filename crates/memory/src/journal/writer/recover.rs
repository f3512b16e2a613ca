//! Completes the remains of a killed run: messages without an end, and open sessions.

use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::json;

use super::insert::State;
use crate::journal::Settings;
use crate::journal::contents::OUTSIDE;
use crate::journal::database::note;
use crate::journal::event::{EventType, NewEvent, Place};
use crate::journal::fold::Row;
use crate::journal::ids::Ids;
use crate::journal::sessions::STARTED_AFTER;
use crate::model::{AgentId, SessionId, SessionKey, now_ms};

impl State {
    /// The state for a file that is opened again in the same run.
    pub(super) fn reopened(self) -> Self {
        let mut state = Self::default();
        (state.earlier, state.continued) = (self.earlier, self.continued);
        state
    }

    /// Whether a session is of this run, or goes on in it.
    pub(super) fn goes_on(&self, session: &str) -> bool {
        let is_earlier = self.earlier.as_deref().is_some_and(|earlier| session <= earlier);
        !is_earlier || self.continued.contains(session)
    }

    /// Refreshes the state if another connection wrote since, as `pin`, `purge` and `gc` do.
    pub(super) fn catch_up(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let sql = "PRAGMA data_version";
        let version = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        if self.seen == Some(version) {
            return Ok(());
        }
        self.forget();
        self.ids = last_id(connection)?.as_deref().map(Ids::after).unwrap_or_default();
        self.seen = Some(version);
        Ok(())
    }

    /// Completes the remains of a killed run, and stores the team and its quotas.
    pub(super) fn recover(
        &mut self,
        connection: &mut Connection,
        settings: &Settings,
    ) -> rusqlite::Result<()> {
        let known = "SELECT value FROM meta WHERE key = 'team'";
        let known: Option<String> = connection.query_row(known, [], |row| row.get(0)).optional()?;
        if known.is_none() {
            let set = "INSERT INTO meta(key, value) VALUES ('team', ?1), ('created', ?2)";
            connection.execute(set, params![settings.team, now_ms().to_string()])?;
        }
        if let Some(quotas) = settings.quotas {
            quotas.note(connection)?;
            note(connection, OUTSIDE, settings.keep.outside.as_str())?;
        }
        let mut rows: Vec<_> = drafts(connection)?;
        rows.extend(open_sessions(connection)?);
        if !rows.is_empty() {
            self.write(connection, None, &rows, &[])?;
            connection.execute("DELETE FROM drafts", [])?;
        }
        self.begin_run(connection)
    }

    /// Sessions that there are now go on only if they are opened again.
    fn begin_run(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if self.earlier.is_none() {
            let last = last_id(connection)?.unwrap_or_default();
            let set = "INSERT INTO meta(key, value) VALUES (?1, ?2) \
                       ON CONFLICT(key) DO UPDATE SET value = ?2";
            connection.execute(set, params![STARTED_AFTER, last])?;
            self.earlier = Some(last);
        }
        Ok(())
    }
}

fn last_id(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let last = "SELECT max(id) FROM (SELECT max(id) AS id FROM events \
                UNION ALL SELECT max(id) FROM sessions)";
    connection.query_row(last, [], |row| row.get(0))
}

/// The incomplete messages, with their text so far.
fn drafts(connection: &Connection) -> rusqlite::Result<Vec<Row>> {
    let sql = "SELECT draft, agent_id, wire_session_id, type, turn, started, \
               group_concat(text, '' ORDER BY piece) FROM drafts GROUP BY draft ORDER BY draft";
    let mut statement = connection.prepare(sql)?;
    let read = |row: &rusqlite::Row<'_>| {
        let agent = AgentId::new(row.get::<_, String>(1)?);
        let key = SessionKey::new(agent, SessionId::new(row.get::<_, String>(2)?));
        let kind: String = row.get(3)?;
        let kind = EventType::ALL.iter().find(|known| known.as_str() == kind);
        let (turn, started, text): (u64, u64, String) = (row.get(4)?, row.get(5)?, row.get(6)?);
        let payload = json!({
            "bytes": text.len(),
            "text": &text,
            "started": started,
            "incomplete": true,
        });
        let kind = kind.copied().unwrap_or(EventType::MESSAGE_ASSISTANT);
        let mut event = NewEvent::new(Place::Wire(key), kind, &payload).in_turn(turn);
        event = event.found_by(text);
        event.draft = Some(row.get(0)?);
        Ok(Row::Event(event))
    };
    statement.query_map([], read)?.collect()
}

fn open_sessions(connection: &Connection) -> rusqlite::Result<Vec<Row>> {
    let mut statement = connection.prepare("SELECT id FROM sessions WHERE status = 'open'")?;
    let read = |row: &rusqlite::Row<'_>| {
        let payload = json!({ "reason": "interrupted" });
        let place = Place::Session(row.get(0)?);
        Ok(Row::Event(NewEvent::new(place, EventType::SESSION_END, &payload)))
    };
    statement.query_map([], read)?.collect()
}
