//! The refusals of each turn, kept until whoever prompted asks for them.

use std::collections::{HashMap, HashSet};

use super::Task;
use crate::model::{BlockedAccess, BlockedId, BlockedStatus, SessionKey};

/// Accesses of a turn that are remembered; later ones are not told with its result.
const MOST: usize = 1000;
/// Turns that are remembered; beyond this all are forgotten.
const MOST_TURNS: usize = 1024;

/// The accesses of turns, by their session.
#[derive(Default, Debug)]
pub(super) struct Stories {
    running: HashMap<SessionKey, Vec<BlockedId>>,
    /// The accesses of the last turn that ended.
    ended: HashMap<SessionKey, Vec<BlockedId>>,
}

impl Stories {
    pub(super) fn add(&mut self, key: &SessionKey, id: &BlockedId) {
        if !self.running.contains_key(key) && self.running.len() >= MOST_TURNS {
            self.running.clear();
        }
        let ids = self.running.entry(key.clone()).or_default();
        if ids.len() < MOST && !ids.contains(id) {
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
    /// Takes the refusals of the last turn of a session, as it is now, and not opened to a later try.
    pub(super) fn take_story(&mut self, key: &SessionKey) -> Vec<BlockedAccess> {
        let ids = self.stories.ended.remove(key).unwrap_or_default();
        let accesses = ids.iter().filter_map(|id| self.board.get(id)).map(|entry| &entry.access);
        let mut opened = HashSet::new();
        let refused = accesses.rev().filter(|access| {
            let of = (&access.path, access.action);
            if matches!(access.status, BlockedStatus::Allowed | BlockedStatus::Answered) {
                opened.insert(of);
            }
            access.is_refused() && (access.sweep.is_some() || !opened.contains(&of))
        });
        let mut refused: Vec<_> = refused.cloned().collect();
        refused.reverse();
        refused
    }
}
