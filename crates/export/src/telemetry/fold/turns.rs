//! Turns: `invoke_workflow` for what the team does, and `invoke_agent` in it for the agent's part.

use std::sync::Arc;

use indexmap::IndexMap;

use super::decisions::OpenPermission;
use super::tools::{EndedCalls, OpenTool};
use super::{SpanFold, contents};
use crate::model::{SessionKey, Spending, Spent, TaskId, TimestampMs, TokenKind, TurnEnd};
use crate::telemetry::names;
use crate::telemetry::span::{SpanDraft, cut};
use crate::telemetry::traceparent::Traceparent;

/// Bytes of a stop reason.
const LONGEST_REASON: usize = 128;

#[derive(Default)]
pub(super) struct SessionSpans {
    pub(super) model: Option<Arc<str>>,
    /// The session is being loaded: updates repeat earlier ones.
    pub(super) replays: bool,
    pub(super) turn: Option<OpenTurn>,
    /// Prompts behind the turn's, which began before it ended.
    more: u32,
    /// The task that the next turn is for.
    pub(super) task: Option<TaskId>,
    /// The session was closed while its turn ran.
    pub(super) is_closed: bool,
}

#[derive(Default)]
pub(super) struct OpenTurn {
    pub(super) began: TimestampMs,
    /// The number of it in its session; None: nobody said it.
    number: Option<u64>,
    /// None until a span needs it: which task the turn is for may be said a moment after it began.
    spans: Option<TurnSpans>,
    pub(super) task: Option<TaskId>,
    /// The task that was told of too late to be the parent.
    pub(super) late_task: Option<Traceparent>,
    pub(super) tools: IndexMap<Arc<str>, OpenTool>,
    pub(super) ended_tools: EndedCalls,
    pub(super) permissions: IndexMap<Arc<str>, OpenPermission>,
    spent: Spent,
    /// As the spending names it.
    spent_model: Option<Arc<str>>,
    prompt: Option<String>,
    pub(super) answer: String,
    /// Events were missed since it began.
    pub(super) has_gap: bool,
}

/// The places of a turn's spans.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnSpans {
    /// None for a task's turn: the task has one.
    workflow: Option<Traceparent>,
    parent: Traceparent,
    pub(super) agent: Traceparent,
}

impl OpenTurn {
    /// Whether the places of its spans are settled.
    pub(super) fn is_placed(&self) -> bool {
        self.spans.is_some()
    }
}

impl SpanFold {
    pub(super) fn turn_began(&mut self, key: &SessionKey, number: Option<u64>, at: TimestampMs) {
        if self.turn(key).is_some_and(|turn| turn.has_gap) {
            // Its end was missed.
            self.give_up_turn(key, at);
        }
        let session = self.session(key, at);
        session.is_closed = false;
        if session.turn.is_some() {
            session.more = session.more.saturating_add(1);
            return;
        }
        let task = session.task.take();
        session.turn = Some(OpenTurn { began: at, number, task, ..OpenTurn::default() });
    }

    pub(super) fn prompted(&mut self, key: &SessionKey, blocks: &str) {
        if self.settings.contents
            && let Some(turn) = self.turn(key)
            && turn.prompt.is_none()
        {
            turn.prompt = Some(contents::text_of_blocks(blocks));
        }
    }

    /// Adds what a call of a turn took. The span of a turn that has ended is sent.
    pub(super) fn spent(&mut self, key: &SessionKey, spending: &Spending, of: Option<u64>) {
        let is_of = |turn: &OpenTurn| of.is_none() || turn.number.is_none() || turn.number == of;
        if let Some(turn) = self.turn(key).filter(|turn| is_of(turn)) {
            turn.spent.add(spending);
            turn.spent_model = spending.model.clone().or(turn.spent_model.take());
        }
    }

    pub(super) fn turn_ended(&mut self, ended: &TurnEnd, now: TimestampMs) {
        self.close_turn(&ended.key, Some(ended), now);
        let Some(session) = self.sessions.get_mut(&ended.key) else { return };
        if session.more > 0 {
            session.more -= 1;
            self.turn_began(&ended.key, Some(ended.turn + 1), now);
        } else if session.is_closed {
            self.sessions.shift_remove(&ended.key);
        }
    }

    /// Ends a turn whose end did not come.
    pub(super) fn give_up_turn(&mut self, key: &SessionKey, now: TimestampMs) {
        self.close_turn(key, None, now);
        if let Some(session) = self.sessions.get_mut(key) {
            session.more = 0;
        }
    }

    pub(super) fn turn(&mut self, key: &SessionKey) -> Option<&mut OpenTurn> {
        self.sessions.get_mut(key)?.turn.as_mut()
    }

    /// The places of an open turn's spans, settled now if they were not.
    pub(super) fn turn_spans(&mut self, key: &SessionKey) -> Option<TurnSpans> {
        let turn = self.turn(key)?;
        if let Some(spans) = turn.spans {
            return Some(spans);
        }
        let task = turn.task.clone();
        let of_task = task.and_then(|id| Some(self.tasks.get(&id)?.span.place));
        let workflow = if of_task.is_some() { None } else { Some(self.root()) };
        let parent = of_task.or(workflow)?;
        let spans = TurnSpans { workflow, parent, agent: self.child_of(parent) };
        self.turn(key)?.spans = Some(spans);
        Some(spans)
    }

