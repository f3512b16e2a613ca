//! The log: one entry for each event that people want to know of.

use std::collections::VecDeque;

use serde_json::Value;

use super::waiting::decider;
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
    pub(super) fn line(&mut self, kind: &str, line: &Value) {
        let Some((state, text)) = described(kind, line) else { return };
        let agent = line["agent_id"].as_str().or_else(|| line["agents"][0].as_str());
        let agent = agent.or_else(|| line["agents"][0]["agent_id"].as_str());
        self.push(LogEntry {
            timestamp_ms: line["timestamp_ms"].as_u64(),
            agent: one_line(agent.unwrap_or_default()),
            state: state.to_owned(),
            text: short(&text),
        });
    }

    /// Adds an entry for lines that were missed.
    pub(super) fn missed(&mut self, line: &[u8]) {
        let line = serde_json::from_slice::<Value>(line).unwrap_or_default();
        let missed = &line["missed"];
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
fn described<'a>(kind: &str, line: &'a Value) -> Option<(&'a str, String)> {
    let word = |name: &str| line[name].as_str().unwrap_or_default();
    let reason = |before: &str| line["reason"].as_str().map(|why| format!("{before}{why}"));
    let because = || reason(": ").unwrap_or_default();
    Some(match kind {
        "agent" => (word("state"), format!("{}{}", word("state"), because())),
        "blocked" => {
            let (status, action, path) = (word("status"), word("action"), word("path"));
            let sweep = line["sweep"].as_u64().map(|count| format!(" ({count} times)"));
            let sweep = sweep.unwrap_or_default();
            let by = decider(line).map(|by| format!(" by {by}")).unwrap_or_default();
            (status, format!("{} {status}{by}: {action} {path}{sweep}", word("id")))
        }
        "budget" if word("state") == "open" => return None,
        "budget" => {
            let state = if word("state") == "exceeded" { "error" } else { "pending" };
            (state, reason("").unwrap_or_else(|| format!("the budget is {}", word("state"))))
        }
        "conflict" => {
            let by = decider(line).map(|by| format!(" {} by {by}", word("status")));
            let by = by.unwrap_or_default();
            (word("status"), format!("conflict {}{by}: {}", word("id"), word("message")))
        }
        "loop" => {
            let calls: Vec<_> = line["calls"].as_array().into_iter().flatten().collect();
            let calls: Vec<_> = calls.iter().filter_map(|call| call.as_str()).collect();
            let (times, what) = (&line["times"], calls.join(", "));
            ("pending", format!("a loop: {times} times the same {}: {what}", word("kind")))
        }
        "overlap" => {
            let other = line["agents"][1]["agent_id"].as_str().unwrap_or_default();
            ("pending", format!("overlaps with {other} in {}", word("symbol")))
        }
        "report" => ("", format!("reports: {}", word("text"))),
        "task" => {
            let (id, by, state) = (word("id"), word("by"), word("state"));
            (state, format!("task {id} of {by}: {state}{}", because()))
        }
        "turn" => {
            let (turn, stop) = (&line["turn"], word("stop_reason"));
            (stop, format!("turn {turn} ended: {stop}{}", because()))
        }
        _ => return None,
    })
}

fn short(text: &str) -> String {
    one_line(&text[..text.floor_char_boundary(LONGEST_TEXT)])
}
