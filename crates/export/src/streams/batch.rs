//! Batches for one delivery: lines of JSON, in the order of the journal. Reads them from there, and says
//! what is missing in between.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::cursor::{Cursor, identity};
use crate::journal::{Event, Numbered, OpenError, Store, Stretch};
use crate::model::{StreamScope, now_ms};

/// Events that are read at once, and bytes of their payloads.
pub(super) const PAGE: usize = 256;
const PAGE_BYTES: usize = 1 << 20;

/// Sessions of which is remembered whether a scope has them.
const MOST_SESSIONS: usize = 1_000;

/// One line for a receiver, without its line feed.
#[derive(Clone, Debug)]
pub(super) struct StreamLine {
    /// The same for the same event, or the same said twice.
    pub(super) id: String,
    /// One of the journal.
    pub(super) is_event: bool,
    pub(super) json: String,
}

impl StreamLine {
    /// When what it says happened.
    pub(super) fn timestamp_ms(&self) -> u64 {
        serde_json::from_str::<LineFields<'_>>(&self.json).map_or(0, |line| line.timestamp)
    }
}

/// Lines, and where the stream is once they are delivered.
#[derive(Clone, Default, Debug)]
pub(super) struct Batch {
    pub(super) lines: Vec<StreamLine>,
    /// Events that are missing.
    pub(super) lost: u64,
    pub(super) after: Cursor,
    /// There are more.
    pub(super) more: bool,
}

/// The fields of a line, read from it again.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct LineFields<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    pub(super) number: Option<u64>,
    pub(super) session_id: Option<String>,
    pub(super) agent_id: Option<String>,
    pub(super) timestamp: u64,
    pub(super) turn: Option<u64>,
    #[serde(borrow)]
    pub(super) payload: Option<&'a RawValue>,
    pub(super) origin: Option<FieldsOrigin>,
}

#[derive(Deserialize)]
pub(super) struct FieldsOrigin {
    pub(super) replay_id: String,
}

/// The journal that a stream reads, with the names of stream and team.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) team: Arc<str>,
    pub(super) stream: Arc<str>,
    pub(super) journal: Arc<Path>,
}

#[derive(Serialize)]
struct EventLine<'a> {
    team: &'a str,
    number: u64,
    id: &'a str,
    parent_id: Option<&'a str>,
    session_id: Option<&'a str>,
    agent_id: Option<&'a str>,
    sequence: Option<u64>,
    depth: Option<u64>,
    #[serde(rename = "type")]
    kind: &'a str,
    timestamp: u64,
    turn: Option<u64>,
    payload: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<ReplayOrigin<'a>>,
}

/// Where an event comes from that is not new.
#[derive(Clone, Copy, Serialize)]
struct ReplayOrigin<'a> {
    replay_id: &'a str,
}

#[derive(Serialize)]
struct LostLine<'a> {
    team: &'a str,
    stream: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    from_number: Option<u64>,
    to_number: Option<u64>,
    events: Option<u64>,
    reason: &'a str,
    timestamp: u64,
}

#[derive(Serialize)]
struct CanaryLine<'a> {
    team: &'a str,
    stream: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    number: u64,
    timestamp: u64,
}

impl Reading {
    /// The next events behind a cursor that are in a scope, up to `limit`.
    pub(super) fn next(
        &self,
        at: &Cursor,
        scope: &mut ScopeFilter,
        limit: usize,
    ) -> Result<Batch, OpenError> {
        let store = Store::open(&self.journal)?;
        let mut batch = Batch::default();
        let (after, mut next) = self.resume(&store, at, &mut batch)?;
        let stretch = Stretch { after, until: None, session: None, limit, bytes: PAGE_BYTES };
        let (events, more) = store.stretch(stretch)?;
        batch.more = more;
        for Numbered { number, event } in events {
            if number > next {
                batch.lost += number - next;
                let why = "the journal's quotas removed them before they were delivered";
                batch.lines.push(self.lost(Some((next, number - 1)), why));
            }
            next = number + 1;
            if scope.has(&store, &event)? {
                batch.lines.push(self.line(number, &event, None));
            }
            (batch.after.number, batch.after.id) = (number, event.id);
        }
        Ok(batch)
    }

    /// Events of a session with numbers in a range, once more.
    pub(super) fn again(
        &self,
        replay_id: &str,
        session: &str,
        (after, until): (u64, u64),
        limit: usize,
    ) -> Result<Batch, OpenError> {
        let store = Store::open(&self.journal)?;
        let (until, session) = (Some(until), Some(session));
        let (events, more) =
            store.stretch(Stretch { after, until, session, limit, bytes: PAGE_BYTES })?;
        let mut batch = Batch { more, ..Batch::default() };
        for Numbered { number, event } in events {
            batch.lines.push(self.line(number, &event, Some(ReplayOrigin { replay_id })));
            batch.after.number = number;
        }
        Ok(batch)
    }

