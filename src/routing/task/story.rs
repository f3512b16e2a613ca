//! What was refused in each turn, until whoever prompted asks for it.

use std::collections::HashMap;

use super::Task;
use crate::model::{BlockedAccess, BlockedId, SessionKey};

/// Accesses of a turn that are remembered; later ones are not told with its result.
const MOST: usize = 1000;
/// Turns that are remembered; beyond this all are forgotten.
const MOST_TURNS: usize = 1024;

/// The accesses of turns, by their session.
#[derive(Default, Debug)]
pub(super) struct Stories {
    running: HashMap<SessionKey, Vec<BlockedId>>,
    /// Of the last turn that ended.
    ended: HashMap<SessionKey, Vec<BlockedId>>,
}

impl Stories {
    pub(super) fn add(&mut self, key: &SessionKey, id: &BlockedId) {
        if !self.running.contains_key(key) && self.running.len() >= MOST_TURNS {
            self.running.clear();
        }
        let ids = self.running.entry(key.clone()).or_default();
        if ids.len() < MOST {
            ids.push(id.clone());
        }
    }

    pub(super) fn turn_over(&mut self, key: &SessionKey) {
        if self.ended.len() >= MOST_TURNS {
            self.ended.clear();
        }
        let ids = self.running.remove(key).unwrap_or_default();
        self.ended.insert(key.clone(), ids);
    }
}

impl Task {
    /// Takes what was refused in the last turn of a session, as it is now.
    pub(super) fn take_story(&mut self, key: &SessionKey) -> Vec<BlockedAccess> {
        let ids = self.stories.ended.remove(key).unwrap_or_default();
        let accesses = ids.iter().filter_map(|id| self.board.get(id)).map(|entry| &entry.access);
        accesses.filter(|access| access.is_refused()).cloned().collect()
    }
}
