//! A blame as a record of Agent Trace (RFC, version 0.1.0): the ranges of lines that agents wrote,
//! by conversation. <https://agent-trace.dev>

use serde_json::{Value, json};

use super::blame::{Blame, content_hash};
use super::merge::lines;
use super::provenance::Provenance;
use crate::journal::{OpenError, Store};

const VERSION: &str = "0.1.0";

/// The fields of a record besides the lines.
#[derive(Clone, Debug)]
pub struct Traced<'a> {
    /// The team's name.
    pub team: &'a str,
    /// Relative to the root of the repository, else to the workspace.
    pub path: &'a str,
    /// The commit that has exactly these lines.
    pub revision: Option<&'a str>,
    /// A UUID.
    pub id: &'a str,
    /// RFC 3339.
    pub timestamp: &'a str,
}

/// Consecutive lines with one origin, numbered from 1, the last included.
pub(super) struct Range {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) origin: usize,
}

pub(super) fn ranges(blame: &Blame) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    for (at, origin) in blame.lines.iter().enumerate() {
        match ranges.last_mut() {
            Some(range) if range.origin == *origin => range.last = at + 1,
            _ => ranges.push(Range { first: at + 1, last: at + 1, origin: *origin }),
        }
    }
    ranges
}

/// The record. Its ranges leave out earlier lines, and lines that the team did not write.
pub fn agent_trace(
    store: &Store,
    blame: &Blame,
    names: &[Provenance],
    traced: &Traced<'_>,
) -> Result<Value, OpenError> {
    let text = lines(&blame.content);
    let mut conversations: Vec<(Value, Vec<Value>)> = Vec::new();
    for range in ranges(blame) {
        let Some(name) = names.get(range.origin) else { continue };
        let Some(mut conversation) = conversation(store, name, traced.team)? else { continue };
        let block = text[range.first - 1..range.last].concat();
        let range = json!({
            "start_line": range.first,
            "end_line": range.last,
            "content_hash": content_hash(&block),
        });
        match conversations.iter_mut().find(|(it, _)| *it == conversation) {
            Some((_, ranges)) => ranges.push(range),
            None => conversations.push((conversation.take(), vec![range])),
        }
    }
    let conversations = conversations.into_iter().map(|(mut conversation, ranges)| {
        conversation["ranges"] = ranges.into();
        conversation
    });
    let file = json!({ "path": traced.path, "conversations": conversations.collect::<Vec<_>>() });
    let mut record = json!({
        "version": VERSION,
        "id": traced.id,
        "timestamp": traced.timestamp,
        "tool": { "name": "eisen-core", "version": env!("CARGO_PKG_VERSION") },
        "files": [file],
        "metadata": { "dev.eisen-core": { "team": traced.team } },
    });
    if let Some(revision) = traced.revision {
        record["vcs"] = json!({ "type": "git", "revision": revision });
    }
    Ok(record)
}

/// The conversation of a turn; None for lines that the team did not write.
fn conversation(store: &Store, name: &Provenance, team: &str) -> Result<Option<Value>, OpenError> {
    let contributor = match name.by {
        "agent" => "ai",
        "unknown" => "unknown",
        // A merge of lines by several authors.
        "undo" | "redo" => "mixed",
        _ => return Ok(None),
    };
    let mut contributor = json!({ "type": contributor });
    let Some(session) = &name.session_id else {
        return Ok(Some(json!({ "contributor": contributor })));
    };
    if let Some(model) = store.model_of(session, name.event_id.as_deref())? {
        contributor["model_id"] = model[..model.floor_char_boundary(250)].into();
    }
    let mut related = Vec::new();
    if let Some(event) = &name.event_id {
        related.push(json!({ "type": "change", "url": format!("eisen:{team}/events/{event}") }));
    }
    Ok(Some(json!({
        "url": format!("eisen:{team}/sessions/{session}"),
        "contributor": contributor,
        "related": related,
    })))
}
