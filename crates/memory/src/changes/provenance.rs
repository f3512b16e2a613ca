//! Names the origin of lines: the agent, session, turn and tool call of a change, and the prompt
//! that it came from.

use serde::Serialize;

use super::blame::{Blame, LineOrigin};
use super::event::{ChangeCause, FileChange};
use crate::journal::{CallPayload, Event, Filter, MessagePayload, OpenError, Store};

/// Bytes of a prompt that are shown.
const LONGEST_PROMPT: usize = 400;

/// Bytes of the title of a tool call.
const LONGEST_TITLE: usize = 200;

/// The origin of a line, by names.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Debug)]
pub struct Provenance {
    /// `agent`, `before`, `outside`, `unknown`, `undo` or `redo`.
    pub by: &'static str,
    /// The agent that wrote the lines, or whose changes an undo or redo is about. None for other origins.
    pub agent_id: Option<String>,
    /// The journal's id.
    pub session_id: Option<String>,
    /// The turn's number on the wire; None if it is not known.
    pub turn: Option<u64>,
    /// The agent's id of the call; None if the call is not certain.
    pub tool_call_id: Option<String>,
    /// The title of the tool call.
    pub title: Option<String>,
    /// The event of the change.
    pub event_id: Option<String>,
    /// Milliseconds since 1970.
    pub timestamp: Option<u64>,
    /// The first words of the turn's prompt.
    pub prompt: Option<String>,
    /// Other agents that wrote the file at the same time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contested: Vec<String>,
}

/// The provenance of each origin of a blame, in its order.
pub fn provenance(store: &Store, blame: &Blame) -> Result<Vec<Provenance>, OpenError> {
    blame.origins.iter().map(|origin| of_origin(store, origin)).collect()
}

fn of_origin(store: &Store, origin: &LineOrigin) -> Result<Provenance, OpenError> {
    let by = match origin {
        LineOrigin::Before => "before",
        LineOrigin::Outside => "outside",
        LineOrigin::Unknown => "unknown",
        LineOrigin::Change(change) => return of_change(store, change),
    };
    Ok(Provenance { by, ..Provenance::default() })
}

fn of_change(store: &Store, change: &FileChange) -> Result<Provenance, OpenError> {
    let (by, agent) = match &change.cause {
        ChangeCause::Undo(agent) => ("undo", agent),
        ChangeCause::Redo(agent) => ("redo", agent),
        _ => ("agent", &change.agent_id),
    };
    let title =
        change.tool_call_id.as_deref().map(|call| title(store, change, call)).transpose()?;
    Ok(Provenance {
        by,
        agent_id: agent.clone(),
        session_id: change.session_id.clone(),
        turn: change.turn,
        tool_call_id: change.tool_call_id.clone(),
        title: title.flatten(),
        event_id: Some(change.event_id.clone()),
        timestamp: Some(change.timestamp),
        prompt: prompt(store, change)?,
        contested: change.contested.clone(),
    })
}

/// The last prompt of the turn before the change.
fn prompt(store: &Store, change: &FileChange) -> Result<Option<String>, OpenError> {
    let prompts = of_turn(store, change, "message.user")?;
    let before = prompts.iter().rev().find(|event| event.id < change.event_id);
    let prompt: Option<MessagePayload> = before.or(prompts.first()).map(Event::read);
    Ok(prompt.and_then(|it| it.text).map(|text| first_words(&text, LONGEST_PROMPT)))
}

fn title(store: &Store, change: &FileChange, call: &str) -> Result<Option<String>, OpenError> {
    let calls = of_turn(store, change, "tool.call")?;
    let mut calls = calls.iter().rev().map(Event::read::<CallPayload>);
    let call = calls.find(|payload| payload.tool_call_id.as_deref() == Some(call));
    let title = call.and_then(|payload| payload.title.flatten());
    Ok(title.map(|title| first_words(&title, LONGEST_TITLE)))
}

/// The events of a type in the turn of a change.
fn of_turn(store: &Store, change: &FileChange, kind: &str) -> Result<Vec<Event>, OpenError> {
    let (Some(session), Some(turn)) = (&change.session_id, change.turn) else {
        return Ok(Vec::new());
    };
    let filter = Filter {
        session_id: Some(session.clone()),
        turn: Some(turn),
        types: vec![kind.to_owned()],
        ..Filter::default()
    };
    Ok(store.events(&filter)?.events)
}

/// One line of a text, cut at a word.
fn first_words(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() <= most {
        return line;
    }
    let cut = &line[..line.floor_char_boundary(most)];
    let cut = cut.rsplit_once(' ').map_or(cut, |(words, _)| words);
    format!("{cut}…")
}
