//! The conflicts of one agent: what its relay, its doorkeeper and its client host ask.

use std::sync::Arc;

use super::{Conflicts, KnownContent, LONGEST_SESSION, WriteGate};
use crate::model::{AgentId, SessionId, SessionKey};

use super::write_gate::Way;

/// The conflicts of an agent; cheap to clone.
#[derive(Clone, Debug)]
pub struct AgentConflicts {
    conflicts: Conflicts,
    agent: AgentId,
}

impl Conflicts {
    pub fn of_agent(&self, agent: AgentId) -> AgentConflicts {
        AgentConflicts { conflicts: self.clone(), agent }
    }
}

impl AgentConflicts {
    pub fn team(&self) -> &Conflicts {
        &self.conflicts
    }

    pub fn key(&self, session: &SessionId) -> SessionKey {
        let is_long = session.as_str().len() > LONGEST_SESSION;
        let session = if is_long { SessionId::new("") } else { session.clone() };
        SessionKey::new(self.agent.clone(), session)
    }

    /// Whether anything is locked.
    pub fn has_locks(&self) -> bool {
        self.conflicts.has_locks()
    }

    /// Whether another agent has a file locked.
    pub fn blocks(&self, path: &str) -> bool {
        self.conflicts.blocks(&self.agent, path)
    }

    /// A session reads a file now.
    pub fn read(&self, session: &SessionId, path: &Arc<str>) {
        self.conflicts.read(&self.key(session), path);
    }

    /// The client host has read a file for a session.
    pub fn was_read(&self, session: &SessionId, path: &Arc<str>, content: KnownContent<'_>) {
        self.conflicts.was_read(&self.key(session), path, content);
    }

    /// A program of the agent writes a file.
    pub fn writes(&self, session: &SessionId, path: &Arc<str>) {
        self.conflicts.writes(&self.key(session), path);
    }

    /// A session is about to write a file.
    pub fn begin_write(&self, session: &SessionId, path: &Arc<str>, way: Way) -> WriteGate {
        self.conflicts.begin_write(&self.key(session), path, way)
    }

    /// A turn ended: its locks end.
    pub fn turn_over(&self, session: &SessionId) {
        self.conflicts.turn_over(&self.agent, session);
    }
}
