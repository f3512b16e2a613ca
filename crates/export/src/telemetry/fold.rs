//! Folds events of the bus into spans. Pure: the clock and the ids are passed in. Bounded: past each
//! bound the oldest ends as incomplete.

mod contents;
mod decisions;
mod tasks;
mod tools;
mod turns;

use std::collections::HashMap;

use indexmap::IndexMap;

use self::decisions::OpenWait;
use self::tasks::OpenTask;
use self::turns::SessionSpans;
use super::names;
use super::span::SpanDraft;
use super::traceparent::{SAMPLED, Traceparent};
use crate::model::{AgentId, Event, Record, SessionKey, TaskId, TimestampMs};
use crate::otlp::Span;

/// Sessions that are followed.
const MOST_SESSIONS: usize = 4_096;

/// Accesses and writes that wait for a decision.
const MOST_WAITS: usize = 1_024;

/// Tasks that are not done.
const MOST_TASKS: usize = 1_024;

/// Makes the next id; never 0.
pub(super) type Ids = Box<dyn FnMut() -> u64 + Send>;

/// The known facts of an agent, from its configuration.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AgentFacts {
    /// The title of its program; None if that is not known.
    pub program: Option<String>,
    pub model: Option<String>,
}

/// The facts that spans have besides events.
#[derive(Default, Debug)]
pub struct FoldSettings {
    pub team: String,
    /// Spans have texts, paths and arguments.
    pub contents: bool,
    /// By agent; one that came later is missing.
    pub agents: HashMap<AgentId, AgentFacts>,
}

pub(super) struct SpanFold {
    settings: FoldSettings,
    ids: Ids,
    /// The span of the team's run, which agents get as their parent.
    run: Traceparent,
    /// The span that the whole run is a part of.
    parent: Option<Traceparent>,
    began: TimestampMs,
    sessions: IndexMap<SessionKey, SessionSpans>,
    /// By the kind and id of the decision.
    waits: IndexMap<String, OpenWait>,
    tasks: IndexMap<TaskId, OpenTask>,
    /// Bytes of the contents of open calls.
    content_bytes: usize,
    done: Vec<Span>,
}

impl SpanFold {
    pub(super) fn new(
        settings: FoldSettings,
        mut ids: Ids,
        parent: Option<Traceparent>,
        now: TimestampMs,
    ) -> Self {
        let trace = parent.map_or_else(|| new_trace(&mut ids), |parent| parent.trace);
        let flags = parent.map_or(SAMPLED, |parent| parent.flags);
        let run = Traceparent { trace, span: ids(), flags, is_remote: false };
        Self {
            settings,
            ids,
            run,
            parent,
            began: now,
            sessions: IndexMap::new(),
            waits: IndexMap::new(),
            tasks: IndexMap::new(),
            content_bytes: 0,
            done: Vec::new(),
        }
    }

    /// The context that agents get.
    pub(super) fn run_context(&self) -> Traceparent {
        self.run
    }

    pub(super) fn event(&mut self, event: &Event, now: TimestampMs) {
        match event {
            Event::Record { key, record: Record::Spent(spending), turn, .. } => {
                self.spent(key, spending, *turn);
            }
            Event::Record { key, record: Record::TurnBegan, turn, timestamp_ms } => {
                self.turn_began(key, *turn, *timestamp_ms);
            }
            Event::Record { key, record, timestamp_ms, .. } => {
                self.record(key, record, *timestamp_ms);
            }
            Event::Turn(ended) => self.turn_ended(ended, now),
            Event::Blocked(access) => self.blocked(access, now),
            Event::Conflict(conflict) => self.conflict(conflict, now),
            Event::Task(report) => self.task(report),
            _ => {}
        }
    }

