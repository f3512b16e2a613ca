//! The last turn of an agent: its task, the step that it is in, what became of it, and how many lines it changed.
//! Knows no terminal and no connection.

use indexmap::IndexMap;

use crate::cli::output::plain;
use crate::journal::{CallPayload, EventType, MessagePayload, TurnPayload};
use crate::line::or_default;
use crate::wire::{Diff, Event, GetDiffParams};

/// Tool calls of a turn that are known to run.
const MOST_OPEN: usize = 50;

/// Bytes of a task, a title, or the reason of an end.
const LONGEST_TEXT: usize = 400;

/// An agent's last turn.
#[derive(Clone, Default, Debug)]
pub(super) struct LastTurn {
    /// The first line of its prompt; empty: not known.
    pub(super) task: String,
    pub(super) outcome: Option<Outcome>,
    pub(super) changed: Option<ChangedLines>,
    calls: IndexMap<String, OpenCall>,
    /// The step between tool calls, and since when.
    step: Option<(&'static str, u64)>,
    /// The journal's event of its prompt, and of the prompt before.
    pub(super) prompt: Option<String>,
    pub(super) prior: Option<String>,
    /// Its session and its number there.
    pub(super) named: Option<(String, u64)>,
    /// The stream told of it, and not only the journal.
    pub(super) is_live: bool,
    /// The journal was asked in vain so many times.
    pub(super) tries: u8,
    /// The last time at which it was asked for the prompt, and for the changes.
    pub(super) prompt_asked: Option<u64>,
    pub(super) changes_asked: Option<u64>,
    /// How often a tool call of it, or itself, ended.
    pub(super) ended: u64,
    /// There may be changes that `changed` does not count.
    pub(super) is_dirty: bool,
}

/// The end of a turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Outcome {
    stop: String,
    /// The reason, if the team knows it.
    pub(super) why: String,
}

/// Lines that a turn changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ChangedLines {
    pub(super) added: usize,
    pub(super) removed: usize,
}

#[derive(Clone, Debug)]
struct OpenCall {
    title: String,
    since_ms: u64,
}

impl Outcome {
    /// The word for it, as on the page.
    pub(super) fn word(&self) -> &str {
        match self.stop.as_str() {
            "end_turn" => "done",
            "refusal" => "refused",
            "error" => "failed",
            "max_tokens" | "max_turn_requests" => "stopped",
            "" => "ended",
            other => other,
        }
    }

    /// The word that stands for its colour.
    pub(super) fn tone(&self) -> &'static str {
        match self.stop.as_str() {
            "end_turn" => "ready",
            "cancelled" => "pending",
            _ => "error",
        }
    }
}

impl ChangedLines {
    pub(super) fn of(diff: &Diff) -> Self {
        let sum = |of: fn(&crate::wire::DiffFile) -> usize| diff.files.iter().map(of).sum();
        Self { added: sum(|it| it.added), removed: sum(|it| it.removed) }
    }
}

impl LastTurn {
    /// The turn behind this one. The task of this one stands there until the journal says the next.
    pub(super) fn next(self) -> Self {
        Self { task: self.task, prior: self.prompt, ..Self::default() }
    }

    /// The step that it is in, and since when in milliseconds since 1970; None: it has ended, or did nothing yet.
    pub(super) fn step(&self) -> Option<(&str, u64)> {
        if self.outcome.is_some() {
            return None;
        }
        let call = self.calls.values().next_back();
        call.map(|call| (&*call.title, call.since_ms)).or(self.step)
    }

    /// The question for what it changed; None: its name is not known.
    pub(super) fn changes(&self, agent: &str) -> Option<GetDiffParams> {
        let (session, turn) = self.named.clone()?;
        Some(GetDiffParams {
            agent_id: Some(agent.to_owned().into()),
            session_id: Some(session),
            turn: Some(turn),
            ..GetDiffParams::default()
        })
    }

    pub(super) fn end(&mut self, stop: &str, why: Option<&str>) {
        let why = first_line(why.unwrap_or_default());
        self.outcome = Some(Outcome { stop: first_line(stop), why });
        self.calls.clear();
        self.ended += 1;
        (self.step, self.is_dirty, self.tries) = (None, true, 0);
    }

