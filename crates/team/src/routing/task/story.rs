//! The refusals of each turn, kept until whoever prompted asks for them.

use std::collections::{HashMap, HashSet};

use super::{BoardEntry, Task};
use crate::model::{BlockedAccess, BlockedId, BlockedStatus, SessionKey};

/// Accesses of a turn that are remembered; beyond this, the oldest that did not stop its work is forgotten.
const MOST: usize = 1000;
/// Turns that are remembered; beyond this all are forgotten.
const MOST_TURNS: usize = 1024;

/// The accesses of turns, by their session.
#[derive(Default, Debug)]
pub(super) struct Stories {
    running: HashMap<SessionKey, Story>,
    /// The last turn that ended.
    ended: HashMap<SessionKey, Story>,
}

#[derive(Default, Debug)]
struct Story {
    ids: Vec<BlockedId>,
    /// The first access that stopped its work and that has no entry, or none any more.
    unlisted: Option<Box<BlockedAccess>>,
}

impl Stories {
    /// Remembers a refusal that has no entry, if it stopped the work of its turn.
    pub(super) fn add_unlisted(&mut self, access: BlockedAccess) {
        if access.stops_work() {
            self.of(&access.key.clone()).unlisted.get_or_insert_with(|| Box::new(access));
        }
    }

    /// Remembers an access of a running turn that loses its entry.
    fn add_forgotten(&mut self, access: BlockedAccess) {
        if self.running.get(&access.key).is_some_and(|story| story.ids.contains(&access.id)) {
            self.add_unlisted(access);
        }
    }

    fn of(&mut self, key: &SessionKey) -> &mut Story {
        if !self.running.contains_key(key) && self.running.len() >= MOST_TURNS {
            self.running.clear();
        }
        self.running.entry(key.clone()).or_default()
    }

    pub(super) fn turn_over(&mut self, key: &SessionKey) {
        if self.ended.len() >= MOST_TURNS {
            self.ended.clear();
        }
        let story = self.running.remove(key).unwrap_or_default();
        self.ended.insert(key.clone(), story);
    }
}

impl Task {
    pub(super) fn put_on_board(&mut self, entry: BoardEntry) {
        if let Some(forgotten) = self.board.insert(entry) {
            self.stories.add_forgotten(forgotten);
        }
    }

    /// Adds an access to the story of its turn.
    pub(super) fn add_to_story(&mut self, key: &SessionKey, id: &BlockedId) {
        let Self { stories, board, .. } = self;
        let ids = &mut stories.of(key).ids;
        if ids.contains(id) {
            return;
        }
        if ids.len() >= MOST {
            let stops_work = |id| board.get(id).is_some_and(|entry| entry.access.stops_work());
            let Some(oldest) = ids.iter().position(|id| !stops_work(id)) else { return };
            ids.remove(oldest);
        }
        ids.push(id.clone());
    }

    /// Takes the refusals of the last turn of a session, as it is now, and not opened to a later try.
    pub(super) fn take_story(&mut self, key: &SessionKey) -> Vec<BlockedAccess> {
        let Story { ids, unlisted } = self.stories.ended.remove(key).unwrap_or_default();
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
        refused.extend(unlisted.map(|access| *access));
        refused.reverse();
        refused
    }
}
