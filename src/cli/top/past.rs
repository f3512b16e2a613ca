//! Reads from the team's journal what happened before the view was opened, page by page from the end, for the
//! log and the transcripts.

use std::collections::HashMap;

use indexmap::IndexMap;

use crate::cli::transcript::{LineKind, ShownLine};
use crate::journal::{
    BlockedPayload, CallPayload, EventType, MessagePayload, StatePayload, TurnPayload,
};
use crate::line::or_default;
use crate::model::{is_aside, now_ms, one_line, turn_ended};
use crate::view::{LogEntry, SweepCount, access_text};
use crate::wire::{Event, ListEventsParams};

/// Events of a page.
const PAGE: u64 = 300;

/// The next page.
pub(super) enum Past {
    /// Before this time: what comes later is on the stream.
    Last {
        before_ms: u64,
    },
    Asked {
        before_ms: Option<u64>,
    },
    Before(String),
    /// There is no more of it, or no journal.
    Over,
}

impl Default for Past {
    fn default() -> Self {
        Self::Last { before_ms: now_ms() }
    }
}

impl Past {
    /// The request for the next page, if it is not under way.
    pub(super) fn ask(&mut self) -> Option<ListEventsParams> {
        let (before, before_ms) = match std::mem::replace(self, Self::Over) {
            Self::Last { before_ms } => (None, Some(before_ms)),
            Self::Before(before) => (Some(before), None),
            other => {
                *self = other;
                return None;
            }
        };
        *self = Self::Asked { before_ms };
        let types = ["agent.state", "blocked", "turn", "message.user", "message.assistant", "tool"];
        Some(ListEventsParams {
            types: Some(types.map(str::to_owned).to_vec()),
            before,
            last: true,
            limit: Some(PAGE),
            ..ListEventsParams::default()
        })
    }

    /// The last page is there, or never comes.
    pub(super) fn is_there(&self) -> bool {
        !matches!(self, Self::Last { .. } | Self::Asked { before_ms: Some(_) })
    }

    /// Takes the events of the page, and the place of the next one.
    pub(super) fn take(&mut self, events: &mut Vec<Event<'_>>, next: Option<&str>) {
        if let Self::Asked { before_ms: Some(before_ms) } = self {
            events.retain(|event| event.timestamp < *before_ms);
        }
        *self = next.map_or(Self::Over, |next| Self::Before(next.to_owned()));
    }
}

/// The entry of an event, as that of its line; None for those without one.
pub(super) fn entry(event: &Event<'_>) -> Option<LogEntry> {
    let payload = event.payload.get();
    let mut counted = None;
    let because = |reason: Option<String>| reason.map(|why| format!(": {why}")).unwrap_or_default();
    let (state, text) = if *event.kind == *EventType::AGENT_STATE.as_str() {
        let StatePayload { state, reason, .. } = or_default(payload);
        (state.clone(), state + &because(reason))
    } else if *event.kind == *EventType::BLOCKED.as_str() {
        let payload: BlockedPayload = or_default(payload);
        let status = payload.shown_status().to_owned();
        let BlockedPayload { blocked_id, action, path, sweep, decided_by, harmless, .. } = payload;
        let (id, path) = (blocked_id.unwrap_or_default(), path.unwrap_or_default());
        let is_noise = harmless || event.session_id.is_none() && is_aside(&path);
        counted = sweep.map(|count| SweepCount { id: id.clone(), count, is_noise });
        let text = access_text(&id, &status, decided_by.as_deref(), &action, &path, sweep);
        (status, text)
    } else if event.kind.starts_with("turn.") {
        let TurnPayload { stop_reason, reason, .. } = or_default(payload);
        let stop = stop_reason.unwrap_or_default();
        let text = turn_ended(event.turn.unwrap_or_default(), &stop, reason.as_deref());
        (stop, text)
    } else {
        return None;
    };
    let agent = event.agent_id.as_deref().map(one_line).unwrap_or_default();
    Some(LogEntry { timestamp_ms: Some(event.timestamp), agent, state, text, counted })
}

