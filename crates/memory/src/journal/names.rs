//! Finds the session or the event that a name means, or says what the name could mean.

use rusqlite::params;

use super::OpenError;
use super::reader::{Event, Session, Store, session};

/// Sessions and events that an error lists.
const MOST_LISTED: usize = 5;

/// Bytes of a name in an error.
const LONGEST_SHOWN: usize = 200;

/// Why a name means no session or event.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// No session has the name.
    #[error("there is no session `{name}`{}", known(.last))]
    NoSession {
        /// The name as it was given, up to 200 bytes of it.
        name: String,
        /// The last sessions, each as `ID (AGENT/SESSION)`, at most 5; only of the agent, if one was named.
        last: Vec<String>,
    },
    /// Several sessions have the name, or ids that begin with it.
    #[error("`{name}` may mean several sessions: {}", .them.join(", "))]
    SeveralSessions {
        /// The name as it was given, up to 200 bytes of it.
        name: String,
        /// The first 5 of them, each as `ID (AGENT/SESSION)`, and the number of the others.
        them: Vec<String>,
    },
    /// No event has the id, or one that begins with it.
    #[error("there is no event `{0}`")]
    NoEvent(String),
    /// Several events have ids that begin with the name.
    #[error("several events begin with `{name}`: {}", .them.join(", "))]
    SeveralEvents {
        /// The name as it was given, up to 200 bytes of it.
        name: String,
        /// The first 5 of them, each as `ID (TYPE)`, and the number of the others.
        them: Vec<String>,
    },
    /// The event is of another session or of none, and not on the branch up to this session's head.
    #[error("the event {event} is not on the branch of the session {session}{}", elsewhere(.own.as_ref()))]
    Elsewhere {
        /// The event's id.
        event: String,
        /// The id of the session that was named, in the journal.
        session: String,
        /// The id of the session that has the event; None if the event is of no session.
        own: Option<String>,
    },
    /// The journal can't be read.
    #[error(transparent)]
    Open(#[from] OpenError),
}

fn elsewhere(own: Option<&String>) -> String {
    match own {
        Some(own) => format!(": it is one of the session {own}"),
        None => ": it is of no session".to_owned(),
    }
}

fn known(last: &[String]) -> String {
    if last.is_empty() {
        return "; the journal has none".to_owned();
    }
    format!("; the last ones are: {}", last.join(", "))
}

impl Store {
    /// The session that a name means: the journal's id, the beginning of one, `AGENT/SESSION` of the
    /// wire, or a session of the wire alone. With `agent` only sessions of that agent.
    pub fn session_named(&self, name: &str, agent: Option<&str>) -> Result<Session, NameError> {
        let mut found = self.sessions_named(name)?;
        found.retain(|session| agent.is_none_or(|agent| session.agent_id == agent));
        match <[Session; 1]>::try_from(found) {
            Ok([session]) => Ok(session),
            Err(found) if found.is_empty() => {
                Err(NameError::NoSession { name: shown(name), last: self.last_sessions(agent)? })
            }
            Err(found) => {
                let them = listed(found.iter().map(describe), found.len());
                Err(NameError::SeveralSessions { name: shown(name), them })
            }
        }
    }

    /// The sessions that a name may mean. An exact name comes before the beginning of an id; of
    /// sessions with the same name on the wire the last is meant.
    pub fn sessions_named(&self, name: &str) -> Result<Vec<Session>, OpenError> {
        let exact = self.all("SELECT * FROM sessions WHERE id = ?1", [name], session)?;
        if !exact.is_empty() || name.is_empty() {
            return Ok(exact);
        }
        if let Some((agent, wire)) = name.split_once('/') {
            let sql = "SELECT * FROM sessions WHERE agent_id = ?1 AND wire_session_id = ?2 \
                       ORDER BY id DESC LIMIT 1";
            let of_wire = self.all(sql, [agent, wire], session)?;
            if !of_wire.is_empty() {
                return Ok(of_wire);
            }
        }
        let sql = "SELECT * FROM sessions WHERE id IN (SELECT max(id) FROM sessions \
                   WHERE wire_session_id = ?1 GROUP BY agent_id) ORDER BY id LIMIT 20";
        let of_wire = self.all(sql, [name], session)?;
        if !of_wire.is_empty() {
            return Ok(of_wire);
        }
        let behind = format!("{name}\u{10ffff}");
        let sql = "SELECT * FROM sessions WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 20";
        self.all(sql, [name, &behind], session)
    }

    /// The event with the id `name`, or the only one whose id begins with it.
    pub fn event_named(&self, name: &str) -> Result<Event, NameError> {
        let found = if name.is_empty() { Vec::new() } else { self.events_like(name, 20)? };
        match <[Event; 1]>::try_from(found) {
            Ok([event]) => Ok(event),
            Err(found) if found.is_empty() => Err(NameError::NoEvent(shown(name))),
            Err(found) => {
                let events = found.iter().map(|event| format!("{} ({})", event.id, event.kind));
                let them = listed(events, found.len());
                Err(NameError::SeveralEvents { name: shown(name), them })
            }
        }
    }

    fn last_sessions(&self, agent: Option<&str>) -> Result<Vec<String>, OpenError> {
        let sql = "SELECT * FROM sessions WHERE ?1 IS NULL OR agent_id = ?1 \
                   ORDER BY id DESC LIMIT ?2";
        let last = self.all(sql, params![agent, MOST_LISTED], session)?;
        Ok(last.iter().map(describe).collect())
    }
}

/// A session as `ID (AGENT/SESSION)`.
fn describe(session: &Session) -> String {
    let Session { id, agent_id, wire_session_id, .. } = session;
    match wire_session_id {
        Some(wire) => format!("{id} ({agent_id}/{wire})"),
        None => format!("{id} ({agent_id})"),
    }
}

fn listed(them: impl Iterator<Item = String>, count: usize) -> Vec<String> {
    let more = (count > MOST_LISTED).then(|| format!("and {} more", count - MOST_LISTED));
    them.take(MOST_LISTED).chain(more).collect()
}

fn shown(name: &str) -> String {
    name[..name.floor_char_boundary(LONGEST_SHOWN)].to_owned()
}
