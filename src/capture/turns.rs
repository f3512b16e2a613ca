//! The turns that run, as far as the keeper has heard of them: their changes of files are recorded
//! before it hears of their ends.

use std::collections::HashMap;

use super::disk::Stamp;
use crate::model::{AgentId, SessionId};

/// The sessions of each agent that have a turn.
#[derive(Clone, Default)]
pub(super) struct Turns {
    running: HashMap<AgentId, Vec<SessionId>>,
    /// One that begins, at a time in nanoseconds since 1970: it is not among the others yet.
    begins: Option<(AgentId, SessionId, i128)>,
}

impl Turns {
    /// The same, with a turn that begins.
    pub(super) fn beginning(&self, agent: AgentId, session: SessionId, at: i128) -> Self {
        Self { begins: Some((agent, session, at)), ..self.clone() }
    }

    pub(super) fn add(&mut self, agent: AgentId, session: SessionId) {
        self.running.entry(agent).or_default().push(session);
    }

    /// Returns whether no other prompt of the session runs.
    pub(super) fn remove(&mut self, agent: &AgentId, session: &SessionId) -> bool {
        let Some(running) = self.running.get_mut(agent) else { return true };
        if let Some(at) = running.iter().position(|it| it == session) {
            running.swap_remove(at);
        }
        !running.contains(session)
    }

    pub(super) fn forget(&mut self, agent: &AgentId) {
        self.running.remove(agent);
    }

    /// The session of the only turn of an agent in which a file may have been changed.
    pub(super) fn session(&self, agent: &AgentId, stamp: Option<Stamp>) -> Option<SessionId> {
        let running = self.running.get(agent).into_iter().flatten();
        let begins = self.begins.as_ref().filter(|(of, _, at)| {
            // What was written before it began is of no turn.
            of == agent && stamp.is_some_and(|stamp| stamp.is_after(*at))
        });
        let mut sessions = running.chain(begins.map(|(_, session, _)| session));
        sessions.next().filter(|_| sessions.next().is_none()).cloned()
    }
}