    /// Events were missed, maybe ends of turns, and decisions.
    pub(super) fn missed(&mut self) {
        for wait in self.waits.values_mut() {
            wait.has_gap = true;
            wait.span.put_flag(names::INCOMPLETE, true);
        }
        for task in self.tasks.values_mut() {
            task.span.put_flag(names::INCOMPLETE, true);
        }
        for turn in self.sessions.values_mut().filter_map(|session| session.turn.as_mut()) {
            turn.has_gap = true;
        }
    }

    /// Ends all that is open, and the run.
    pub(super) fn end(&mut self, now: TimestampMs) {
        let waiting: Vec<_> = self.waits.drain(..).collect();
        for (_, wait) in waiting {
            self.incomplete(wait.span, now);
        }
        let open: Vec<_> = self.sessions.keys().cloned().collect();
        for key in open {
            self.give_up_turn(&key, now);
        }
        let tasks: Vec<_> = self.tasks.drain(..).collect();
        for (_, task) in tasks {
            self.incomplete(task.span, now);
        }
        let team = self.settings.team.clone();
        let mut run = SpanDraft::new(names::RUN, &team, self.run, self.parent, self.began);
        run.put(names::TEAM_NAME, &team);
        self.done.push(run.end(now));
    }

    pub(super) fn take(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.done)
    }

    fn record(&mut self, key: &SessionKey, record: &Record, at: TimestampMs) {
        match record {
            Record::Model(model) => self.session(key, at).model = Some(model.id.clone()),
            Record::Replays(replays) => self.session(key, at).replays = *replays,
            Record::Closed => self.closed(key),
            Record::Prompt(blocks) => self.prompted(key, blocks),
            Record::Update(update) => self.update(key, update, at),
            Record::PermissionAsked { id, params } => self.permission_asked(key, id, params, at),
            Record::PermissionAnswered { id, result } => {
                self.permission_answered(key, id, result.as_deref(), at);
            }
            Record::Decided(decided) => self.decided(decided, at),
            _ => {}
        }
    }

    /// The session, which is followed from now on.
    fn session(&mut self, key: &SessionKey, now: TimestampMs) -> &mut SessionSpans {
        if !self.sessions.contains_key(key)
            && self.sessions.len() >= MOST_SESSIONS
            && let Some(oldest) = self.oldest_session()
        {
            self.give_up_turn(&oldest, now);
            self.sessions.shift_remove(&oldest);
        }
        self.sessions.entry(key.clone()).or_default()
    }

    /// The session to forget: one without a turn, if there is any.
    fn oldest_session(&self) -> Option<SessionKey> {
        let idle = self.sessions.iter().find(|(_, session)| session.turn.is_none());
        idle.or_else(|| self.sessions.first()).map(|(key, _)| key.clone())
    }

    /// A session that is over needs nothing any more, unless its turn goes on.
    fn closed(&mut self, key: &SessionKey) {
        let Some(session) = self.sessions.get_mut(key) else { return };
        session.is_closed = true;
        if session.turn.is_none() {
            self.sessions.shift_remove(key);
        }
    }

    /// The place of a span without a parent in the team.
    fn root(&mut self) -> Traceparent {
        let trace = self.parent.map_or_else(|| new_trace(&mut self.ids), |parent| parent.trace);
        Traceparent { trace, ..self.child_of(self.run) }
    }

    fn child_of(&mut self, parent: Traceparent) -> Traceparent {
        Traceparent { span: (self.ids)(), is_remote: false, ..parent }
    }

    /// A span without a parent in the team, which is linked with the run.
    fn root_span(&mut self, operation: &str, what: &str, at: TimestampMs) -> SpanDraft {
        let place = self.root();
        let mut span = SpanDraft::new(operation, what, place, self.parent, at);
        span.link(self.run);
        span
    }

    fn incomplete(&mut self, mut span: SpanDraft, now: TimestampMs) {
        span.put_flag(names::INCOMPLETE, true);
        self.done.push(span.end(now));
    }
}

fn new_trace(ids: &mut Ids) -> u128 {
    u128::from(ids()) << 64 | u128::from(ids())
}