    /// A tool call begins, or goes on.
    pub(super) fn call(&mut self, id: String, title: Option<&str>, kind: Option<&str>, at: u64) {
        if self.calls.len() >= MOST_OPEN && !self.calls.contains_key(&id) {
            return;
        }
        let call = self.calls.entry(id).or_insert_with(|| OpenCall {
            title: kind.map_or_else(|| "a tool call".to_owned(), first_line),
            since_ms: at,
        });
        if let Some(title) = title.map(first_line).filter(|title| !title.is_empty()) {
            call.title = title;
        }
    }

    pub(super) fn call_ended(&mut self, id: &str, at: u64) {
        self.calls.shift_remove(id);
        self.ended += 1;
        (self.step, self.is_dirty) = (Some(("thinks", at)), true);
    }

    /// A step that is no tool call: `thinks` or `writes`.
    pub(super) fn does(&mut self, what: &'static str, at: u64) {
        if self.step.is_none_or(|(step, _)| step != what) {
            self.step = Some((what, at));
        }
    }

    /// Takes what the journal has of the agent's last turn; true if this one is known by that.
    pub(super) fn learn(&mut self, found: Self) -> bool {
        if found.prompt == self.prompt {
            // The end of it may have been missed.
            if self.outcome.is_none() && found.outcome.is_some() {
                (self.outcome, self.is_dirty) = (found.outcome, true);
            }
            return false;
        }
        let (is_over, was_over) = (self.outcome.is_some(), found.outcome.is_some());
        // The journal does not have this one yet.
        if found.prompt == self.prior || self.is_live && was_over && !is_over {
            return false;
        }
        let has_begun_anew = self.prompt.is_some() && is_over && !was_over;
        if !self.is_live || has_begun_anew {
            let asked = self.prompt_asked;
            *self = Self { prompt_asked: asked, ..found };
            return true;
        }
        (self.task, self.prompt, self.named) = (found.task, found.prompt, found.named);
        self.is_dirty = true;
        if self.step().is_none() && !is_over {
            (self.calls, self.step) = (found.calls, found.step);
        }
        true
    }

    /// The turn after an event of the journal.
    pub(super) fn event(self, event: &Event<'_>) -> Self {
        let kind = EventType::ALL.iter().copied().find(|kind| *kind.as_str() == *event.kind);
        let (payload, at) = (event.payload.get(), event.timestamp);
        let mut turn = self;
        match kind {
            Some(EventType::MESSAGE_USER) => {
                let named = event.session_id.as_deref().map(str::to_owned).zip(event.turn);
                // A prompt may have several messages.
                if turn.named != named || turn.outcome.is_some() {
                    let text = or_default::<MessagePayload>(payload).text.unwrap_or_default();
                    turn = Self {
                        task: first_line(&text),
                        prompt: Some(event.id.to_string()),
                        named,
                        step: Some(("thinks", at)),
                        is_dirty: true,
                        ..Self::default()
                    };
                }
            }
            Some(EventType::MESSAGE_ASSISTANT) => turn.step = Some(("thinks", at)),
            Some(EventType::TOOL_CALL) => {
                let CallPayload { tool_call_id, title, kind, .. } = or_default(payload);
                let id = tool_call_id.unwrap_or_default();
                turn.call(id, title.flatten().as_deref(), kind.as_deref(), at);
            }
            Some(EventType::TOOL_RESULT) => {
                let CallPayload { tool_call_id, .. } = or_default(payload);
                turn.call_ended(&tool_call_id.unwrap_or_default(), at);
            }
            Some(EventType::TURN_END | EventType::TURN_FAILED) => {
                let TurnPayload { stop_reason, reason, .. } = or_default(payload);
                turn.named = event.session_id.as_deref().map(str::to_owned).zip(event.turn);
                turn.end(&stop_reason.unwrap_or_default(), reason.as_deref());
            }
            _ => {}
        }
        turn
    }
}

/// The first line of a text that is not empty, bounded and harmless.
pub(super) fn first_line(text: &str) -> String {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    plain(&first[..first.floor_char_boundary(LONGEST_TEXT)])
}
