//! Selects the blocked accesses in a prompt's turn.

use std::collections::VecDeque;

use crate::wire::Blocked;

/// Maximum accesses that are kept until the session is known; past that the oldest is dropped.
const MOST_EARLY: usize = 1000;

/// Accesses arrive on another way than the beginning of the turn, and may come before it.
#[derive(Default)]
pub(super) struct Blocks {
    /// The session of the turn, once it has begun.
    session: Option<String>,
    early: VecDeque<Blocked<'static>>,
}

impl Blocks {
    pub(super) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Sets the session of the turn; returns earlier accesses in it.
    pub(super) fn began(&mut self, session: &str) -> Vec<Blocked<'static>> {
        if self.session.is_some() {
            return Vec::new();
        }
        self.session = Some(session.to_owned());
        let early = std::mem::take(&mut self.early);
        early.into_iter().filter(|access| access.session.session_id == session).collect()
    }

    /// Adds an access of the agent; returns it if it is known to be in the turn.
    pub(super) fn blocked(&mut self, access: Blocked<'static>) -> Option<Blocked<'static>> {
        if let Some(session) = &self.session {
            return (access.session.session_id == *session).then_some(access);
        }
        if self.early.len() >= MOST_EARLY {
            self.early.pop_front();
        }
        self.early.push_back(access);
        None
    }

    /// Another turn of the agent has ended, and this one waited for it.
    pub(super) fn ended(&mut self, session: &str) {
        self.early.retain(|access| access.session.session_id != session);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    fn access(id: &str, session: &str) -> Blocked<'static> {
        let access = json!({
            "id": id, "agent_id": "ui", "session_id": session, "status": "denied",
            "action": "read", "path": "a",
        });
        Blocked::deserialize(access).unwrap()
    }

    #[test]
    fn what_was_blocked_before_the_session_is_known_is_named() {
        let mut blocks = Blocks::default();
        for (id, session) in [("b1", "s"), ("b2", "other"), ("b3", "s")] {
            assert!(blocks.blocked(access(id, session)).is_none());
        }
        let early: Vec<_> = blocks.began("s").into_iter().map(|access| access.id).collect();
        assert_eq!(early, ["b1", "b3"]);
        assert!(blocks.began("s").is_empty());
        assert!(blocks.blocked(access("b4", "s")).is_some());
        assert!(blocks.blocked(access("b5", "other")).is_none());
    }

    #[test]
    fn what_a_turn_before_it_was_refused_is_not_named() {
        let mut blocks = Blocks::default();
        blocks.blocked(access("b1", "s"));
        blocks.ended("s");
        blocks.blocked(access("b2", "s"));
        let early: Vec<_> = blocks.began("s").into_iter().map(|access| access.id).collect();
        assert_eq!(early, ["b2"]);
    }

    #[test]
    fn so_many_are_kept() {
        let mut blocks = Blocks::default();
        for number in 0..=MOST_EARLY {
            blocks.blocked(access(&number.to_string(), "s"));
        }
        let early = blocks.began("s");
        assert_eq!((early.len(), &*early[0].id), (MOST_EARLY, "1"));
    }
}
