//! Inserts events in one transaction: their ids, sequences, depths and parents, and the heads of
//! their sessions. A failed transaction leaves no trace in the file or in memory.

use std::collections::{HashMap, HashSet};

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Transaction, params};

use super::Reply;
use super::texts::{insert_draft, insert_refs, with_what_is_stored};
use crate::journal::AppendError;
use crate::journal::contents::insert_content;
use crate::journal::event::{Committed, EventType, Head, NewEvent, Place};
use crate::journal::fold::Row;
use crate::journal::ids::Ids;
use crate::model::{AgentId, SessionId, SessionKey};

/// Sessions that are remembered; beyond this all are read again.
const MOST_SESSIONS: usize = 10_000;

/// The state that the next event of each session needs.
#[derive(Default)]
pub(super) struct State {
    pub(super) ids: Ids,
    /// Changes with each commit of another connection.
    pub(super) seen: Option<i64>,
    wire: HashMap<SessionKey, String>,
    heads: HashMap<String, SessionHead>,
    /// Sessions whose row must be written.
    changed: HashSet<String>,
    /// The last id of earlier runs; None: they are being completed.
    pub(super) earlier: Option<String>,
    /// Their sessions that go on in this run.
    pub(super) continued: HashSet<String>,
}

struct SessionHead {
    agent: String,
    head: String,
    depth: u64,
    next: u64,
    is_open: bool,
    updated: u64,
}

/// Why an event was not inserted.
pub(super) enum Failed {
    Sqlite(rusqlite::Error),
    /// The named session or event is not there.
    Unknown(String),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

type Appended = Result<Vec<Committed>, AppendError>;

impl State {
    pub(super) fn write(
        &mut self,
        connection: &mut Connection,
        gap: Option<&NewEvent>,
        rows: &[Row],
        appends: &[(Vec<NewEvent>, Reply<Vec<Committed>>)],
    ) -> rusqlite::Result<Vec<Appended>> {
        let behavior = rusqlite::TransactionBehavior::Immediate;
        let transaction = connection.transaction_with_behavior(behavior)?;
        self.catch_up(&transaction)?;
        let events = rows.iter().map(|row| match row {
            Row::Event(event) => Ok(event),
            Row::Draft(draft) => Err(draft),
        });
        let mut insert = Insert::new(&transaction, self)?;
        for row in gap.map(Ok).into_iter().chain(events) {
            match row.map(|event| insert.event(event)) {
                Ok(Err(Failed::Sqlite(error))) => return Err(error),
                // Only an offered event can name something that is not there.
                Ok(Err(Failed::Unknown(what))) => tracing::warn!("the journal has no {what}"),
                Ok(Ok(_)) => {}
                Err(draft) => insert_draft(&transaction, draft)?,
            }
        }
        drop(insert);
        let mut appended = Vec::with_capacity(appends.len());
        for (events, _) in appends {
            appended.push(self.append(&transaction, events)?);
        }
        self.write_heads(&transaction)?;
        transaction.commit()?;
        if self.heads.len() > MOST_SESSIONS {
            self.heads.clear();
            self.wire.clear();
        }
        Ok(appended)
    }

    /// Inserts all of the events or none of them.
    fn append(
        &mut self,
        transaction: &Transaction<'_>,
        events: &[NewEvent],
    ) -> rusqlite::Result<Appended> {
        self.write_heads(transaction)?;
        transaction.execute_batch("SAVEPOINT append")?;
        let mut insert = Insert::new(transaction, self)?;
        let inserted: Result<Vec<_>, _> = events.iter().map(|event| insert.event(event)).collect();
        drop(insert);
        match inserted {
            Ok(committed) => {
                self.write_heads(transaction)?;
                transaction.execute_batch("RELEASE append")?;
                Ok(Ok(committed))
            }
            Err(Failed::Unknown(what)) => {
                transaction.execute_batch("ROLLBACK TO append; RELEASE append")?;
                // The remembered state has events that were rolled back.
                self.forget();
                Ok(Err(AppendError::Unknown(what)))
            }
            Err(Failed::Sqlite(error)) => Err(error),
        }
    }

    /// Forgets the remembered sessions; they are read again when needed.
    pub(super) fn forget(&mut self) {
        self.wire.clear();
        self.heads.clear();
        self.changed.clear();
    }

    fn write_heads(&mut self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let mut update = transaction.prepare_cached(
            "UPDATE sessions SET head_event_id = ?2, status = ?3, updated = ?4 WHERE id = ?1",
        )?;
        for id in self.changed.drain() {
            if let Some(session) = self.heads.get(&id) {
                let status = if session.is_open { "open" } else { "ended" };
                update.execute(params![id, session.head, status, session.updated])?;
            }
        }
        Ok(())
    }
}

/// The statements of one transaction.
struct Insert<'a> {
    transaction: &'a Transaction<'a>,
    state: &'a mut State,
    event: CachedStatement<'a>,
    found: CachedStatement<'a>,
}

