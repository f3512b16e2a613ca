//! Requests that wait for their responses, by id and direction.
//!
//! Ids are compared by what they say: a string may come back with other escapes, and `1` as `1.0`. Does not
//! know the state of sessions.

use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::value::RawValue;

use super::models::Choice;
use super::sessions::LONGEST_ID;
use crate::extract::json;
use crate::line;
use crate::model::{Lines, SessionId};

/// Requests of one direction that may wait at once. When full, the oldest is given up: a prompt among
/// them ends its turn, and a read is not on the map.
const MOST_PENDING: usize = 1024;

/// A request of the client whose response matters.
#[derive(Debug)]
pub(crate) enum ClientRequest {
    New { cwd: Option<PathBuf>, is_fork: bool },
    Load(SessionId),
    Resume(SessionId),
    Close(SessionId),
    Prompt(SessionId),
    Choose(SessionId, Choice),
    Mode(SessionId, String),
}

/// A request of the agent whose response matters.
#[derive(Debug)]
pub(crate) enum AgentRequest {
    /// `call` names it in `ActivityKind::Runs`.
    Terminal {
        session: SessionId,
        cwd: PathBuf,
        call: Arc<str>,
    },
    Output {
        session: SessionId,
        terminal: String,
    },
    /// Its response has the content of the file.
    Read {
        session: SessionId,
        path: PathBuf,
        lines: Lines,
    },
    /// Its response says that the file is written.
    Write {
        session: SessionId,
        path: PathBuf,
    },
    /// Its response says that the terminal ended.
    Exit {
        session: SessionId,
        terminal: String,
    },
}

/// Any request of the agent.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    /// None if the request names no session.
    pub(crate) session: Option<SessionId>,
    /// Its id as raw JSON, if it is a permission request.
    pub(crate) permission: Option<Box<RawValue>>,
}

#[derive(Debug)]
pub(crate) struct Pending<T>(IndexMap<Box<str>, T>);

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self(IndexMap::new())
    }
}

impl<T> Pending<T> {
    /// Adds a request; returns the one it displaces: one with the same id, or the oldest.
    pub(crate) fn insert(&mut self, id: &RawValue, request: T) -> Option<T> {
        // An id that is too long harms only its sender.
        let Some(key) = key(id) else { return Some(request) };
        let same = self.0.shift_remove(&key);
        let oldest = (self.0.len() >= MOST_PENDING).then(|| self.0.shift_remove_index(0));
        self.0.insert(key, request);
        same.or_else(|| oldest.flatten().map(|(_, request)| request))
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.0.retain(|_, request| keep(request));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn remove(&mut self, id: &RawValue) -> Option<T> {
        self.0.shift_remove(&key(id)?)
    }

    /// Removes the requests that match, and returns them in the order of their insertion.
    pub(crate) fn take(&mut self, matches: impl Fn(&T) -> bool) -> Vec<T> {
        self.0.extract_if(.., |_, request| matches(request)).map(|(_, request)| request).collect()
    }

    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = T> {
        std::mem::take(&mut self.0).into_values()
    }
}

fn key(id: &RawValue) -> Option<Box<str>> {
    let raw = id.get();
    let key = match json::text(raw) {
        Some(text) => format!("\"{text}"),
        None => line::integer(raw).map_or_else(|| raw.to_owned(), |number| number.to_string()),
    };
    (key.len() <= LONGEST_ID).then(|| key.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn id(raw: &str) -> Box<RawValue> {
        RawValue::from_string(raw.to_owned()).unwrap()
    }

    #[test]
    fn ids_are_compared_as_text() {
        let mut pending = Pending::default();
        for (n, raw) in ["1", "1.5", r#""1""#, "null", r#""é""#].into_iter().enumerate() {
            assert!(pending.insert(&id(raw), n).is_none());
        }
        assert_eq!(pending.remove(&id("1.5")), Some(1));
        assert_eq!(pending.remove(&id(r#""\u0031""#)), Some(2));
        assert_eq!(pending.remove(&id(r#""\u00e9""#)), Some(4));
        assert_eq!(pending.remove(&id("1.5")), None);
        assert_eq!(pending.remove(&id("1.0")), Some(0));
        assert_eq!(pending.insert(&id("1.0"), 9), None);
        assert_eq!(pending.insert(&id("1"), 8), Some(9));
    }

    #[test]
    fn the_oldest_is_given_up() {
        let mut pending = Pending::default();
        for n in 0..MOST_PENDING {
            assert!(pending.insert(&id(&n.to_string()), n).is_none());
        }
        assert_eq!(pending.insert(&id("-1"), 0), Some(0));
        assert_eq!(pending.take_all().count(), MOST_PENDING);
        assert_eq!(pending.insert(&id(&format!("\"{}\"", "x".repeat(5000))), 7), Some(7));
    }
}
