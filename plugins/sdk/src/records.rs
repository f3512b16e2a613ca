//! The output into which a plugin puts its records.

use crate::{Record, Usage};

/// The records of one call.
pub struct Records<'a> {
    put: &'a mut dyn FnMut(&[u8]) -> bool,
    is_full: bool,
}

impl<'a> Records<'a> {
    /// Passes whole records to `put`, which returns whether it takes more.
    pub fn new(put: &'a mut dyn FnMut(&[u8]) -> bool) -> Self {
        Self { put, is_full: false }
    }

    /// Whether the host takes no more records of this call: further ones are lost, and the call fails.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    pub fn session(&mut self, id: &str) {
        self.put(&Record::Session { id: id.into() });
    }

    pub fn turn_began(&mut self) {
        self.put(&Record::TurnBegan);
    }

    /// `reason` as ACP has it (`end_turn`, `max_tokens`, `max_turn_requests`, `refusal`,
    /// `cancelled`), or `error` with what went wrong.
    pub fn turn_ended(&mut self, reason: &str, error: &str) {
        self.put(&Record::TurnEnded { reason: reason.into(), body: error.into() });
    }

    /// `action` is `read`, `write` or `search`; `call` is the tool call's id, or empty.
    pub fn touched(&mut self, action: &str, path: &str, call: &str) {
        self.put(&Record::Touched { action: action.into(), path: path.into(), call: call.into() });
    }

    /// The agent runs a shell command line; the host finds the files that it plainly accesses.
    pub fn runs(&mut self, command: &str, call: &str) {
        self.put(&Record::Runs { command: command.into(), call: call.into() });
    }

    pub fn usage(&mut self, usage: Usage<'_>) {
        self.put(&Record::Usage(usage));
    }

    pub fn model(&mut self, id: &str, name: &str) {
        self.put(&Record::Model { id: id.into(), name: name.into() });
    }

    pub fn text(&mut self, body: &str) {
        self.put(&Record::Text { body: body.into(), reason: "".into() });
    }

    pub fn thought(&mut self, body: &str) {
        self.put(&Record::Text { body: body.into(), reason: "thought".into() });
    }

    /// The agent asks, under `id`, for permission to access each `(action, path)`. An action is
    /// `read`, `write`, or `search` (the contents of all files below a folder; a `read` of a folder
    /// lists its names).
    pub fn ask(&mut self, id: &str, title: &str, accesses: &[(&str, &str)]) {
        let accesses = accesses.iter().map(|&(action, path)| (action.into(), path.into()));
        let (id, title) = (id.into(), title.into());
        self.put(&Record::Ask { id, title, accesses: accesses.collect(), command: "".into() });
    }

    /// The agent asks, under `id`, for permission to run a shell command line.
    pub fn ask_to_run(&mut self, id: &str, title: &str, command: &str) {
        let (id, title, command) = (id.into(), title.into(), command.into());
        self.put(&Record::Ask { id, title, accesses: Vec::new(), command });
    }

    /// The agent withdrew the request `id`: it needs no answer any more.
    pub fn withdrawn(&mut self, id: &str) {
        self.put(&Record::Withdrawn { id: id.into() });
    }

    /// A line for the agent, without a line end.
    pub fn line(&mut self, line: impl AsRef<[u8]>) {
        self.put(&Record::Line { body: line.as_ref() });
    }

    pub fn put(&mut self, record: &Record<'_>) {
        let mut bytes = Vec::new();
        record.write(&mut bytes);
        self.is_full = self.is_full || !(self.put)(&bytes);
    }
}
