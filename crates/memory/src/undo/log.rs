//! Finds the last undo that was not taken back.

use serde::Deserialize;

use crate::journal::{EventType, Filter, OpenError, Store};

/// An undo that was not taken back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Undone {
    pub(super) event_id: String,
    pub(super) agent_id: Option<String>,
}

#[derive(Deserialize)]
struct UndoPayload {
    agent_id: Option<String>,
}

#[derive(Deserialize)]
struct RedoPayload {
    undo_event_id: String,
}

/// The last undo of a journal, of an agent if one is named.
pub(super) fn last_undo(store: &Store, agent: Option<&str>) -> Result<Option<Undone>, OpenError> {
    let types = [EventType::UNDO, EventType::REDO].map(|kind| kind.as_str().to_owned());
    let mut filter = Filter { types: types.into(), limit: 100, ..Filter::default() };
    let mut undos = Vec::new();
    loop {
        let page = store.events(&filter)?;
        for event in page.events {
            add(&mut undos, event.id, &event.kind, event.payload.get());
        }
        let Some(next) = page.next else { break };
        filter.after = Some(next);
    }
    let is_of = |undo: &Undone| agent.is_none() || undo.agent_id.as_deref() == agent;
    Ok(undos.into_iter().rev().find(is_of))
}

fn add(undos: &mut Vec<Undone>, event_id: String, kind: &str, payload: &str) {
    if kind == EventType::UNDO.as_str() {
        if let Ok(UndoPayload { agent_id }) = serde_json::from_str(payload) {
            undos.push(Undone { event_id, agent_id });
        }
    } else if let Ok(RedoPayload { undo_event_id }) = serde_json::from_str(payload) {
        undos.retain(|undo| undo.event_id != undo_event_id);
    }
}
