//! Folds events of the bus into events of the journal: chunks into messages, updates into calls.
//! Pure; bounded for each session and for all of them.

mod accesses;
mod calls;
mod files;
mod messages;
mod reports;
mod shrink;
mod tasks;
mod updates;

pub use self::messages::user_text;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::json;

use self::calls::Calls;
use self::messages::Message;
use self::tasks::{BegunTurn, FollowedTask};
use super::Keep;
use super::event::{EventType, NewEvent, Place};
use super::payload::{
    CostPayload, ModelPayload, StatePayload, TurnPayload, TurnSpent, UpdatePayload, UsagePayload,
};
use crate::model::{
    AgentId, AgentStatus, BlockedId, BlockedStatus, BudgetLimits, BudgetState, Event, Fork, Record,
    SessionId, SessionKey, TaskId, TaskReport, TimestampMs, TurnEnd, Usage, now_ms,
};

/// Sessions that are followed; past that the oldest is ended, and its next event starts it over.
const MOST_SESSIONS: usize = 4_096;

/// Permission requests of a session that wait for an answer; past that the oldest is given up.
const MOST_PERMISSIONS: usize = 256;

/// A row for the writer.
#[derive(Debug)]
pub(super) enum Row {
    Event(NewEvent),
    /// The next piece of an incomplete message, in case its end never comes.
    Draft(Draft),
}

#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// Numbered from 0 in each run.
    pub(super) number: u64,
    pub(super) key: SessionKey,
    pub(super) kind: EventType,
    pub(super) turn: u64,
    pub(super) started_ms: TimestampMs,
    pub(super) text: String,
}

pub(super) struct Fold {
    keep: Keep,
    sessions: IndexMap<SessionKey, Session>,
    rows: Vec<Row>,
    next_draft: u64,
    /// How each budget stood last; the agents are those of the configuration.
    budgets: HashMap<Option<AgentId>, (BudgetState, BudgetLimits)>,
    /// The last decision: the bus repeats its access for viewers.
    decided: Option<(BlockedId, BlockedStatus)>,
    tasks: IndexMap<TaskId, FollowedTask>,
}

#[derive(Default)]
struct Session {
    /// The session was opened, and not ended.
    is_open: bool,
    /// The session begins as a fork, and its `Opened` is to come.
    is_fork: bool,
    /// The number of the running turn, or of the next.
    turn: u64,
    /// Prompts without an end.
    running: u64,
    begun: Option<BegunTurn>,
    /// The task whose turn is the next to begin.
    next_task: Option<TaskReport>,
    replays: bool,
    message: Option<Message>,
    calls: Calls,
    usage: Option<Usage>,
    /// The last plan, as it came.
    plan: Option<Arc<str>>,
    /// The text of the last prompt: some agents repeat it as chunks.
    prompt: String,
    permissions: IndexMap<Arc<str>, Asked>,
    /// The files that were read in this turn.
    reads: HashSet<Arc<str>>,
    /// The uses of paths of an agent that is observed, in this turn.
    uses: usize,
}

struct Asked {
    params: Arc<str>,
    at: TimestampMs,
}

impl Session {
    fn is_waiting(&self) -> bool {
        self.calls.are_waiting() || self.message.as_ref().is_some_and(Message::has_undrafted)
    }
}

