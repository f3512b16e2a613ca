//! The running turns that the keeper knows: it records their changes of files before it handles
//! their ends.

use std::collections::HashMap;

use super::disk::Stamp;
use crate::model::{AgentId, SessionId};

/// The sessions of each agent that have a turn.
#[derive(Clone, Default)]
pub(super) struct Turns {
    running: HashMap<AgentId, Vec<SessionId>>,
    /// Turns that the keeper does not know yet, with their starts in nanoseconds since 1970.
    announced: Vec<(AgentId, SessionId, i128)>,
}

impl Turns {
    /// A turn begins; it writes nothing before this call.
    pub(super) fn announce(&mut self, agent: AgentId, session: SessionId, at: i128) {
        self.announced.push((agent, session, at));
    }

    /// The writes before an announced turn are recorded: it counts as running.
    pub(super) fn add(&mut self, agent: AgentId, session: SessionId) {
        let announced =
            self.announced.iter().position(|(of, it, _)| (of, it) == (&agent, &session));
        if let Some(at) = announced {
            self.announced.remove(at);
        }
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
        self.announced.retain(|(of, ..)| of != agent);
    }

    /// The session of an agent's turn that changed a file, if only one turn may have.
    pub(super) fn session(&self, agent: &AgentId, stamp: Option<Stamp>) -> Option<SessionId> {
        let running = self.running.get(agent).into_iter().flatten();
        let announced = self.announced.iter().filter(|(of, _, at)| {
            // A write from before its start is not its own.
            of == agent && stamp.is_some_and(|stamp| stamp.is_after(*at))
        });
        let mut sessions = running.chain(announced.map(|(_, session, _)| session));
        let first = sessions.next()?;
        sessions.all(|other| other == first).then(|| first.clone())
    }
}
