//! Folds the chunks of session updates into lines to show. Knows no port and no terminal.

mod call;

use std::time::Duration;

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use self::call::OpenCalls;
use crate::acp::{self, ContentBlock, Elements, PlanStep};
use crate::line::lenient;
use crate::model::{BlockedStatus, turn_ended};
use crate::wire::{Blocked, SessionHeader, TurnLine};

/// An incomplete line is shown after this time without more text, and a running tool call after
/// this time.
const PAUSE: Duration = Duration::from_secs(2);
/// Maximum bytes of a line; longer lines are split.
const LONGEST_LINE: usize = 8 * 1024;
/// Maximum sessions followed; past that, the oldest is dropped.
const MOST_SESSIONS: usize = 1000;
/// Maximum entries of a plan; the others are ignored.
const MOST_ENTRIES: usize = 100;

/// A line to print, not wrapped and not yet safe for a terminal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::cli) struct ShownLine {
    pub(in crate::cli) kind: LineKind,
    pub(in crate::cli) text: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::cli) enum LineKind {
    Message,
    Thought,
    /// The prompt, if the agent echoes it.
    Prompt,
    Call,
    FailedCall,
    Plan,
    /// The state of an agent or a blocked access; it selects the colour.
    State(String),
    Turn,
    Note,
}

#[derive(Debug, Default)]
pub(in crate::cli) struct Fold {
    /// Whether thoughts are shown in full.
    thoughts: bool,
    /// By agent and session.
    sessions: IndexMap<(String, String), SessionFold>,
}

/// The shown part of an `update` of ACP, tool calls aside.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SpokenUpdate {
    #[serde(rename = "sessionUpdate", deserialize_with = "lenient")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    content: ContentBlock,
    #[serde(deserialize_with = "lenient")]
    entries: Elements<PlanStep>,
}

