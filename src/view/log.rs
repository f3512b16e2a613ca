//! The log: one entry for each event that people want to know of.

use std::collections::VecDeque;

use super::fields::{AgentName, Fields};
use crate::model::one_line;

/// Entries that are kept; the oldest is dropped first.
const MOST_ENTRIES: usize = 1000;

/// Bytes of an entry's text.
const LONGEST_TEXT: usize = 512;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogEntry {
    /// Since 1970; None for lines without a time.
    pub timestamp_ms: Option<u64>,
    /// Empty: it concerns the team.
    pub agent: String,
    /// The word that stands for its state, for a colour.
    pub state: String,
    /// One line, safe for a terminal.
    pub text: String,
}

/// The last entries.
#[derive(Debug, Default)]
pub struct Log {
    entries: VecDeque<LogEntry>,
    first: usize,
}

impl Log {
    /// Oldest first.
    pub fn entries(&self) -> &VecDeque<LogEntry> {
        &self.entries
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of the first entry that is kept, of all that ever were.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Adds an entry for a line, if it is an event.
    pub(super) fn line(&mut self, kind: &str, line: &Fields) {
        let Some((state, text)) = described(kind, line) else { return };
        self.push(LogEntry {
            timestamp_ms: line.timestamp_ms,
            agent: one_line(line.agent()),
            state: state.to_owned(),
            text: short(&text),
        });
    }

    /// Adds an entry for lines that were missed.
    pub(super) fn missed(&mut self, line: &[u8]) {
        let line = serde_json::from_slice::<Fields>(line).unwrap_or_default();
        let missed = &line.missed;
        self.note(&format!("{missed} lines of the team were missed: this view was too slow"));
    }

    /// Adds an entry that no line of the team says.
    pub(super) fn note(&mut self, text: &str) {
        self.push(LogEntry {
            timestamp_ms: None,
            agent: String::new(),
            state: "pending".to_owned(),
            text: short(text),
        });
    }

    fn push(&mut self, entry: LogEntry) {
        // A team says some things twice around the time of the connect.
        if self.entries.back() == Some(&entry) {
            return;
        }
        if self.entries.len() == MOST_ENTRIES {
            self.entries.pop_front();
            self.first += 1;
        }
        self.entries.push_back(entry);
    }
}

/// The state of a line, and its text; None for lines that are no events.
fn described<'a>(kind: &str, line: &'a Fields) -> Option<(&'a str, String)> {
    let Fields { state, status, reason, .. } = line;
    let because = || reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let id = line.id.as_deref().unwrap_or_default();
    Some(match kind {
        "agent" => (state, format!("{state}{}", because())),
        "blocked" => {
            let Fields { action, path, .. } = line;
            let sweep = line.sweep.map(|count| format!(" ({count} times)")).unwrap_or_default();
            let by = line.decider().map(|by| format!(" by {by}")).unwrap_or_default();
            (status, format!("{id} {status}{by}: {action} {path}{sweep}"))
        }
        "budget" if state == "open" => return None,
        "budget" => {
            let text = reason.clone().unwrap_or_else(|| format!("the budget is {state}"));
            (if state == "exceeded" { "error" } else { "pending" }, text)
        }
        "conflict" => {
            let by = line.decider().map(|by| format!(" {status} by {by}"));
            (status, format!("conflict {id}{}: {}", by.unwrap_or_default(), line.message))
        }
        "loop" => {
            let (times, what) = (&line.times, line.calls.join(", "));
            ("pending", format!("a loop: {times} times the same {}: {what}", line.kind))
        }
        "overlap" => {
            let other = line.agents.get(1).map(AgentName::as_str).unwrap_or_default();
            ("pending", format!("overlaps with {other} in {}", line.symbol))
        }
        "report" => ("", format!("reports: {}", line.text)),
        "task" => (state, format!("task {id} of {}: {state}{}", line.by, because())),
        "turn" => {
            let Fields { turn, stop_reason: stop, .. } = line;
            (stop, format!("turn {turn} ended: {stop}{}", because()))
        }
        _ => return None,
    })
}

fn short(text: &str) -> String {
    one_line(&text[..text.floor_char_boundary(LONGEST_TEXT)])
}
