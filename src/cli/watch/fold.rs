//! From the pieces in which agents speak to lines that people read. Knows no port and no terminal.

mod call;

use std::time::Duration;

use indexmap::IndexMap;
use serde_json::Value;
use tokio::time::Instant;

use self::call::Calls;

/// A message that goes on in the same line after this time is shown as far as it is there, and a
/// tool call that runs for so long is shown as it begins.
const PAUSE: Duration = Duration::from_secs(2);
/// Bytes of one line; a longer one is shown in parts.
const LONGEST_LINE: usize = 8 * 1024;
/// Sessions that are remembered; when full, the oldest is forgotten.
const MOST_SESSIONS: usize = 1000;
/// Entries of a plan that are looked at.
const MOST_ENTRIES: usize = 100;

/// A line for people; it may have to be wrapped, and is not made safe for a terminal yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Line {
    pub(super) kind: LineKind,
    pub(super) text: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum LineKind {
    Message,
    Thought,
    /// What the agent was asked, as far as it repeats that.
    Prompt,
    Call,
    FailedCall,
    Plan,
    /// Of an agent or a blocked access: the word decides the colour.
    State(String),
    Turn,
    Note,
}

#[derive(Debug, Default)]
pub(super) struct Fold {
    /// Thoughts are shown whole.
    thoughts: bool,
    talks: IndexMap<(String, String), Talk>,
}