impl Fold {
    pub(super) fn new(keep: Keep) -> Self {
        Self {
            keep,
            sessions: IndexMap::new(),
            rows: Vec::new(),
            next_draft: 0,
            budgets: HashMap::new(),
            decided: None,
            tasks: IndexMap::new(),
        }
    }

    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::Record { key, record, turn, timestamp_ms } => {
                let session = self.session(key);
                let current = session.turn;
                session.turn = turn.unwrap_or(current);
                self.record(key, record, *timestamp_ms);
                // What a call took may come after the end of its turn.
                if matches!(record, Record::Spent(_) | Record::ModelCall(_)) {
                    self.session(key).turn = current;
                }
            }
            Event::Turn(turn) => self.turn_ended(turn),
            Event::Blocked(access) => {
                let now = (access.id.clone(), access.status);
                if self.decided.take().as_ref() != Some(&now) {
                    self.blocked(access, None, now_ms());
                }
            }
            Event::Agent(status) => self.agent(status),
            Event::Report(report) => self.report(report),
            Event::Budget(report) => self.budget(report),
            Event::Loop(report) => self.looped(report),
            Event::Conflict(conflict) => self.conflict(conflict),
            Event::Task(report) => self.task(report),
            _ => {}
        }
    }

    /// Records how many events were lost.
    pub(super) fn gap(&mut self, events: u64, why: &str) {
        let payload = json!({ "events": events, "reason": why });
        self.rows.push(Row::Event(NewEvent::new(Place::Team, EventType::GAP, &payload)));
    }

    /// Ends all sessions when the team stops.
    pub(super) fn end(&mut self) {
        let open: Vec<_> = self.sessions.keys().cloned().collect();
        for key in open {
            self.end_session(&key, "the team stopped");
        }
    }

    /// Puts out waiting calls and the new text of open messages, so that a kill loses little.
    pub(super) fn flush(&mut self) {
        let keys: Vec<_> = self.sessions.keys().cloned().collect();
        for key in keys {
            self.flush_calls(&key);
            self.draft(&key);
        }
    }

    /// Whether a batch must be sent: for rows, waiting calls, or messages that grew.
    pub(super) fn is_waiting(&self) -> bool {
        !self.rows.is_empty() || self.sessions.values().any(Session::is_waiting)
    }

    pub(super) fn row_count(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn take(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.rows)
    }

    fn record(&mut self, key: &SessionKey, record: &Record, at: TimestampMs) {
        match record {
            Record::Opened { is_new } => self.opened(key, *is_new, at),
            Record::Forked(fork) => self.forked(key, fork, at),
            Record::Closed => self.end_session(key, "closed"),
            Record::TurnBegan => self.turn_began(key, at),
            Record::Prompt(blocks) => self.prompt(key, blocks, at),
            Record::Replays(replays) => self.session(key).replays = *replays,
            Record::Update(update) => self.update(key, update, at),
            Record::Usage(usage) => self.usage(key, usage, at),
            Record::Spent(spending) => {
                self.push(key, EventType::USAGE_SPENT, &super::spending::payload(spending), at);
            }
            Record::ModelCall(call) => {
                self.push(key, EventType::MODEL_CALL, &super::model_call::payload(call), at);
            }
            Record::Compacted => self.push(key, EventType::COMPACT, &json!({}), at),
            Record::Model(model) => {
                let model = ModelPayload { id: model.id.to_string(), name: model.name.to_string() };
                let update = UpdatePayload { model: Some(model), ..UpdatePayload::default() };
                self.push(key, EventType::UPDATE, &update, at);
            }
            Record::PermissionAsked { id, params } => {
                let permissions = &mut self.session(key).permissions;
                if permissions.len() >= MOST_PERMISSIONS {
                    permissions.shift_remove_index(0);
                }
                permissions.insert(Arc::clone(id), Asked { params: Arc::clone(params), at });
            }
            Record::PermissionAnswered { id, result } => {
                self.permission(key, id, result.as_deref(), at);
            }
            Record::Decided(decided) => {
                self.decided = Some((decided.access.id.clone(), decided.access.status));
                self.blocked(&decided.access, Some(decided), at);
            }
            Record::FileRead { path, by } => self.file_read(key, path, *by, at),
            Record::PathUsed(used) => self.path_used(key, used, at),
            Record::FileChanged(change) => self.file_changed(key, change, at),
            Record::Dropped(events) => {
                let payload = json!({ "events": events, "reason": "the agent was too fast" });
                let place = Place::Agent(key.agent.clone());
                let event = NewEvent::new(place, EventType::GAP, &payload).at(at);
                self.rows.push(Row::Event(event));
            }
        }
    }

    fn opened(&mut self, key: &SessionKey, is_new: bool, at: TimestampMs) {
        let is_fork = std::mem::take(&mut self.session(key).is_fork);
        let begins_anew = is_new && !is_fork;
        if begins_anew && self.session(key).is_open {
            self.end_session(key, "another session has its id");
        }
        let session = self.session(key);
        if std::mem::replace(&mut session.is_open, true) {
            return;
        }
        let place = if begins_anew { Place::NewWire } else { Place::EarlierWire };
        let payload = json!({ "session": key.session.as_str() });
        let event = NewEvent::new(place(key.clone()), EventType::SESSION_START, &payload);
        let event = event.at(at).in_turn(session.turn);
        self.rows.push(Row::Event(event));
    }

    fn forked(&mut self, key: &SessionKey, fork: &Fork, at: TimestampMs) {
        let session = self.session(key);
        (session.is_open, session.is_fork, session.replays) = (true, true, false);
        let payload = json!({
            "from_session_id": &*fork.session,
            "from_event_id": &*fork.event,
            "how": fork.how.as_str(),
        });
        let place = Place::Fork {
            parent: fork.event.to_string(),
            agent: key.agent.clone(),
            wire_session_id: Some(key.session.to_string()),
        };
        let event = NewEvent::new(place, EventType::SESSION_FORK, &payload);
        self.rows.push(Row::Event(event.at(at).in_turn(0)));
    }

    fn end_session(&mut self, key: &SessionKey, reason: &str) {
        self.settle(key, now_ms());
        let Some(session) = self.sessions.shift_remove(key) else { return };
        if session.is_open {
            let place = Place::Wire(key.clone());
            let payload = json!({ "reason": reason });
            let event = NewEvent::new(place, EventType::SESSION_END, &payload);
            self.rows.push(Row::Event(event));
        }
    }

    fn turn_ended(&mut self, ended: &TurnEnd) {
        let at = now_ms();
        self.settle(&ended.key, at);
        let session = self.session(&ended.key);
        session.turn = ended.turn + 1;
        session.reads.clear();
        session.uses = 0;
        session.running = session.running.saturating_sub(1);
        let failed = &*ended.stop_reason == "error";
        let kind = if failed { EventType::TURN_FAILED } else { EventType::TURN_END };
        let payload = TurnPayload {
            stop_reason: Some(ended.stop_reason.to_string()),
            reason: ended.reason.as_deref().map(str::to_owned),
            spent: TurnSpent::of(&ended.spent),
        };
        let event = NewEvent::new(Place::Wire(ended.key.clone()), kind, &payload);
        let event = event.at(at).in_turn(ended.turn);
        let text = ended.reason.as_deref().unwrap_or_default();
        self.rows.push(Row::Event(event.found_by(text)));
    }

    fn usage(&mut self, key: &SessionKey, usage: &Usage, at: TimestampMs) {
        let session = self.session(key);
        if session.usage.as_ref() == Some(usage) {
            return;
        }
        session.usage = Some(usage.clone());
        let cost = usage.cost.as_ref();
        let cost = cost
            .map(|it| CostPayload { amount: Some(it.amount), currency: it.currency.to_string() });
        let payload = UsagePayload { used: usage.used, size: usage.size, cost };
        self.push(key, EventType::USAGE, &payload, at);
    }

    fn agent(&mut self, status: &AgentStatus) {
        let payload = StatePayload {
            state: status.state.as_str().to_owned(),
            pid: status.pid,
            reason: status.reason.clone(),
            restarts: status.restarts,
        };
        let place = Place::Agent(status.agent.clone());
        let event = NewEvent::new(place, EventType::AGENT_STATE, &payload);
        let event = event.at(status.timestamp_ms);
        let event = event.found_by(status.reason.clone().unwrap_or_default());
        if status.pid.is_none() {
            self.end_sessions_of(&status.agent, &format!("the agent is {}", status.state.as_str()));
        }
        self.rows.push(Row::Event(event));
    }

    fn end_sessions_of(&mut self, agent: &AgentId, reason: &str) {
        let keys: Vec<_> =
            self.sessions.keys().filter(|key| key.agent == *agent).cloned().collect();
        for key in keys {
            self.end_session(&key, reason);
        }
    }

    /// Ends the open message, and the calls whose end never came.
    fn settle(&mut self, key: &SessionKey, at: TimestampMs) {
        self.end_message(key, at);
        self.end_calls(key, at);
    }

    /// Adds an event of the session's current turn.
    fn push(
        &mut self,
        key: &SessionKey,
        kind: EventType,
        payload: &impl Serialize,
        at: TimestampMs,
    ) {
        self.push_found(key, kind, payload, at, String::new());
    }

    fn push_found(
        &mut self,
        key: &SessionKey,
        kind: EventType,
        payload: &impl Serialize,
        at: TimestampMs,
        text: String,
    ) {
        let turn = self.session(key).turn;
        let event = NewEvent::new(Place::Wire(key.clone()), kind, payload);
        let event = event.at(at).in_turn(turn).found_by(text);
        self.rows.push(Row::Event(event));
    }

    fn session(&mut self, key: &SessionKey) -> &mut Session {
        if !self.sessions.contains_key(key) {
            if self.sessions.len() >= MOST_SESSIONS
                && let Some(oldest) = self.sessions.keys().next().cloned()
            {
                self.end_session(&oldest, "too many sessions are open");
            }
            self.sessions.insert(key.clone(), Session::default());
        }
        &mut self.sessions[key]
    }

    fn keeps_texts(&self) -> bool {
        self.keep.texts
    }
}

/// The place that a key names: some accesses belong to an agent alone.
fn place_of(key: &SessionKey) -> Place {
    if key.session == SessionId::new("") {
        return Place::Agent(key.agent.clone());
    }
    Place::Wire(key.clone())
}
