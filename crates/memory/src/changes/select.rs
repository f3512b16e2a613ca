//! Selects changes: those of a scope, and all later ones of the same files.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use super::event::{ChangeCause, FileChange, Parsed, parse, types};
use crate::journal::{Filter, OpenError, Store};

/// Maximum changes that are selected.
const MOST: usize = 200_000;

/// Events that are read at once.
const PAGE: usize = 1_000;

/// A choice of changes; all given fields must fit. Without any: the changes of all agents.
#[derive(Clone, Default, Debug)]
pub struct ChangeScope {
    /// The agent's id; None: any agent.
    pub agent_id: Option<String>,
    /// The journal's id.
    pub session_id: Option<String>,
    /// The turn's number on the wire; None: any turn.
    pub turn: Option<u64>,
    /// Only changes after the event with this id.
    pub after: Option<String>,
}

/// The changes of a scope, and those of the same files by others from the first of them on.
#[derive(Default, Debug)]
pub struct ChangeSet {
    /// Oldest first.
    pub all: Vec<FileChange>,
    /// For each of `all`, whether it is the scope's own.
    own: Vec<bool>,
    /// Number of the scope's changes that an undo took back. They are not its own any more.
    pub undone: usize,
    /// Events and parts of events that could not be read, or are from a later version.
    pub skipped: usize,
}

/// Why changes can't be selected.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// The journal can't be read.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// There are more than 200,000 changes, with those by others of the same files.
    #[error("there are more than {MOST} changes: name a session, a turn or an event to begin from")]
    TooMany,
}

impl ChangeSet {
    /// Changes in order, each with whether it is an own one.
    pub fn new(changes: impl IntoIterator<Item = (FileChange, bool)>) -> Self {
        let (all, own) = changes.into_iter().unzip();
        Self { all, own, undone: 0, skipped: 0 }
    }

    /// Whether the change at `index` in `all` is the scope's own. False past the end, and if it was undone.
    pub fn is_own(&self, index: usize) -> bool {
        self.own.get(index).copied().unwrap_or(false)
    }

    /// The scope's own changes, oldest first.
    pub fn own(&self) -> impl Iterator<Item = &FileChange> {
        self.all.iter().zip(&self.own).filter(|(_, own)| **own).map(|(change, _)| change)
    }

    /// Whether the scope has no changes.
    pub fn is_empty(&self) -> bool {
        !self.own.contains(&true)
    }

    fn disown(&mut self, undone: &HashSet<String>) {
        for (change, own) in self.all.iter().zip(&mut self.own) {
            if *own && undone.contains(&change.event_id) {
                *own = false;
                self.undone += 1;
            }
        }
    }

    fn add(&mut self, change: FileChange, own: bool) -> Result<(), SelectError> {
        if self.all.len() >= MOST {
            return Err(SelectError::TooMany);
        }
        self.all.push(change);
        self.own.push(own);
        Ok(())
    }
}

impl ChangeScope {
    /// Whether an agent of the scope made the change itself.
    pub fn has(&self, change: &FileChange) -> bool {
        let is = |wanted: &Option<String>, it: &Option<String>| wanted.is_none() || wanted == it;
        change.cause == ChangeCause::Agent
            && is(&self.agent_id, &change.agent_id)
            && is(&self.session_id, &change.session_id)
            && (self.turn.is_none() || self.turn == change.turn)
            && self.after.as_ref().is_none_or(|after| change.event_id > *after)
    }
}

/// Selects the changes of `scope`, and all later ones of the same files: by agents, by undo and
/// redo, from outside or unknown. Follows a file through its renames.
pub fn select(store: &Store, scope: &ChangeScope) -> Result<ChangeSet, SelectError> {
    let Some(first) = first(store, scope)? else { return Ok(ChangeSet::default()) };
    select_where(store, &first, &|change| scope.has(change))
}

/// Selects the changes that are `own`, from the event with the id `first` on, and all later ones of
/// the same files.
pub fn select_where(
    store: &Store,
    first: &str,
    is_own: &dyn Fn(&FileChange) -> bool,
) -> Result<ChangeSet, SelectError> {
    let mut changes = ChangeSet::default();
    let mut paths: HashSet<PathBuf> = HashSet::new();
    // No id between the shorter one and the first is skipped.
    let after = first.get(..first.len().saturating_sub(1)).map(str::to_owned);
    let filter = Filter { types: types(), after, ..Filter::default() };
    let mut undone: HashMap<String, Vec<String>> = HashMap::new();
    each(store, filter, &mut |id, parsed| {
        if id < first {
            return Ok(());
        }
        changes.skipped += parsed.skipped;
        if !parsed.undone.is_empty() {
            undone.insert(id.to_owned(), parsed.undone);
        }
        if let Some(undo) = parsed.redone {
            undone.remove(&undo);
        }
        for change in parsed.changes {
            // Changes by others before the scope's first change of a file are left out.
            let own = is_own(&change);
            let is_followed = |path: &PathBuf| paths.contains(path);
            if own || is_followed(&change.path) || change.from.as_ref().is_some_and(is_followed) {
                paths.extend(change.from.clone());
                paths.insert(change.path.clone());
                changes.add(change, own)?;
            }
        }
        Ok(())
    })?;
    let undone: HashSet<String> = undone.into_values().flatten().collect();
    changes.disown(&undone);
    Ok(changes)
}

/// The id of the first event that may be in the scope.
pub fn first(store: &Store, scope: &ChangeScope) -> Result<Option<String>, SelectError> {
    let filter = Filter {
        session_id: scope.session_id.clone(),
        agent_id: scope.agent_id.clone(),
        turn: scope.turn,
        after: scope.after.clone(),
        types: types(),
        limit: 1,
        ..Filter::default()
    };
    Ok(store.events(&filter)?.events.pop().map(|event| event.id))
}

/// Calls `take` for each event that fits, oldest first.
pub(super) fn each(
    store: &Store,
    mut filter: Filter,
    take: &mut dyn FnMut(&str, Parsed) -> Result<(), SelectError>,
) -> Result<(), SelectError> {
    filter.limit = PAGE;
    loop {
        let page = store.events(&filter)?;
        for event in &page.events {
            let mut parsed = parse(event);
            parsed.changes.retain(|change| !change.is_empty());
            take(&event.id, parsed)?;
        }
        let Some(next) = page.next else { return Ok(()) };
        filter.after = Some(next);
    }
}