    fn close_turn(&mut self, key: &SessionKey, ended: Option<&TurnEnd>, now: TimestampMs) {
        let Some(spans) = self.turn_spans(key) else { return };
        self.end_tools(key, now);
        self.end_permissions(key, now);
        self.end_waits_with_gaps(key, now);
        let Some(session) = self.sessions.get_mut(key) else { return };
        let (model, Some(turn)) = (session.model.clone(), session.turn.take()) else { return };
        let is_incomplete = ended.is_none() || turn.has_gap;
        if let Some(place) = spans.workflow {
            let (operation, team) = (names::INVOKE_WORKFLOW, &*self.settings.team);
            let span = SpanDraft::new(operation, team, place, self.parent, turn.began);
            let mut span = span.operation(operation);
            span.link(self.run);
            span.put(names::AGENT_NAME, team);
            span.put(names::CONVERSATION_ID, key.session.as_str());
            self.say_end(&mut span, ended, is_incomplete);
            self.done.push(span.end(now));
        }
        let span = self.agent_span(key, &turn, spans, model.as_deref());
        let span = self.agent_ended(span, &turn, ended, is_incomplete);
        self.done.push(span.end(now));
    }

    fn agent_span(
        &self,
        key: &SessionKey,
        turn: &OpenTurn,
        spans: TurnSpans,
        model: Option<&str>,
    ) -> SpanDraft {
        let (operation, agent) = (names::INVOKE_AGENT, key.agent.as_str());
        let facts = self.settings.agents.get(&key.agent);
        let model = model
            .or(turn.spent_model.as_deref())
            .or_else(|| facts.and_then(|facts| facts.model.as_deref()));
        let program = facts.and_then(|facts| facts.program.as_deref());
        let span = SpanDraft::new(operation, agent, spans.agent, Some(spans.parent), turn.began);
        let mut span = span.of_client().operation(operation);
        span.put(names::PROVIDER_NAME, &names::provider(model, program));
        span.put(names::AGENT_ID, agent);
        span.put(names::AGENT_NAME, agent);
        span.put(names::CONVERSATION_ID, key.session.as_str());
        span.put_some(names::REQUEST_MODEL, model);
        if let Some(task) = turn.late_task {
            span.link(task);
        }
        span
    }

    fn agent_ended(
        &self,
        mut span: SpanDraft,
        turn: &OpenTurn,
        ended: Option<&TurnEnd>,
        is_incomplete: bool,
    ) -> SpanDraft {
        put_spent(&mut span, &turn.spent);
        let reason = ended.map(|ended| cut(&ended.stop_reason, LONGEST_REASON));
        if let Some(reason) = reason {
            span.put_all(names::FINISH_REASONS, &[reason]);
        }
        if let Some(prompt) = &turn.prompt {
            span.put_content(names::INPUT_MESSAGES, &contents::messages("user", prompt));
        }
        if !turn.answer.is_empty() {
            span.put_content(
                names::OUTPUT_MESSAGES,
                &contents::messages("assistant", &turn.answer),
            );
        }
        self.say_end(&mut span, ended, is_incomplete);
        span
    }

    fn say_end(&self, span: &mut SpanDraft, ended: Option<&TurnEnd>, is_incomplete: bool) {
        span.put_number(names::TURN_NUMBER, ended.map(|ended| ended.turn));
        if let Some(ended) = ended.filter(|ended| &*ended.stop_reason == "error") {
            let why = ended.reason.as_deref().filter(|_| self.settings.contents);
            span.fail(names::TURN_FAILED, why.unwrap_or_default());
        }
        span.put_flag(names::INCOMPLETE, is_incomplete);
    }
}

fn put_spent(span: &mut SpanDraft, spent: &Spent) {
    let known = |kind| spent.tokens.get(kind).known;
    // Without what was not cached the sum would be too low.
    let input = known(TokenKind::Input).map(|input| {
        let cached = [TokenKind::CachedRead, TokenKind::CachedWrite];
        cached.iter().filter_map(|kind| known(*kind)).fold(input, u64::saturating_add)
    });
    span.put_number(names::INPUT_TOKENS, input);
    span.put_number(names::CACHE_READ_TOKENS, known(TokenKind::CachedRead));
    span.put_number(names::CACHE_WRITE_TOKENS, known(TokenKind::CachedWrite));
    span.put_number(names::OUTPUT_TOKENS, known(TokenKind::Output));
    span.put_number(names::REASONING_TOKENS, known(TokenKind::Reasoning));
    let mut costs = spent.cost.iter();
    if let Some((currency, amount)) = costs.next() {
        span.put_amount(names::COST_AMOUNT, *amount);
        span.put(names::COST_CURRENCY, currency);
        span.put_flag(names::COST_ESTIMATED, spent.cost_is_estimated);
        span.put_flag(names::COST_INCOMPLETE, spent.cost_unknown > 0 || costs.next().is_some());
    }
}