/// What one session is saying.
#[derive(Debug, Default)]
struct Talk {
    speech: Option<Speech>,
    /// The line that has not ended.
    text: String,
    /// An empty line was not shown: one behind the last is none.
    gap: bool,
    /// Something of this speech was shown.
    begun: bool,
    /// The first line of a folded thought, and how many follow.
    folded: Option<(String, usize)>,
    spoke: Option<Instant>,
    calls: Calls,
    plan: Vec<(String, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Speech {
    Message,
    Thought,
    Prompt,
}

impl Line {
    pub(super) fn note(text: String) -> Self {
        Self { kind: LineKind::Note, text }
    }
}

impl Fold {
    pub(super) fn new(thoughts: bool) -> Self {
        Self { thoughts, talks: IndexMap::new() }
    }

    /// Takes in ACP's `update`; returns what is to be shown now, and of whom.
    pub(super) fn update(
        &mut self,
        agent: &str,
        session: &str,
        update: &Value,
        now: Instant,
    ) -> Vec<(String, Line)> {
        let (thoughts, mut lines) = (self.thoughts, Vec::new());
        let mut out = self.make_room();
        let who = self.who(agent, session);
        let talk = self.talks.entry((agent.to_owned(), session.to_owned())).or_default();
        let speech = match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk") => Some(Speech::Message),
            Some("agent_thought_chunk") => Some(Speech::Thought),
            Some("user_message_chunk") => Some(Speech::Prompt),
            Some("tool_call" | "tool_call_update") => {
                talk.flush(&mut lines);
                talk.calls.update(update, now, &mut lines);
                None
            }
            Some("plan") => {
                talk.flush(&mut lines);
                talk.plan(update, &mut lines);
                None
            }
            _ => None,
        };
        if let Some(speech) = speech {
            talk.append_speech(speech, &words(&update["content"]), thoughts, &mut lines);
            talk.spoke = Some(now);
        }
        out.extend(lines.into_iter().map(|line| (who.clone(), line)));
        out
    }

    /// Ends a turn, with the port's `turn` line.
    pub(super) fn turn(&mut self, agent: &str, session: &str, turn: &Value) -> Vec<(String, Line)> {
        let who = self.who(agent, session);
        let mut lines = Vec::new();
        if let Some(talk) = self.talks.get_mut(&(agent.to_owned(), session.to_owned())) {
            talk.end(&mut lines);
        }
        let number = turn["turn"].as_u64().unwrap_or_default();
        let reason = turn["reason"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
        let stop = turn["stop_reason"].as_str().unwrap_or("?");
        let text = format!("turn {number} ended: {stop}{reason}");
        lines.push(Line { kind: LineKind::Turn, text });
        lines.into_iter().map(|line| (who.clone(), line)).collect()
    }

    /// A line that comes from elsewhere: what the session was saying stands before it.
    pub(super) fn between(
        &mut self,
        agent: &str,
        session: &str,
        line: Line,
    ) -> Vec<(String, Line)> {
        let who = self.who(agent, session);
        let mut lines = Vec::new();
        if let Some(talk) = self.talks.get_mut(&(agent.to_owned(), session.to_owned())) {
            talk.flush(&mut lines);
        }
        lines.push(line);
        lines.into_iter().map(|line| (who.clone(), line)).collect()
    }

    /// What was begun some time ago and has not ended.
    pub(super) fn overdue(&mut self, now: Instant) -> Vec<(String, Line)> {
        let mut out = Vec::new();
        for at in 0..self.talks.len() {
            let mut lines = Vec::new();
            let Some((key, talk)) = self.talks.get_index_mut(at) else { break };
            if talk.spoke.is_some_and(|spoke| now.duration_since(spoke) >= PAUSE) {
                talk.spoke = None;
                talk.flush(&mut lines);
            }
            talk.calls.announce(now, PAUSE, &mut lines);
            let (agent, session) = key.clone();
            if !lines.is_empty() {
                let who = self.who(&agent, &session);
                out.extend(lines.into_iter().map(|line| (who.clone(), line)));
            }
        }
        out
    }

    /// All that was begun: nothing follows.
    pub(super) fn flush(&mut self) -> Vec<(String, Line)> {
        let mut out = Vec::new();
        for ((agent, _), mut talk) in std::mem::take(&mut self.talks) {
            let mut lines = Vec::new();
            talk.end(&mut lines);
            out.extend(lines.into_iter().map(|line| (agent.clone(), line)));
        }
        out
    }

    /// The agent; in another session than its first, with that.
    fn who(&self, agent: &str, session: &str) -> String {
        let first = self.talks.keys().find(|(of, _)| of == agent);
        match first {
            Some((_, first)) if first != session && !session.is_empty() => {
                format!("{agent} {session}")
            }
            _ => agent.to_owned(),
        }
    }

    fn make_room(&mut self) -> Vec<(String, Line)> {
        let mut lines = Vec::new();
        if self.talks.len() < MOST_SESSIONS {
            return lines;
        }
        if let Some(((agent, _), mut talk)) = self.talks.shift_remove_index(0) {
            let mut said = Vec::new();
            talk.end(&mut said);
            lines.extend(said.into_iter().map(|line| (agent.clone(), line)));
        }
        lines
    }
}

impl Talk {
    fn append_speech(&mut self, speech: Speech, text: &str, thoughts: bool, lines: &mut Vec<Line>) {
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

    fn end_line(&mut self, thoughts: bool, lines: &mut Vec<Line>) {
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
            lines.push(Line { kind: kind.clone(), text: String::new() });
        }
        self.begun = true;
        lines.push(Line { kind, text });
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

    /// Shows what was said, as if it had ended.
    fn flush(&mut self, lines: &mut Vec<Line>) {
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
            lines.push(Line { kind: LineKind::Thought, text });
        }
        (self.speech, self.gap, self.begun, self.spoke) = (None, false, false, None);
    }

    /// Shows all that was begun.
    fn end(&mut self, lines: &mut Vec<Line>) {
        self.flush(lines);
        self.calls.end(lines);
    }

    /// Shows the entries of a plan that changed.
    fn plan(&mut self, update: &Value, lines: &mut Vec<Line>) {
        let entries = update["entries"].as_array().into_iter().flatten().take(MOST_ENTRIES);
        let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let plan: Vec<_> =
            entries.map(|entry| (text(entry, "content"), text(entry, "status"))).collect();
        for (content, status) in plan.iter().filter(|entry| !self.plan.contains(entry)) {
            let mark = match status.as_str() {
                "completed" => "[x]",
                "in_progress" => "[>]",
                _ => "[ ]",
            };
            lines.push(Line { kind: LineKind::Plan, text: format!("plan {mark} {content}") });
        }
        self.plan = plan;
    }
}

/// The text of a content block; of another, what it is.
fn words(content: &Value) -> String {
    match (content["text"].as_str(), content["type"].as_str()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(kind)) => format!("[{kind}]\n"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests;
