//! Passes permits from the gate to the built-in client, and the list of editors' sessions back.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use indexmap::IndexMap;
use parking_lot::Mutex;

use super::Branches;
use crate::model::{AgentMemory, SessionId};
use crate::zone::Permit;

/// Permits of requests that passed the gate. The client host opens only what a permit names, and
/// refuses a request without one.
///
/// Keyed by the JSON of the request's id; an agent that reuses an id gets its permits in the order
/// of its requests. Holds at most [`Permits::CAPACITY`] ids; beyond this the oldest is dropped, and
/// its request refused.
///
/// Both ends also count here what waits for the agent. The client host records here which sessions belong to an attached editor, which then gets their
/// permission requests.
#[derive(Debug, Default)]
pub struct Permits {
    waiting: Mutex<IndexMap<Box<str>, VecDeque<Vec<Permit>>>>,
    editor_sessions: Mutex<HashSet<SessionId>>,
    branches: Arc<Branches>,
    memory: AgentMemory,
}

impl Permits {
    /// Ids whose permits may wait at once.
    pub const CAPACITY: usize = 16_384;

    /// Permits of a run of an agent whose sessions continue others; what waits for it counts to its memory.
    pub fn with(branches: Arc<Branches>, memory: AgentMemory) -> Self {
        Self { branches, memory, ..Self::default() }
    }

    /// The memory in which what waits for the agent is counted.
    pub fn memory(&self) -> &AgentMemory {
        &self.memory
    }

    /// The continuations of the agent's sessions.
    pub fn branches(&self) -> &Arc<Branches> {
        &self.branches
    }

    /// Stores the permits of one request, in the order of its accesses.
    pub fn leave(&self, id: &str, permits: Vec<Permit>) {
        let mut waiting = self.waiting.lock();
        if waiting.len() >= Self::CAPACITY && !waiting.contains_key(id) {
            waiting.shift_remove_index(0);
        }
        waiting.entry(id.into()).or_default().push_back(permits);
    }

    /// Takes the permits of one request; `None` if the gate never passed it.
    pub fn take(&self, id: &str) -> Option<Vec<Permit>> {
        let mut waiting = self.waiting.lock();
        let queue = waiting.get_mut(id)?;
        let permits = queue.pop_front();
        if queue.is_empty() {
            waiting.shift_remove(id);
        }
        permits
    }

    /// Sets whether an editor gets the permission requests of a session.
    pub fn set_editor(&self, session: &SessionId, is_editors: bool) {
        let mut editor_sessions = self.editor_sessions.lock();
        if is_editors {
            editor_sessions.insert(session.clone());
        } else {
            editor_sessions.remove(session);
        }
    }

    /// Whether an editor gets the permission requests of a session.
    pub fn is_editors(&self, session: &SessionId) -> bool {
        self.editor_sessions.lock().contains(session)
    }
}