    /// Returns the number behind which events are read, and that of the event that comes next if none is
    /// missing.
    fn resume(
        &self,
        store: &Store,
        at: &Cursor,
        batch: &mut Batch,
    ) -> Result<(u64, u64), OpenError> {
        batch.after = at.clone();
        let journal = identity(store)?;
        if journal != at.journal {
            let why = "the journal was replaced by another one";
            batch.lines.push(self.lost(None, why));
            batch.after = Cursor { journal, ..Cursor::default() };
            return Ok((0, 1));
        }
        match store.id_of(at.number)? {
            Some(id) if id == at.id => Ok((at.number, at.number + 1)),
            // The numbers of a journal's removed end come again.
            Some(_) => {
                let number = store.number_of(&at.id)?;
                Ok((number, number + 1))
            }
            None => Ok((store.number_of(&at.id)?, at.number + 1)),
        }
    }

    fn lost(&self, gap: Option<(u64, u64)>, reason: &str) -> StreamLine {
        let (team, stream, kind) = (&*self.team, &*self.stream, "lost");
        let (from_number, to_number) = gap.unzip();
        let events = gap.map(|(from, to)| to - from + 1);
        let timestamp = now_ms();
        let id = match gap {
            Some((from, to)) => format!("lost-{from}-{to}"),
            None => format!("lost-{timestamp}"),
        };
        let lost =
            LostLine { team, stream, kind, from_number, to_number, events, reason, timestamp };
        StreamLine::new(id, &lost)
    }

    /// Says that all events up to a number were delivered.
    pub(super) fn canary(&self, number: u64) -> StreamLine {
        let (team, stream, kind, timestamp) = (&*self.team, &*self.stream, "canary", now_ms());
        let line = CanaryLine { team, stream, kind, number, timestamp };
        StreamLine::new(format!("canary-{timestamp}"), &line)
    }

    fn line(&self, number: u64, event: &Event, origin: Option<ReplayOrigin<'_>>) -> StreamLine {
        let line = EventLine {
            team: &self.team,
            number,
            id: &event.id,
            parent_id: event.parent_id.as_deref(),
            session_id: event.session_id.as_deref(),
            agent_id: event.agent_id.as_deref(),
            sequence: event.sequence,
            depth: event.depth,
            kind: &event.kind,
            timestamp: event.timestamp,
            turn: event.turn,
            payload: &event.payload,
            origin,
        };
        let id = match origin {
            Some(ReplayOrigin { replay_id }) => format!("{replay_id}/{}", event.id),
            None => event.id.clone(),
        };
        StreamLine { is_event: true, ..StreamLine::new(id, &line) }
    }
}

impl StreamLine {
    pub(super) fn fields(&self) -> LineFields<'_> {
        serde_json::from_str(&self.json).unwrap_or_default()
    }

    fn new(id: String, line: &impl Serialize) -> Self {
        // Fails only for a map with keys that are not text.
        let json = serde_json::to_string(line).unwrap_or_else(|_| "{}".to_owned());
        Self { id, is_event: false, json }
    }
}

/// A scope with the sessions that it was asked for.
#[derive(Default, Debug)]
pub(super) struct ScopeFilter {
    scope: StreamScope,
    sessions: HashMap<String, bool>,
}

impl ScopeFilter {
    pub(super) fn new(scope: StreamScope) -> Self {
        Self { scope, sessions: HashMap::new() }
    }

    fn has(&mut self, store: &Store, event: &Event) -> Result<bool, OpenError> {
        let StreamScope { agents, types, sessions } = &self.scope;
        let family = event.kind.split_once('.').map(|(family, _)| family);
        let of_type = |name: &String| *name == event.kind || Some(name.as_str()) == family;
        if !(types.is_empty() || types.iter().any(of_type)) {
            return Ok(false);
        }
        let is_agent = |agent: &String| event.agent_id.as_ref() == Some(agent);
        if !(agents.is_empty() || agents.iter().any(is_agent)) {
            return Ok(false);
        }
        if sessions.is_empty() {
            return Ok(true);
        }
        let Some(id) = &event.session_id else { return Ok(false) };
        if let Some(known) = self.sessions.get(id) {
            return Ok(*known);
        }
        let wire = store.wire_session(id)?;
        let is_named = |name: &String| {
            name == id
                || wire.as_ref().is_some_and(|(agent, wire)| {
                    let of_wire =
                        |wire: &String| name == wire || *name == format!("{agent}/{wire}");
                    wire.as_ref().is_some_and(of_wire)
                })
        };
        let is_in = sessions.iter().any(is_named);
        if self.sessions.len() >= MOST_SESSIONS {
            self.sessions.clear();
        }
        self.sessions.insert(id.clone(), is_in);
        Ok(is_in)
    }
}
