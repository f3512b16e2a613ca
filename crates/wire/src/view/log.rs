//! The log: one entry for each event that people want to know of.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use crate::model::{BudgetState, one_line, turn_ended};
use crate::wire::{
    Agent, Blocked, Budget, ConflictLine, LaggedLine, Looped, MapOverlap, ReportLine, ServerLine,
    TaskLine, TurnLine,
};

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
    /// The sweep that the entry shows, with its last count.
    pub counted: Option<SweepCount>,
}

/// The accesses that an entry stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SweepCount {
    /// The id of the sweep.
    pub id: String,
    pub count: u64,
    /// Views fold the entry with the others of its agent.
    pub is_noise: bool,
}

/// The last entries.
#[derive(Debug)]
pub struct Log {
    entries: VecDeque<LogEntry>,
    first: usize,
}

impl Default for Log {
    /// Leaves numbers for what was before.
    fn default() -> Self {
        Self { entries: VecDeque::new(), first: MOST_ENTRIES }
    }
}

impl Log {
    /// Oldest first.
    pub fn entries(&self) -> &VecDeque<LogEntry> {
        &self.entries
    }

    /// The first `end` entries with what is shown of them, oldest first. Unless `all` are wanted, the noise of
    /// an agent is one line with its number.
    pub fn shown(&self, end: usize, all: bool) -> Vec<(&LogEntry, Cow<'_, str>)> {
        let mut sums: HashMap<&str, u64> = HashMap::new();
        let entries: Vec<_> = self.entries.iter().take(end).collect();
        let is_folded = |it: &&SweepCount| it.is_noise && !all;
        for entry in &entries {
            if let Some(counted) = entry.counted.as_ref().filter(is_folded) {
                *sums.entry(&entry.agent).or_default() += counted.count;
            }
        }
        let mut shown: Vec<_> = entries
            .into_iter()
            .rev()
            .filter_map(|entry| match entry.counted.as_ref().filter(is_folded) {
                Some(_) => Some((entry, folded_noise(sums.remove(&*entry.agent)?).into())),
                None => Some((entry, Cow::from(&entry.text))),
            })
            .collect();
        shown.reverse();
        shown
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
    pub(super) fn line(&mut self, line: &ServerLine<'_>) {
        let Some(Described { timestamp_ms, agent, state, text }) = described(line) else { return };
        let counted = match line {
            ServerLine::Blocked(access) => access.sweep.map(|count| SweepCount {
                id: access.id.to_string(),
                count,
                is_noise: access.is_noise(),
            }),
            _ => None,
        };
        self.push(LogEntry {
            timestamp_ms,
            agent: one_line(agent),
            state: state.to_owned(),
            text: short(&text),
            counted,
        });
    }

    /// Adds an entry for lines that were missed.
    pub(super) fn missed(&mut self, line: &[u8]) {
        let missed = match ServerLine::read(line) {
            Ok(ServerLine::Lagged(LaggedLine { missed })) => missed.to_string(),
            _ => "some".to_owned(),
        };
        self.note(&format!("{missed} lines of the team were missed: this view was too slow"));
    }

    /// Adds an entry that no line of the team says.
    pub(super) fn note(&mut self, text: &str) {
        self.push(LogEntry {
            timestamp_ms: None,
            agent: String::new(),
            state: "pending".to_owned(),
            text: short(text),
            counted: None,
        });
    }

    /// Adds entries of before in front, as far as there is room; oldest first.
    pub(super) fn earlier(&mut self, entries: Vec<LogEntry>) {
        let room = MOST_ENTRIES - self.entries.len();
        let is_counted = |it: &LogEntry, by: &Option<SweepCount>| {
            it.counted.as_ref().zip(by.as_ref()).is_some_and(|(it, by)| it.id == by.id)
        };
        for entry in entries.into_iter().rev().take(room) {
            // A later count has all of it.
            if self.entries.iter().any(|it| is_counted(it, &entry.counted)) {
                continue;
            }
            self.entries.push_front(LogEntry { text: short(&entry.text), ..entry });
            self.first -= 1;
        }
    }

    fn push(&mut self, entry: LogEntry) {
        // A team says some things twice around the time of the connect.
        if self.entries.back() == Some(&entry) {
            return;
        }
        // What counts up is one entry.
        let is_same = |it: &&mut LogEntry| {
            it.counted.as_ref().zip(entry.counted.as_ref()).is_some_and(|(it, by)| it.id == by.id)
        };
        if let Some(counting) = self.entries.iter_mut().rev().find(is_same) {
            *counting = entry;
            return;
        }
        if self.entries.len() == MOST_ENTRIES {
            self.entries.pop_front();
            self.first += 1;
        }
        self.entries.push_back(entry);
    }
}

/// The logged part of a line.
struct Described<'a> {
    timestamp_ms: Option<u64>,
    agent: &'a str,
    state: &'a str,
    text: String,
}

