//! Tool calls: one event for the call, once its input is known, and one for its result, with the output of
//! the terminals that it shows.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::Fold;
use super::shrink::{shrink, texts};
use crate::acp::{self, CallContent};
use crate::journal::event::{EventType, cut};
use crate::journal::payload::CallPayload;
use crate::model::{MOST_OUTPUT, SessionKey, ShownTerminal, TeamUpdate, TimestampMs, mask};

/// Open calls of a session; past that the oldest gets a result as it is.
const MOST_CALLS: usize = 512;

/// Terminals of a turn whose outputs are kept until their calls end; past that the oldest is forgotten.
const MOST_TERMINALS: usize = 64;

/// Bytes of an input, of a result, of an id and of a title.
const LONGEST_INPUT: usize = 256 << 10;
const LONGEST_RESULT: usize = 256 << 10;
const LONGEST_ID: usize = 1024;
const LONGEST_TITLE: usize = 4096;

/// Bytes of a call or result in the search index.
const LONGEST_FOUND: usize = 16 << 10;

/// The calls that have no result yet, by id.
#[derive(Default)]
pub(super) struct Calls {
    open: IndexMap<Arc<str>, Call>,
    /// Whether some of them were not put out.
    waiting: bool,
    /// The outputs of the turn's terminals, by id.
    terminals: IndexMap<String, ShownTerminal<'static>>,
}

impl Calls {
    /// The id of the only call that runs.
    pub(super) fn only(&self) -> Option<Arc<str>> {
        let mut ids = self.open.keys();
        ids.next().filter(|_| ids.next().is_none()).cloned()
    }

    pub(super) fn are_waiting(&self) -> bool {
        self.waiting
    }
}

struct Call {
    title: Option<String>,
    kind: Option<String>,
    status: Option<String>,
    locations: Value,
    input: Value,
    input_bytes: usize,
    input_cut: bool,
    /// The input differs from that of the `tool.call`.
    input_changed: bool,
    content: Value,
    output: Value,
    started_ms: TimestampMs,
    is_out: bool,
}

impl Fold {
    pub(super) fn call(&mut self, key: &SessionKey, raw: &str, at: TimestampMs) {
        let Ok(Value::Object(mut fields)) = serde_json::from_str::<Value>(raw) else { return };
        let Some(Value::String(id)) = fields.remove("toolCallId") else { return };
        if id.len() > LONGEST_ID {
            return;
        }
        self.end_message(key, at);
        let id: Arc<str> = id.into();
        let calls = &mut self.session(key).calls;
        if !calls.open.contains_key(&id) {
            // Also for a late update of a call that has its result already.
            if calls.open.len() >= MOST_CALLS
                && let Some(oldest) = calls.open.keys().next().cloned()
            {
                self.result(key, &oldest, at);
            }
            self.session(key).calls.open.insert(Arc::clone(&id), Call::new(at));
        }
        let Some(call) = self.session(key).calls.open.get_mut(&id) else { return };
        call.absorb(fields);
        let (is_known, is_over) = (call.is_known(), call.is_over());
        if call.is_out || !is_known {
            self.session(key).calls.waiting |= !is_known;
        } else {
            self.put_call(key, &id, at);
        }
        if is_over {
            self.flush_call(key, &id);
            self.result(key, &id, at);
        }
    }

    /// Puts out the calls whose input is not known yet, as they are.
    pub(super) fn flush_calls(&mut self, key: &SessionKey) {
        let Some(session) = self.sessions.get_mut(key) else { return };
        if !std::mem::take(&mut session.calls.waiting) {
            return;
        }
        let waiting = session.calls.open.iter().filter(|(_, call)| !call.is_out);
        let waiting: Vec<_> = waiting.map(|(id, _)| Arc::clone(id)).collect();
        for id in waiting {
            self.flush_call(key, &id);
        }
    }

    /// Keeps the output of a terminal for the result of the call that shows it.
    pub(super) fn terminal(&mut self, key: &SessionKey, raw: &str) {
        let Ok(TeamUpdate::Terminal(shown)) = serde_json::from_str(raw) else { return };
        if !self.keeps_texts() || shown.terminal_id.len() > LONGEST_ID {
            return;
        }
        let terminals = &mut self.session(key).calls.terminals;
        let id = shown.terminal_id.clone().into_owned();
        if terminals.len() >= MOST_TERMINALS && !terminals.contains_key(&id) {
            terminals.shift_remove_index(0);
        }
        // An agent may send such a line, too, of any length.
        let output = cut(&shown.output, MOST_OUTPUT).0.into_owned().into();
        let terminal_id = id.clone().into();
        terminals.insert(id, ShownTerminal { terminal_id, output, ..shown });
    }

    /// Gives every call a result.
    pub(super) fn end_calls(&mut self, key: &SessionKey, at: TimestampMs) {
        let Some(session) = self.sessions.get(key) else { return };
        let open: Vec<_> = session.calls.open.keys().cloned().collect();
        for id in open {
            self.flush_call(key, &id);
            self.result(key, &id, at);
        }
        self.session(key).calls.terminals.clear();
    }

    fn flush_call(&mut self, key: &SessionKey, id: &Arc<str>) {
        let call = self.session(key).calls.open.get(id);
        if let Some(at) = call.filter(|call| !call.is_out).map(|call| call.started_ms) {
            self.put_call(key, id, at);
        }
    }

