//! A blame as a record of Agent Trace (RFC, version 0.1.0): the ranges of lines that agents wrote,
//! by conversation. <https://agent-trace.dev>

use serde::Serialize;
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
    let mut conversations: Vec<Conversation> = Vec::new();
    for range in ranges(blame) {
        let Some(name) = names.get(range.origin) else { continue };
        let Some(mut conversation) = conversation(store, name, traced.team)? else { continue };
        let block = text[range.first - 1..range.last].concat();
        let range = TracedRange {
            start_line: range.first,
            end_line: range.last,
            content_hash: content_hash(&block),
        };
        if let Some(known) = conversations.iter_mut().find(|it| it.of == conversation.of) {
            known.ranges.push(range);
        } else {
            conversation.ranges.push(range);
            conversations.push(conversation);
        }
    }
    let vcs = traced.revision.map(|revision| json!({ "type": "git", "revision": revision }));
    Ok(json!(TraceRecord {
        version: VERSION,
        id: traced.id,
        timestamp: traced.timestamp,
        tool: json!({ "name": "eisen-core", "version": env!("CARGO_PKG_VERSION") }),
        files: [TracedFile { path: traced.path, conversations }],
        metadata: json!({ "dev.eisen-core": { "team": traced.team } }),
        vcs,
    }))
}

#[derive(Serialize)]
struct TraceRecord<'a> {
    version: &'a str,
    id: &'a str,
    timestamp: &'a str,
    tool: Value,
    files: [TracedFile<'a>; 1],
    metadata: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    vcs: Option<Value>,
}

#[derive(Serialize)]
struct TracedFile<'a> {
    path: &'a str,
    conversations: Vec<Conversation>,
}

#[derive(Serialize)]
struct Conversation {
    #[serde(flatten)]
    of: ConversationOf,
    ranges: Vec<TracedRange>,
}

/// The author of lines. Those without a session belong to no conversation.
#[derive(PartialEq, Serialize)]
struct ConversationOf {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    contributor: Contributor,
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<Vec<Value>>,
}

#[derive(PartialEq, Serialize)]
struct Contributor {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_id: Option<String>,
}

#[derive(Serialize)]
struct TracedRange {
    start_line: usize,
    end_line: usize,
    content_hash: String,
}

/// The conversation of a turn; None for lines that the team did not write.
fn conversation(
    store: &Store,
    name: &Provenance,
    team: &str,
) -> Result<Option<Conversation>, OpenError> {
    let kind = match name.by {
        "agent" => "ai",
        "unknown" => "unknown",
        // A merge of lines by several authors.
        "undo" | "redo" => "mixed",
        _ => return Ok(None),
    };
    let mut contributor = Contributor { kind, model_id: None };
    let Some(session) = &name.session_id else {
        let of = ConversationOf { url: None, contributor, related: None };
        return Ok(Some(Conversation { of, ranges: Vec::new() }));
    };
    let model = store.model_of(session, name.event_id.as_deref())?;
    contributor.model_id = model.map(|model| model[..model.floor_char_boundary(250)].to_owned());
    let event = name.event_id.iter();
    let related = event
        .map(|event| json!({ "type": "change", "url": format!("eisen:{team}/events/{event}") }));
    let of = ConversationOf {
        url: Some(format!("eisen:{team}/sessions/{session}")),
        contributor,
        related: Some(related.collect()),
    };
    Ok(Some(Conversation { of, ranges: Vec::new() }))
}