/// An event's place, as columns of the table.
#[derive(Default)]
struct Row1<'a> {
    parent: Option<String>,
    session: Option<String>,
    agent: Option<&'a str>,
    sequence: Option<u64>,
    depth: Option<u64>,
}

impl<'a> Insert<'a> {
    fn new(transaction: &'a Transaction<'a>, state: &'a mut State) -> rusqlite::Result<Self> {
        let event = transaction.prepare_cached(
            "INSERT INTO events(id, parent_id, session_id, agent_id, sequence, depth, type, \
             timestamp, turn, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?;
        let found =
            transaction.prepare_cached("INSERT INTO events_fts(rowid, text) VALUES (?1, ?2)")?;
        Ok(Self { transaction, state, event, found })
    }

    fn event(&mut self, event: &NewEvent) -> Result<Committed, Failed> {
        for blob in &event.contents {
            insert_content(self.transaction, blob)?;
        }
        let (id, at) = self.state.ids.next(event.timestamp_ms);
        let owned;
        let mut row = Row1::default();
        match &event.place {
            Place::Team => {}
            Place::Agent(agent) => row.agent = Some(agent.as_str()),
            Place::Wire(key) | Place::NewWire(key) | Place::EarlierWire(key) => {
                row.agent = Some(key.agent.as_str());
                let session = self.session_of_wire(key, &event.place, &id, at)?;
                self.advance(session, event, &id, at, &mut row)?;
            }
            Place::Session(session) => {
                self.load(session)?;
                owned = self.state.heads.get(session).map(|head| head.agent.clone());
                row.agent = owned.as_deref();
                self.advance(session.clone(), event, &id, at, &mut row)?;
            }
            Place::Fork { parent, agent, wire_session_id } => {
                row.agent = Some(agent.as_str());
                self.fork(parent, agent, wire_session_id.as_deref(), &id, at, &mut row)?;
            }
        }
        let payload = with_what_is_stored(self.transaction, event)?;
        self.event.execute(params![
            id,
            row.parent,
            row.session,
            row.agent,
            row.sequence,
            row.depth,
            event.kind.as_str(),
            at,
            event.turn,
            payload,
        ])?;
        let number = self.transaction.last_insert_rowid();
        insert_refs(self.transaction, number, &event.payload)?;
        if let Some(text) = &event.text {
            self.found.execute(params![number, text])?;
        }
        if let Some(draft) = event.draft {
            let mut delete =
                self.transaction.prepare_cached("DELETE FROM drafts WHERE draft = ?1")?;
            delete.execute([draft])?;
        }
        Ok(Committed { id, session_id: row.session, sequence: row.sequence })
    }

    /// Takes the next place in a session.
    fn advance(
        &mut self,
        session: String,
        event: &NewEvent,
        id: &str,
        at: u64,
        row: &mut Row1<'_>,
    ) -> Result<(), Failed> {
        let new_depth = match &event.head {
            Head::Advance => None,
            Head::Set(other) => {
                let sql = "SELECT depth FROM events WHERE id = ?1";
                let mut statement = self.transaction.prepare_cached(sql)?;
                let depth: Option<Option<u64>> =
                    statement.query_row([other], |row| row.get(0)).optional()?;
                let unknown = || Failed::Unknown(format!("event {other} in a session"));
                Some(depth.flatten().ok_or_else(unknown)?)
            }
        };
        let unknown = || Failed::Unknown(format!("session {session}"));
        let head = self.state.heads.get_mut(&session).ok_or_else(unknown)?;
        row.sequence = Some(head.next);
        // A session's first event has no parent.
        let is_first = head.next == 0;
        row.parent = (!is_first).then(|| head.head.clone());
        row.depth = Some(if is_first { 0 } else { head.depth + 1 });
        head.next += 1;
        if let (Head::Set(other), Some(depth)) = (&event.head, new_depth) {
            head.depth = depth;
            other.clone_into(&mut head.head);
        } else {
            head.depth = row.depth.unwrap_or_default();
            id.clone_into(&mut head.head);
        }
        head.updated = at;
        match event.kind {
            EventType::SESSION_START => head.is_open = true,
            EventType::SESSION_END => head.is_open = false,
            _ => {}
        }
        if !self.state.changed.contains(&session) {
            self.state.changed.insert(session.clone());
        }
        row.session = Some(session);
        Ok(())
    }

    /// The journal's session of a session of the wire; a new one if it has none that goes on.
    fn session_of_wire(
        &mut self,
        key: &SessionKey,
        place: &Place,
        id: &str,
        at: u64,
    ) -> Result<String, Failed> {
        let is_new = matches!(place, Place::NewWire(_));
        if let Some(known) = self.state.wire.get(key).filter(|_| !is_new) {
            return Ok(known.clone());
        }
        let mut statement = self.transaction.prepare_cached(
            "SELECT id FROM sessions WHERE agent_id = ?1 AND wire_session_id = ?2 \
             ORDER BY id DESC LIMIT 1",
        )?;
        let known = params![key.agent.as_str(), key.session.as_str()];
        let known: Option<String> = statement.query_row(known, |row| row.get(0)).optional()?;
        // Ids are the agent's: another run may have the same for another session.
        let goes_on = matches!(place, Place::EarlierWire(_));
        let known = known.filter(|known| !is_new && (goes_on || self.state.goes_on(known)));
        let session = match known {
            Some(session) => {
                self.load(&session)?;
                self.state.continued.insert(session.clone());
                session
            }
            None => self.new_session(&key.agent, Some(key.session.as_str()), None, id, at)?,
        };
        self.state.wire.insert(key.clone(), session.clone());
        Ok(session)
    }

    fn new_session(
        &mut self,
        agent: &AgentId,
        wire: Option<&str>,
        forked_from: Option<&str>,
        root: &str,
        at: u64,
    ) -> Result<String, Failed> {
        let (session, _) = self.state.ids.next(at);
        let mut insert = self.transaction.prepare_cached(
            "INSERT INTO sessions(id, agent_id, wire_session_id, root_event_id, head_event_id, \
             forked_from, status, created, updated) VALUES (?1, ?2, ?3, ?4, ?4, ?5, 'open', ?6, ?6)",
        )?;
        insert.execute(params![session, agent.as_str(), wire, root, forked_from, at])?;
        let head = SessionHead {
            agent: agent.as_str().to_owned(),
            head: String::new(),
            depth: 0,
            next: 0,
            is_open: true,
            updated: at,
        };
        self.state.heads.insert(session.clone(), head);
        Ok(session)
    }

    /// Begins a session whose first event follows `parent`.
    fn fork(
        &mut self,
        parent: &str,
        agent: &AgentId,
        wire: Option<&str>,
        id: &str,
        at: u64,
        row: &mut Row1<'_>,
    ) -> Result<(), Failed> {
        let mut branch = self
            .transaction
            .prepare_cached("SELECT session_id, depth FROM events WHERE id = ?1")?;
        let branch: Option<(Option<String>, Option<u64>)> =
            branch.query_row([parent], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((Some(from), Some(depth))) = branch else {
            return Err(Failed::Unknown(format!("event {parent} in a session")));
        };
        let session = self.new_session(agent, wire, Some(&from), id, at)?;
        if let Some(wire) = wire {
            let key = SessionKey::new(agent.clone(), SessionId::new(wire));
            self.state.wire.insert(key, session.clone());
        }
        if let Some(head) = self.state.heads.get_mut(&session) {
            (head.depth, head.next) = (depth + 1, 1);
            id.clone_into(&mut head.head);
        }
        row.parent = Some(parent.to_owned());
        (row.sequence, row.depth) = (Some(0), Some(depth + 1));
        self.state.changed.insert(session.clone());
        row.session = Some(session);
        Ok(())
    }

    /// Reads the state that the next event of a session needs.
    fn load(&mut self, session: &str) -> Result<(), Failed> {
        if self.state.heads.contains_key(session) {
            return Ok(());
        }
        let mut statement = self.transaction.prepare_cached(
            "SELECT s.agent_id, s.head_event_id, coalesce(e.depth, 0), s.status = 'open', \
             s.updated, (SELECT coalesce(max(sequence) + 1, 0) FROM events WHERE session_id = s.id) \
             FROM sessions s LEFT JOIN events e ON e.id = s.head_event_id WHERE s.id = ?1",
        )?;
        let read = |row: &rusqlite::Row<'_>| {
            Ok(SessionHead {
                agent: row.get(0)?,
                head: row.get(1)?,
                depth: row.get(2)?,
                is_open: row.get(3)?,
                updated: row.get(4)?,
                next: row.get(5)?,
            })
        };
        let head = statement.query_row([session], read).optional()?;
        let head = head.ok_or_else(|| Failed::Unknown(format!("session {session}")))?;
        self.state.heads.insert(session.to_owned(), head);
        Ok(())
    }
}
