//! Finds the changes to take back: an agent's, those of given events, or the last undo.

use std::collections::{BTreeSet, HashSet};

use serde::Serialize;
use serde_json::{Value, json};

use super::UndoError;
use super::log::last_undo;
use crate::changes::{Asked, ChangeSet, FileChange, first, select_where};
use crate::journal::{EventType, NewEvent, Session, Store};

/// The changes to take back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Aim {
    /// An agent's changes.
    Agent {
        /// The agent's id.
        agent: String,
        /// An id of the journal, the beginning of one, or one of the wire; None: all sessions, with
        /// `turn` the first.
        session: Option<String>,
        /// Only the changes of the turn with this number on the wire; None: of all turns.
        turn: Option<u64>,
        /// Only changes after the event with this id, or the only one whose id begins so.
        since: Option<String>,
    },
    /// The changes of these events.
    Events {
        /// The agent that the undo is recorded for. It does not restrict the events.
        agent: String,
        /// The full ids of events in the journal. Empty: nothing is taken back.
        events: Vec<String>,
    },
    /// The last undo, of an agent if one is named.
    LastUndo {
        /// The agent whose changes were undone; None: the last undo of any agent.
        agent: Option<String>,
    },
}

/// A request to undo changes, or to take an undo back.
#[derive(Clone, Debug)]
pub struct UndoRequest {
    /// The changes to take back.
    pub aim: Aim,
    /// Files that clash get the content from before the agent's change.
    pub force: bool,
    /// Only shows the changes.
    pub dry_run: bool,
    /// Also takes back an agent's changes outside the workspace: mostly its own state. A redo
    /// always brings back all changes of its undo.
    pub outside: bool,
    /// The event that sets the session back, committed together with that of the undo.
    pub rewind: Option<NewEvent>,
}

impl UndoRequest {
    /// A request to set a session back to an event, and to take back its changes after it.
    pub fn of_rewind(session: &Session, to: &str) -> Self {
        let aim = Aim::Agent {
            agent: session.agent_id.clone(),
            session: Some(session.id.clone()),
            turn: None,
            since: Some(to.to_owned()),
        };
        let rewind = Some(NewEvent::rewind(session, to, true));
        Self { aim, force: false, dry_run: false, outside: false, rewind }
    }
}

/// The changes, and the deed for the event.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) deed: Deed,
    pub(super) changes: ChangeSet,
}

/// The undo or redo, for its event.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    Undo { agent: String, turns: Vec<u64>, events: Vec<Undoable> },
    Redo { agent: Option<String>, undo_event_id: String },
}

/// An event whose change is taken back.
#[derive(Clone, Debug)]
pub(super) struct Undoable {
    event_id: String,
    turn: Option<u64>,
}

impl Deed {
    /// The agent whose changes it is about.
    pub(super) fn agent(&self) -> Option<&str> {
        match self {
            Self::Undo { agent, .. } => Some(agent),
            Self::Redo { agent, .. } => agent.as_deref(),
        }
    }

    /// Forgets the events that are not taken back.
    pub(super) fn keep_only(&mut self, handled: &BTreeSet<String>) {
        if let Self::Undo { turns, events, .. } = self {
            events.retain(|event| handled.contains(&event.event_id));
            let of_events: BTreeSet<u64> = events.iter().filter_map(|event| event.turn).collect();
            *turns = of_events.into_iter().collect();
        }
    }

    pub(super) fn event(&self, paths: &impl Serialize, forced: bool) -> (EventType, Value) {
        match self {
            Self::Undo { agent, turns, events } => {
                let events: Vec<_> = events.iter().map(|event| &event.event_id).collect();
                let payload = json!({
                    "agent_id": agent, "turns": turns, "events": events, "paths": paths,
                    "forced": forced,
                });
                (EventType::UNDO, payload)
            }
            Self::Redo { undo_event_id, agent } => {
                let payload = json!({
                    "undo_event_id": undo_event_id, "agent_id": agent, "paths": paths,
                    "forced": forced,
                });
                (EventType::REDO, payload)
            }
        }
    }
}

/// Finds the changes of an aim. Empty: there is nothing to take back.
pub(super) fn choose(store: &Store, aim: &Aim) -> Result<Chosen, UndoError> {
    match aim {
        Aim::Agent { agent, session, turn, since } => {
            let asked = Asked {
                agent: Some(agent.clone()),
                session: session.clone(),
                turn: *turn,
                since: since.clone(),
            };
            let mut scope = asked.scope(store)?;
            // A turn belongs to one session.
            let root = scope.session_id.take_if(|_| turn.is_none());
            let sessions = root.map(|root| family(store, agent, &root)).transpose()?;
            let Some(first) = first(store, &scope)? else {
                return Ok(undo(agent, ChangeSet::default()));
            };
            let is_in = |sessions: &HashSet<String>, change: &FileChange| {
                change.session_id.as_ref().is_some_and(|session| sessions.contains(session))
            };
            let is_own = |change: &FileChange| {
                scope.has(change) && sessions.as_ref().is_none_or(|it| is_in(it, change))
            };
            Ok(undo(agent, select_where(store, &first, &is_own)?))
        }
        Aim::Events { agent, events } => {
            let Some(first) = events.iter().min() else {
                return Ok(undo(agent, ChangeSet::default()));
            };
            let wanted: HashSet<&str> = events.iter().map(String::as_str).collect();
            let is_own = |change: &FileChange| wanted.contains(change.event_id.as_str());
            Ok(undo(agent, select_where(store, first, &is_own)?))
        }
        Aim::LastUndo { agent } => redo(store, agent.as_deref()),
    }
}

fn undo(agent: &str, changes: ChangeSet) -> Chosen {
    let undoable =
        |change: &FileChange| Undoable { event_id: change.event_id.clone(), turn: change.turn };
    let events = changes.own().map(undoable).collect();
    let deed = Deed::Undo { agent: agent.to_owned(), turns: Vec::new(), events };
    Chosen { deed, changes }
}

fn redo(store: &Store, agent: Option<&str>) -> Result<Chosen, UndoError> {
    let Some(last) = last_undo(store, agent)? else {
        return Err(UndoError::NothingUndone { agent: agent.map(str::to_owned) });
    };
    let id = last.event_id;
    let changes = select_where(store, &id, &|change| change.event_id == id)?;
    Ok(Chosen { deed: Deed::Redo { agent: last.agent_id, undo_event_id: id }, changes })
}

/// A session of an agent, and its forks. If events will name parents in other ways (an agent that a
/// session started), their sessions belong here, too. Changes by such an agent in the processes of
/// its parent are the parent's already.
fn family(store: &Store, agent: &str, root: &str) -> Result<HashSet<String>, UndoError> {
    let mut family = HashSet::from([root.to_owned()]);
    // A fork is younger than its origin.
    for session in store.sessions()?.into_iter().filter(|it| it.agent_id == agent) {
        if session.forked_from.is_some_and(|parent| family.contains(&parent)) {
            family.insert(session.id);
        }
    }
    Ok(family)
}