/// The unfinished output of one session.
#[derive(Debug, Default)]
struct SessionFold {
    speech: Option<Speech>,
    /// The incomplete line.
    text: String,
    /// An empty line to print before the next line, if there is one.
    gap: bool,
    /// A line of this speech was shown.
    begun: bool,
    /// The first line of a folded thought, and the number of lines after it.
    folded: Option<(String, usize)>,
    /// The time of the last chunk.
    updated: Option<Instant>,
    calls: OpenCalls,
    plan: Vec<(String, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Speech {
    Message,
    Thought,
    Prompt,
}

impl ShownLine {
    pub(in crate::cli) fn note(text: String) -> Self {
        Self { kind: LineKind::Note, text }
    }
}

impl Fold {
    pub(in crate::cli) fn new(thoughts: bool) -> Self {
        Self { thoughts, sessions: IndexMap::new() }
    }

    /// Adds an ACP `update`; returns the lines to print now, each with its label.
    pub(in crate::cli) fn update(
        &mut self,
        agent: &str,
        session: &str,
        update: &Value,
        now: Instant,
    ) -> Vec<(String, ShownLine)> {
        let (thoughts, mut lines) = (self.thoughts, Vec::new());
        let mut out = self.make_room();
        let label = self.label(agent, session);
        let fold = self.sessions.entry((agent.to_owned(), session.to_owned())).or_default();
        let SpokenUpdate { kind, content, entries } = acp::read(update);
        let speech = match kind.as_deref() {
            Some("agent_message_chunk") => Some(Speech::Message),
            Some("agent_thought_chunk") => Some(Speech::Thought),
            Some("user_message_chunk") => Some(Speech::Prompt),
            Some("tool_call" | "tool_call_update") => {
                fold.flush(&mut lines);
                fold.calls.update(update, now, &mut lines);
                None
            }
            Some("plan") => {
                fold.flush(&mut lines);
                fold.plan(entries.0, &mut lines);
                None
            }
            _ => None,
        };
        if let Some(speech) = speech {
            fold.append_speech(speech, &block_text(content), thoughts, &mut lines);
            fold.updated = Some(now);
        }
        out.extend(lines.into_iter().map(|line| (label.clone(), line)));
        out
    }

    /// Ends a turn, by the port's `turn` line.
    pub(in crate::cli) fn turn(
        &mut self,
        agent: &str,
        session: &str,
        turn: &TurnLine<'_>,
    ) -> Vec<(String, ShownLine)> {
        let label = self.label(agent, session);
        let mut lines = Vec::new();
        if let Some(fold) = self.sessions.get_mut(&(agent.to_owned(), session.to_owned())) {
            fold.end(&mut lines);
        }
        let text = turn_ended(turn.turn, &turn.stop_reason, turn.reason.as_deref());
        lines.push(ShownLine { kind: LineKind::Turn, text });
        lines.into_iter().map(|line| (label.clone(), line)).collect()
    }

    /// Adds a line from another source, after the unfinished text of the session.
    pub(in crate::cli) fn between(
        &mut self,
        agent: &str,
        session: &str,
        line: ShownLine,
    ) -> Vec<(String, ShownLine)> {
        let label = self.label(agent, session);
        let mut lines = Vec::new();
        if let Some(fold) = self.sessions.get_mut(&(agent.to_owned(), session.to_owned())) {
            fold.flush(&mut lines);
        }
        lines.push(line);
        lines.into_iter().map(|line| (label.clone(), line)).collect()
    }

    /// Shows a blocked access where it happened; a tool call of which a part was refused is marked.
    pub(in crate::cli) fn blocked(
        &mut self,
        access: &Blocked<'_>,
        text: String,
    ) -> Vec<(String, ShownLine)> {
        let SessionHeader { agent_id, session_id, .. } = &access.session;
        let key = (agent_id.to_string(), session_id.to_string());
        if let (Some(call), Some(fold)) = (&access.tool_call, self.sessions.get_mut(&key)) {
            let is_refused = matches!(
                access.status.known(),
                Some(BlockedStatus::Denied | BlockedStatus::Expired)
            );
            let named = format!("{} {} ({})", access.action.as_str(), access.path, access.id);
            fold.calls.refuse(call, (&access.id, &named), is_refused);
        }
        let kind = LineKind::State(access.shown_status().to_owned());
        self.between(agent_id, session_id, ShownLine { kind, text })
    }

    /// The unfinished lines and calls that are older than [`PAUSE`].
    pub(in crate::cli) fn overdue(&mut self, now: Instant) -> Vec<(String, ShownLine)> {
        let mut out = Vec::new();
        for at in 0..self.sessions.len() {
            let mut lines = Vec::new();
            let Some((key, fold)) = self.sessions.get_index_mut(at) else { break };
            if fold.updated.is_some_and(|updated| now.duration_since(updated) >= PAUSE) {
                fold.updated = None;
                fold.flush(&mut lines);
            }
            fold.calls.announce(now, PAUSE, &mut lines);
            let (agent, session) = key.clone();
            if !lines.is_empty() {
                let label = self.label(&agent, &session);
                out.extend(lines.into_iter().map(|line| (label.clone(), line)));
            }
        }
        out
    }

    /// All unfinished lines and calls, at the end of the connection.
    pub(in crate::cli) fn flush(&mut self) -> Vec<(String, ShownLine)> {
        let mut out = Vec::new();
        for ((agent, _), mut fold) in std::mem::take(&mut self.sessions) {
            let mut lines = Vec::new();
            fold.end(&mut lines);
            out.extend(lines.into_iter().map(|line| (agent.clone(), line)));
        }
        out
    }

    /// The agent's id, followed by the session id if it is not the agent's first session.
    fn label(&self, agent: &str, session: &str) -> String {
        let first = self.sessions.keys().find(|(of, _)| of == agent);
        match first {
            Some((_, first)) if first != session && !session.is_empty() => {
                format!("{agent} {session}")
            }
            _ => agent.to_owned(),
        }
    }

    fn make_room(&mut self) -> Vec<(String, ShownLine)> {
        let mut lines = Vec::new();
        if self.sessions.len() < MOST_SESSIONS {
            return lines;
        }
        if let Some(((agent, _), mut fold)) = self.sessions.shift_remove_index(0) {
            let mut rest = Vec::new();
            fold.end(&mut rest);
            lines.extend(rest.into_iter().map(|line| (agent.clone(), line)));
        }
        lines
    }
}

impl SessionFold {
    fn append_speech(
        &mut self,
        speech: Speech,
        text: &str,
        thoughts: bool,
        lines: &mut Vec<ShownLine>,
    ) {
        if self.speech != Some(speech) {
            self.flush(lines);
            self.speech = Some(speech);
        }
        for piece in text.split_inclusive('\n') {
            self.text.push_str(piece);
            if piece.ends_with('\n') || self.text.len() > LONGEST_LINE {
                self.end_line(thoughts, lines);
            }
        }
        if self.speech == Some(Speech::Thought) && !thoughts && self.folded.is_none() {
            self.folded = Some((String::new(), 0));
        }
    }

    fn end_line(&mut self, thoughts: bool, lines: &mut Vec<ShownLine>) {
        let text = std::mem::take(&mut self.text);
        let text = text.trim_end().to_owned();
        let kind = match self.speech {
            Some(Speech::Thought) if !thoughts => return self.fold_line(text),
            Some(Speech::Thought) => LineKind::Thought,
            Some(Speech::Prompt) => LineKind::Prompt,
            _ => LineKind::Message,
        };
        if text.is_empty() {
            self.gap = self.begun;
            return;
        }
        if std::mem::take(&mut self.gap) {
            lines.push(ShownLine { kind: kind.clone(), text: String::new() });
        }
        self.begun = true;
        lines.push(ShownLine { kind, text });
    }

    fn fold_line(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        match &mut self.folded {
            Some((first, more)) if !first.is_empty() => *more += 1,
            folded => *folded = Some((text, 0)),
        }
    }

    /// Ends the current speech.
    fn flush(&mut self, lines: &mut Vec<ShownLine>) {
        let folds = self.folded.is_some();
        if !self.text.is_empty() {
            self.end_line(!folds, lines);
        }
        if let Some((first, more)) = self.folded.take().filter(|(first, _)| !first.is_empty()) {
            let text = match more {
                0 => first,
                1 => format!("{first} … (1 more line)"),
                more => format!("{first} … ({more} more lines)"),
            };
            lines.push(ShownLine { kind: LineKind::Thought, text });
        }
        (self.speech, self.gap, self.begun, self.updated) = (None, false, false, None);
    }

    /// Ends the speech and all calls.
    fn end(&mut self, lines: &mut Vec<ShownLine>) {
        self.flush(lines);
        self.calls.end(lines);
    }

    /// Adds the changed entries of a plan.
    fn plan(&mut self, entries: Vec<PlanStep>, lines: &mut Vec<ShownLine>) {
        let entries = entries.into_iter().take(MOST_ENTRIES);
        let plan: Vec<_> = entries.map(|entry| (entry.content, entry.status)).collect();
        for (content, status) in plan.iter().filter(|entry| !self.plan.contains(entry)) {
            let mark = match status.as_str() {
                "completed" => "[x]",
                "in_progress" => "[>]",
                _ => "[ ]",
            };
            lines.push(ShownLine { kind: LineKind::Plan, text: format!("plan {mark} {content}") });
        }
        self.plan = plan;
    }
}

/// The text of a content block, or its type in brackets.
fn block_text(content: ContentBlock) -> String {
    match (content.text, content.kind) {
        (Some(text), _) => text,
        (None, Some(kind)) => format!("[{kind}]\n"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests;
