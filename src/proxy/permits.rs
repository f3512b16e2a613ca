use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;

use crate::model::SessionId;
use crate::zone::Permit;

/// Permits of requests that passed the gate, waiting for the client host to use them: it opens
/// what was judged, and nothing else. A request without one is refused.
///
/// Keyed by the request's id as the JSON it came as; an agent that reuses an id gets its permits in
/// the order in which it asked. Holds at most [`Permits::CAPACITY`]; past that the oldest id is
/// forgotten, and its request refused.
///
/// The other way, the client host says here which sessions are an attached editor's: it is the
/// editor who is asked for permissions then.
#[derive(Debug, Default)]
pub struct Permits {
    waiting: Mutex<IndexMap<Box<str>, VecDeque<Vec<Permit>>>>,
    of_editors: Mutex<HashSet<SessionId>>,
}

impl Permits {
    /// Ids whose permits may wait at once.
    pub const CAPACITY: usize = 16_384;

    /// Leaves the permits of one request, in the order of its accesses.
    pub fn leave(&self, id: &str, permits: Vec<Permit>) {
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= Self::CAPACITY && !waiting.contains_key(id) {
            waiting.shift_remove_index(0);
        }
        waiting.entry(id.into()).or_default().push_back(permits);
    }

    /// Takes the permits of one request; None if it was never judged.
    pub fn take(&self, id: &str) -> Option<Vec<Permit>> {
        let mut waiting = lock(&self.waiting);
        let queue = waiting.get_mut(id)?;
        let permits = queue.pop_front();
        if queue.is_empty() {
            waiting.shift_remove(id);
        }
        permits
    }

    /// Says whether an editor is asked for the permissions of a session.
    pub fn set_editor(&self, session: &SessionId, is_editors: bool) {
        let mut of_editors = lock(&self.of_editors);
        if is_editors {
            of_editors.insert(session.clone());
        } else {
            of_editors.remove(session);
        }
    }

    /// Whether an editor is asked for the permissions of a session.
    pub fn is_editors(&self, session: &SessionId) -> bool {
        lock(&self.of_editors).contains(session)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