    fn put_call(&mut self, key: &SessionKey, id: &Arc<str>, at: TimestampMs) {
        let texts_too = self.keeps_texts();
        let Some(call) = self.session(key).calls.open.get_mut(id) else { return };
        call.is_out = true;
        call.input_changed = false;
        let mut payload = CallPayload {
            input_bytes: Some(call.input_bytes),
            truncated: call.input_cut,
            ..call.head(id, texts_too)
        };
        let mut found = String::new();
        if texts_too {
            found.clone_from(call.title.as_ref().unwrap_or(&String::new()));
            texts(&call.input, LONGEST_FOUND, &mut found);
            payload.input = Some(call.input.clone());
            // What it is about to write stands nowhere else.
            if is_empty(&call.input)
                && let Some((diffs, is_cut)) = call.diffs()
            {
                payload.content = Some(diffs);
                payload.truncated |= is_cut;
            }
        }
        self.push_found(key, EventType::TOOL_CALL, &payload, at, found);
    }

    fn result(&mut self, key: &SessionKey, id: &Arc<str>, at: TimestampMs) {
        let texts_too = self.keeps_texts();
        let Some(call) = self.session(key).calls.open.shift_remove(id) else { return };
        let mut payload = call.head(id, texts_too);
        let status = call.status.as_deref().filter(|_| call.is_over()).unwrap_or("unfinished");
        payload.status = Some(status.to_owned());
        payload.duration_ms = Some(at.saturating_sub(call.started_ms));
        let (mut content, mut output) = (call.content, call.output);
        // The text for the search index has no secrets either.
        mask(&mut content);
        mask(&mut output);
        let mut found = String::new();
        texts(&content, LONGEST_FOUND, &mut found);
        let error = (status == "failed").then(|| cut(&found, LONGEST_TITLE).0.into_owned());
        let error = error.map(|text| if texts_too { text } else { String::new() });
        payload.error = Some(error);
        if texts_too {
            add_outputs(&mut content, &self.session(key).calls.terminals, &mut found);
            let cut = shrink(&mut content, LONGEST_RESULT) | shrink(&mut output, LONGEST_RESULT);
            payload.content = Some(content);
            payload.output = Some(output);
            payload.input = call.input_changed.then_some(call.input);
            payload.truncated = cut || (call.input_changed && call.input_cut);
        } else {
            found.clear();
        }
        self.push_found(key, EventType::TOOL_RESULT, &payload, at, found);
    }
}

impl Call {
    fn new(at: TimestampMs) -> Self {
        Self {
            title: None,
            kind: None,
            status: None,
            locations: Value::Null,
            input: Value::Null,
            input_bytes: 0,
            input_cut: false,
            input_changed: false,
            content: Value::Null,
            output: Value::Null,
            started_ms: at,
            is_out: false,
        }
    }

    fn absorb(&mut self, fields: Map<String, Value>) {
        for (name, mut value) in fields {
            let text = |most| value.as_str().map(|text| cut(text, most).0.into_owned());
            match name.as_str() {
                "title" => self.title = text(LONGEST_TITLE).or(self.title.take()),
                "kind" => self.kind = text(LONGEST_ID).or(self.kind.take()),
                "status" => self.status = text(LONGEST_ID).or(self.status.take()),
                "locations" if !value.is_null() => {
                    shrink(&mut value, LONGEST_INPUT);
                    self.locations = value;
                }
                "rawInput" if !is_empty(&value) => {
                    let bytes = value.to_string().len();
                    mask(&mut value);
                    let cut = bytes > LONGEST_INPUT && shrink(&mut value, LONGEST_INPUT);
                    self.input_changed |= self.input != value;
                    (self.input, self.input_bytes, self.input_cut) = (value, bytes, cut);
                }
                // Bounds a result also while it grows.
                "content" if !value.is_null() => {
                    shrink(&mut value, LONGEST_RESULT * 2);
                    self.content = value;
                }
                "rawOutput" if !value.is_null() => {
                    shrink(&mut value, LONGEST_RESULT * 2);
                    self.output = value;
                }
                _ => {}
            }
        }
    }

    /// Whether the event of the call can be written.
    fn is_known(&self) -> bool {
        !self.input.is_null() || self.is_over()
    }

    fn is_over(&self) -> bool {
        matches!(self.status.as_deref(), Some("completed" | "failed" | "cancelled"))
    }

    /// The contents that say what the call writes, masked and bounded, and whether they were cut; None if
    /// there are none.
    fn diffs(&self) -> Option<(Value, bool)> {
        let is_diff =
            |it: &&Value| acp::read::<CallContent>(it).kind.is_some_and(|kind| kind == "diff");
        let all = self.content.as_array()?.iter();
        let mut diffs = Value::Array(all.filter(is_diff).cloned().collect());
        mask(&mut diffs);
        let is_cut = shrink(&mut diffs, LONGEST_INPUT);
        (!is_empty(&diffs)).then_some((diffs, is_cut))
    }

    /// The fields that the events of the call and of its result share.
    fn head(&self, id: &str, texts_too: bool) -> CallPayload {
        CallPayload {
            tool_call_id: Some(id.to_owned()),
            title: texts_too.then(|| self.title.clone()),
            kind: self.kind.clone(),
            locations: self.locations.clone(),
            ..CallPayload::default()
        }
    }
}

/// Adds to the terminals among the contents of a call what they showed.
fn add_outputs(
    content: &mut Value,
    terminals: &IndexMap<String, ShownTerminal<'_>>,
    found: &mut String,
) {
    for part in content.as_array_mut().into_iter().flatten() {
        let CallContent { kind, terminal_id, .. } = acp::read(part);
        let id = terminal_id.filter(|_| kind.as_deref() == Some("terminal"));
        let shown = id.and_then(|id| serde_json::to_value(terminals.get(&id)?).ok());
        if let (Value::Object(fields), Some(Value::Object(shown))) = (&mut *part, shown) {
            fields.extend(shown);
            texts(part, LONGEST_FOUND, found);
        }
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null()
        || value.as_object().is_some_and(Map::is_empty)
        || value.as_array().is_some_and(Vec::is_empty)
}