/// The lines of the last prompt among events.
pub(super) fn prompt(events: &[Event<'_>]) -> Vec<ShownLine> {
    let is_prompt = |event: &Event<'_>| *event.kind == *EventType::MESSAGE_USER.as_str();
    let Some(at) = events.iter().rposition(is_prompt) else { return Vec::new() };
    lines(&events[at..=at]).into_values().flatten().collect()
}

/// The lines of transcripts, by agent.
pub(super) fn lines(events: &[Event<'_>]) -> IndexMap<String, Vec<ShownLine>> {
    let mut all: IndexMap<String, Vec<ShownLine>> = IndexMap::new();
    // The line of each call, by agent and id.
    let mut calls = HashMap::new();
    for event in events {
        let Some(agent) = event.agent_id.as_deref() else { continue };
        let lines = all.entry(agent.to_owned()).or_default();
        let payload = event.payload.get();
        let kind = EventType::ALL.iter().copied().find(|kind| *kind.as_str() == *event.kind);
        match kind {
            Some(EventType::MESSAGE_USER | EventType::MESSAGE_ASSISTANT) => {
                let is_prompt = kind == Some(EventType::MESSAGE_USER);
                let text = or_default::<MessagePayload>(payload).text.unwrap_or_default();
                let line = |text: &str| {
                    let (kind, mark) =
                        if is_prompt { (LineKind::Prompt, "> ") } else { (LineKind::Message, "") };
                    ShownLine { kind, text: format!("{mark}{text}") }
                };
                lines.extend(text.lines().map(line));
            }
            Some(EventType::TOOL_CALL) => {
                let CallPayload { tool_call_id, title, kind, .. } = or_default(payload);
                let text = one_line(&title.flatten().or(kind).unwrap_or_default());
                lines.push(ShownLine { kind: LineKind::Call, text: format!("> {text}") });
                let id = (agent.to_owned(), tool_call_id.unwrap_or_default());
                calls.insert(id, lines.len() - 1);
            }
            Some(EventType::TOOL_RESULT) => {
                let CallPayload { tool_call_id, status, .. } = or_default(payload);
                let id = (agent.to_owned(), tool_call_id.unwrap_or_default());
                let Some(line) = calls.remove(&id).and_then(|at| lines.get_mut(at)) else {
                    continue;
                };
                match status.as_deref() {
                    Some("completed") | None => line.text += ": done",
                    Some(status) => {
                        line.text = format!("{}: {}", line.text, one_line(status));
                        line.kind = LineKind::FailedCall;
                    }
                }
            }
            Some(EventType::BLOCKED) => {
                let line =
                    |it: LogEntry| ShownLine { kind: LineKind::State(it.state), text: it.text };
                // What nobody meant is in the log.
                lines.extend(entry(event).filter(|it| it.counted.is_none()).map(line));
            }
            Some(EventType::TURN_END | EventType::TURN_FAILED) => {
                let line = |it: LogEntry| ShownLine { kind: LineKind::Turn, text: it.text };
                lines.extend(entry(event).map(line));
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use crate::cli::top::screen::{Pane, Screen};
    use crate::wire::Events;

    fn event(kind: &str, timestamp: u64, payload: &Value) -> Value {
        json!({
            "id": "0199", "parent_id": null, "session_id": "s", "agent_id": "ui", "sequence": 0, "depth": 0,
            "type": kind, "timestamp": timestamp, "turn": 0, "payload": payload,
        })
    }

    fn page(events: &[Value], next: Option<&str>) -> Events<'static> {
        serde_json::from_value(json!({ "events": events, "next": next })).unwrap()
    }

    fn log(screen: &Screen) -> Vec<&str> {
        screen.view.log().entries().iter().map(|entry| entry.text.as_str()).collect()
    }

    #[test]
    fn a_view_that_is_opened_late_begins_with_what_the_journal_has() {
        let mut screen = Screen::new("shop");
        let asked = screen.wanted_past().unwrap();
        assert_eq!((asked.last, asked.before), (true, None));
        assert!(screen.wanted_past().is_none(), "one page at a time");
        let blocked = json!({
            "blocked_id": "b1", "status": "denied", "action": "write", "path": "a.js", "decided_by": "person",
        });
        let last = [
            event("message.user", 1, &json!({ "text": "go\non" })),
            event("blocked", 2, &blocked),
            event("turn.end", 3, &json!({ "stop_reason": "end_turn" })),
            event("turn.end", u64::MAX, &json!({ "stop_reason": "of the stream" })),
        ];
        screen.take_past(Some(page(&last, Some("0198"))));
        assert_eq!(
            log(&screen),
            ["b1 denied by a person: write a.js", "first turn ended: end_turn"]
        );
        screen.agent = Some("ui".to_owned());
        let said = screen.transcript().unwrap().lines.iter().map(|line| line.text.as_str());
        assert_eq!(
            said.collect::<Vec<_>>(),
            ["> go", "> on", "b1 denied by a person: write a.js", "first turn ended: end_turn"]
        );

        // The next page comes when a person is at the first line.
        assert!(screen.wanted_past().is_none());
        screen.pane = Pane::Log;
        screen.held_at = Some(screen.view.log().first());
        assert_eq!(screen.wanted_past().unwrap().before.as_deref(), Some("0198"));
        let first = [event("agent.state", 0, &json!({ "state": "ready", "reason": "a\u{1b}[2J" }))];
        screen.take_past(Some(page(&first, None)));
        assert_eq!(log(&screen)[0], "ready: a [2J");
        assert!(screen.wanted_past().is_none(), "there is no more");
    }

    #[test]
    fn a_team_without_a_journal_is_asked_once() {
        let mut screen = Screen::new("shop");
        assert!(screen.wanted_past().is_some());
        screen.take_past(None);
        assert!(screen.wanted_past().is_none() && log(&screen).is_empty());
    }
}