/// None for lines that are no events.
fn described<'a>(line: &'a ServerLine<'_>) -> Option<Described<'a>> {
    let because = |reason: &Option<Cow<'_, str>>| {
        reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default()
    };
    let (timestamp_ms, agent, state, text): (_, &str, _, _) = match line {
        ServerLine::Agent(Agent { agent_id, state, reason, timestamp_ms, .. }) => {
            let text = format!("{state}{}", because(reason));
            (Some(*timestamp_ms), agent_id, state.as_str(), text)
        }
        ServerLine::Blocked(access) => {
            let Blocked { id, action, path, sweep, .. } = access;
            let (status, by) = (access.shown_status(), access.decided_by.as_deref());
            let text = access_text(id, status, by, action.as_str(), path, *sweep);
            (Some(access.timestamp_ms), &access.session.agent_id, status, text)
        }
        ServerLine::Budget(budget) if budget.state == BudgetState::Open => return None,
        ServerLine::Budget(budget) => {
            let Budget { agent_id, state, reason, timestamp_ms, .. } = budget;
            let text = reason.as_deref().map(str::to_owned);
            let text = text.unwrap_or_else(|| format!("the budget is {state}"));
            let is_exceeded = *state == BudgetState::Exceeded;
            let state = if is_exceeded { "error" } else { "pending" };
            (Some(*timestamp_ms), agent_id.as_deref().unwrap_or_default(), state, text)
        }
        ServerLine::Conflict(conflict) => {
            let ConflictLine { id, status, message, .. } = conflict;
            let by = conflict.decided_by.as_deref();
            let by = by.map(|by| format!(" {status} by {}", decider(by)));
            let text = format!("conflict {id}{}: {message}", by.unwrap_or_default());
            (Some(conflict.timestamp_ms), conflict.writer(), status.as_str(), text)
        }
        ServerLine::Loop(Looped { session, kind, times, calls, timestamp_ms, .. }) => {
            let text = format!("a loop: {times} times the same {kind}: {}", calls.join(", "));
            (Some(*timestamp_ms), &session.agent_id, "pending", text)
        }
        ServerLine::Overlap(MapOverlap { agents: [one, other], symbol, timestamp_ms, .. }) => {
            let text = format!("overlaps with {} in {symbol}", other.agent_id);
            (Some(*timestamp_ms), &one.agent_id, "pending", text)
        }
        ServerLine::Report(ReportLine { agent_id, text, timestamp_ms }) => {
            (Some(*timestamp_ms), agent_id, "", format!("reports: {text}"))
        }
        ServerLine::Task(task) => {
            let TaskLine { id, by, agent_id, state, reason, timestamp_ms, .. } = task;
            let text = format!("task {id} of {by}: {state}{}", because(reason));
            (Some(*timestamp_ms), agent_id, state.as_str(), text)
        }
        ServerLine::Turn(TurnLine { agent_id, turn, stop_reason, reason, .. }) => {
            (None, agent_id, stop_reason, turn_ended(*turn, stop_reason, reason.as_deref()))
        }
        _ => return None,
    };
    Some(Described { timestamp_ms, agent, state, text })
}

/// A change of an access, as the log has it.
pub fn access_text(
    id: &str,
    status: &str,
    by: Option<&str>,
    action: &str,
    path: &str,
    sweep: Option<u64>,
) -> String {
    let by = by.map(|by| format!(" by {}", decider(by))).unwrap_or_default();
    let sweep = sweep.map(|count| format!(" ({count} times)")).unwrap_or_default();
    format!("{id} {status}{by}: {action} {path}{sweep}")
}

/// Says of refusals that are folded how many they are.
pub fn folded_noise(count: u64) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} refusal{s} in passing: harmless, outside the workspace or in .git")
}

/// The decider of an access or a conflict, in words.
pub fn decider(by: &str) -> &str {
    match by {
        "person" => "a person",
        "web" => "a person on the web",
        "rule" => "a rule",
        _ => ["agent:", "token:"].iter().find_map(|kind| by.strip_prefix(kind)).unwrap_or(by),
    }
}

fn short(text: &str) -> String {
    one_line(&text[..text.floor_char_boundary(LONGEST_TEXT)])
}
