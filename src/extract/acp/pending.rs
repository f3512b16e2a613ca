//! Requests that wait for their answers, by id and direction.
//!
//! Ids are compared as the JSON they came as, since `1` and `1.0` need not be the same to their
//! sender; only strings may come back escaped another way. Knows no session's state.

use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::value::RawValue;

use super::models::Choice;
use super::sessions::LONGEST_ID;
use crate::extract::json;
use crate::model::{Lines, SessionId};

/// Requests of one direction that may wait at once; when full, the oldest is given up: a prompt
/// among them is told to have ended, and a read is not on the map.
const MOST_PENDING: usize = 1024;

/// What the client asked of its agent.
#[derive(Debug)]
pub(crate) enum OfClient {
    New { cwd: Option<PathBuf> },
    Load(SessionId),
    Resume(SessionId),
    Close(SessionId),
    Prompt(SessionId),
    Choose(SessionId, Choice),
}

/// What the agent asked of its client.
#[derive(Debug)]
pub(crate) enum OfAgent {
    /// `call` is what it is told to run as.
    Terminal {
        session: SessionId,
        cwd: PathBuf,
        call: Arc<str>,
    },
    Output {
        session: SessionId,
        terminal: String,
    },
    /// What is in the file.
    Read {
        session: SessionId,
        path: PathBuf,
        lines: Lines,
    },
    /// That the file is written.
    Write {
        session: SessionId,
        path: PathBuf,
    },
    /// That the terminal ends.
    Exit {
        session: SessionId,
        terminal: String,
    },
}

/// Any request of the agent.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    /// None if it names none.
    pub(crate) session: Option<SessionId>,
    /// Its id as the JSON it came as, if it asks for a permission.
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
    /// Notes a request; returns those that are given up for it: one with the same id, or the
    /// oldest.
    pub(crate) fn ask(&mut self, id: &RawValue, request: T) -> Option<T> {
        // Nobody but the sender is harmed by an id that is not remembered.
        let Some(key) = key(id) else { return Some(request) };
        let same = self.0.shift_remove(&key);
        let oldest = (self.0.len() >= MOST_PENDING).then(|| self.0.shift_remove_index(0));
        self.0.insert(key, request);
        same.or_else(|| oldest.flatten().map(|(_, request)| request))
    }

    /// Forgets those that `stays` does not want.
    pub(crate) fn retain(&mut self, stays: impl Fn(&T) -> bool) {
        self.0.retain(|_, request| stays(request));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn answered(&mut self, id: &RawValue) -> Option<T> {
        self.0.shift_remove(&key(id)?)
    }

    /// Takes those that `which` wants, in the order in which they were asked.
    pub(crate) fn take(&mut self, which: impl Fn(&T) -> bool) -> Vec<T> {
        self.0.extract_if(.., |_, request| which(request)).map(|(_, request)| request).collect()
    }

    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = T> {
        std::mem::take(&mut self.0).into_values()
    }
}

fn key(id: &RawValue) -> Option<Box<str>> {
    let raw = id.get();
    let key = match json::text(raw) {
        Some(text) => format!("\"{text}"),
        None => raw.to_owned(),
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
    fn ids_are_told_apart_by_their_text() {
        let mut pending = Pending::default();
        for (n, raw) in ["1", "1.0", r#""1""#, "null", r#""é""#].into_iter().enumerate() {
            assert!(pending.ask(&id(raw), n).is_none());
        }
        assert_eq!(pending.answered(&id("1.0")), Some(1));
        assert_eq!(pending.answered(&id(r#""\u0031""#)), Some(2));
        assert_eq!(pending.answered(&id(r#""\u00e9""#)), Some(4));
        assert_eq!(pending.answered(&id("1.0")), None);
        assert_eq!(pending.ask(&id("1"), 9), Some(0));
    }

    #[test]
    fn the_oldest_is_given_up() {
        let mut pending = Pending::default();
        for n in 0..MOST_PENDING {
            assert!(pending.ask(&id(&n.to_string()), n).is_none());
        }
        assert_eq!(pending.ask(&id("-1"), 0), Some(0));
        assert_eq!(pending.take_all().count(), MOST_PENDING);
        assert_eq!(pending.ask(&id(&format!("\"{}\"", "x".repeat(5000))), 7), Some(7));
    }
}
