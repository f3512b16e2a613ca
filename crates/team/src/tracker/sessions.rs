//! The tracker's core: all sessions of the team and the orchestrator's view. Inputs go in, events
//! come out. Pure: ticks and times are passed in.

mod moves;
mod overlaps;
mod records;
mod writes;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::sync::Arc;

use indexmap::IndexMap;
use tracing::warn;

use self::writes::OnDisk;
use super::heat::Changes;
use super::overlap::Overlaps;
use super::session::{TrackedSession, Turns};
use super::session_input::SessionInput;
use super::view::View;
use super::{OrchestratorView, SessionReport, Settings, Symbols};
use crate::bus::Rendered;
use crate::model::{
    AgentId, Event, LoopReport, SessionKey, SessionMode, Snapshot, Spending, Spent, TimestampMs,
    TurnEnd, Usage, UsageReport,
};

/// Bounds of the tracker's state, most of them for each agent.
#[derive(Clone, Copy, Debug)]
struct AgentQuota {
    /// Sessions of an agent. Over it the stalest is closed, those without a running turn first.
    sessions: usize,
    /// Nodes in all sessions of an agent; nodes that only the kernel saw may take half. Over it new
    /// paths are dropped, counted and logged; cooling makes room within seconds.
    nodes: usize,
    /// Bytes of the paths of these nodes, which all go to each client that joins.
    path_bytes: usize,
    /// Closed sessions of all agents whose prompts still run. Beyond this, the `turn` lines of the
    /// oldest are dropped, with a warning.
    closing: usize,
}

const LIMITS: AgentQuota =
    AgentQuota { sessions: 1_000, nodes: 20_000, path_bytes: 4 << 20, closing: 10_000 };

/// A session's number in the order of appearance.
type Number = u64;

#[derive(Debug)]
pub(super) struct Sessions {
    settings: Settings,
    limits: AgentQuota,
    /// In order of appearance.
    live: BTreeMap<Number, TrackedSession>,
    numbers: HashMap<SessionKey, Number>,
    next_number: Number,
    /// Sessions that the next tick visits.
    active: BTreeSet<Number>,
    /// Sessions closed while prompts ran: the end of each prompt still gets its `turn` line.
    closing: IndexMap<SessionKey, Turns>,
    agents: HashMap<AgentId, AgentLoad>,
    view: Option<View>,
    on_disk: OnDisk,
    overlaps: Overlaps,
    symbols: Option<Arc<dyn Symbols>>,
    /// The turns that sessions had before this run.
    past_turns: HashMap<SessionKey, u64>,
    /// The key of the empty snapshot, without a session and a view.
    default_key: Option<SessionKey>,
    /// By all sessions, those that are closed too.
    spent: Spent,
    /// Whether a usage changed since the view's last sum.
    usage_changed: bool,
    /// Whether any node changed since the last tick.
    nodes_changed: bool,
    /// Whether a session was opened or closed, or has another mode or model.
    roster_changed: bool,
    input_count: u64,
    events: Vec<Event>,
}

/// An agent's share of its [`AgentQuota`].
#[derive(Default, Debug)]
struct AgentLoad {
    sessions: usize,
    nodes: usize,
    path_bytes: usize,
    /// Whether it was logged that nodes are dropped.
    is_full: bool,
    /// Whether it was logged that sessions are closed to make room.
    is_crowded: bool,
}

impl Sessions {
    pub(super) fn new(settings: Settings, view: OrchestratorView) -> Self {
        let (view, default_key) = match view {
            OrchestratorView::Agent(agent) => (Some(View::designated(agent)), None),
            OrchestratorView::External(key) => (Some(View::external(key)), None),
            OrchestratorView::None(key) => (None, Some(key)),
        };
        let announcement = view.as_ref().map(|view| Event::Snapshot(view.snapshot()));
        Self {
            settings,
            limits: LIMITS,
            live: BTreeMap::new(),
            numbers: HashMap::new(),
            next_number: 0,
            active: BTreeSet::new(),
            closing: IndexMap::new(),
            agents: HashMap::new(),
            view,
            on_disk: OnDisk::default(),
            overlaps: Overlaps::default(),
            symbols: None,
            past_turns: HashMap::new(),
            default_key,
            spent: Spent::default(),
            usage_changed: false,
            nodes_changed: false,
            roster_changed: false,
            input_count: 0,
            events: announcement.into_iter().collect(),
        }
    }

    /// Applies an input of a session.
    pub(super) fn input(&mut self, key: &SessionKey, input: SessionInput, at: TimestampMs) {
        if let SessionInput::Update(update) = input {
            // It is only passed on: the map must not depend on subscribers.
            let (key, mode) = (key.clone(), self.mode(key));
            return self.events.push(Event::SessionUpdate { key, mode, update });
        }
        let Some(input) = self.input_while_closing(key, input) else { return };
        let Some(number) = self.number(key, &input) else { return };
        let Some(session) = self.live.get_mut(&number) else { return };
        self.input_count += 1;
        session.last_input = self.input_count;
        match input {
            SessionInput::Opened { is_new } => {
                self.roster_changed |= !session.is_open;
                session.open(is_new, self.past_turns.get(key).copied());
            }
            SessionInput::Model(model) => {
                self.roster_changed |= session.model.as_ref() != Some(&model);
                session.model = Some(model);
            }
            SessionInput::Update(_) | SessionInput::Record(_) => {}
            SessionInput::Closed => self.close(number),
            SessionInput::Touched { .. } | SessionInput::Wrote { .. } => {
                self.touch(number, input, at);
            }
            SessionInput::Usage { first_used, usage } => self.report(number, first_used, usage),
            SessionInput::Spent(spending, began) => {
                self.spend(number, &spending, began.unwrap_or(at));
            }
            SessionInput::Looped(found) => {
                let (key, mode) = (key.clone(), self.mode(key));
                let report = LoopReport { key, mode, found, timestamp_ms: at };
                self.events.push(Event::Loop(report));
            }
            SessionInput::Compacted => session.compact(),
            SessionInput::TurnBegan => session.begin_turn(at),
            SessionInput::TurnEnded { stop_reason, reason } => {
                self.end_turn(number, (stop_reason, reason), at);
            }
        }
        if self.live.get(&number).is_some_and(|session| session.map.is_active()) {
            self.active.insert(number);
        }
    }

    /// Passes one tick and returns whether any node changed since the last one.
    pub(super) fn tick(&mut self) -> bool {
        self.round(Some(self.settings.decay_rate));
        mem::take(&mut self.nodes_changed)
    }

    /// Emits all changes, without a tick.
    pub(super) fn flush(&mut self) {
        self.round(None);
        self.sum_usage();
    }

    /// Every session, the default target first (or an empty one). Consistent with the taken events
    /// if [`Self::flush`] came before.
    pub(super) fn snapshots(&mut self) -> Vec<Arc<Rendered<Snapshot>>> {
        let mut all: Vec<_> = self.view.iter_mut().map(View::shared_snapshot).collect();
        for session in self.live.values_mut() {
            if !is_shown_by(self.view.as_ref(), session) {
                all.push(session.shared_snapshot());
            }
        }
        if self.view.is_none() {
            // Session `""` comes last.
            all.sort_by_key(|snapshot| snapshot.key.session.as_str().is_empty());
        }
        if let (true, Some(key)) = (all.is_empty(), &self.default_key) {
            all.push(TrackedSession::new(key.clone()).shared_snapshot());
        }
        all
    }

    /// The last usage of each session, in the order of [`Self::snapshots`].
    pub(super) fn usages(&self) -> Vec<UsageReport> {
        let view = self.view.iter().filter_map(View::usage);
        view.chain(self.on_the_wire().filter_map(TrackedSession::usage_report)).collect()
    }

    /// Every session, in order of appearance.
    pub(super) fn reports(&self) -> Vec<SessionReport> {
        let report = |session: &TrackedSession| SessionReport {
            key: session.key.clone(),
            mode: if is_shown_by(self.view.as_ref(), session) {
                SessionMode::Orchestrator
            } else {
                SessionMode::SingleAgent
            },
            is_open: session.is_open,
            model: session.model.clone(),
            usage: session.usage.clone(),
            spent: session.spent.clone(),
            is_running: session.turns.is_running(),
        };
        self.live.values().map(report).collect()
    }

    /// Whether a session was opened or closed, or has another mode or model, since the last call.
    pub(super) fn take_roster_changed(&mut self) -> bool {
        mem::take(&mut self.roster_changed)
    }

    /// The events to publish, in order.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        self.sum_usage();
        mem::take(&mut self.events)
    }

    fn report(&mut self, number: Number, first_used: u64, usage: Usage) {
        let Some(session) = self.live.get_mut(&number) else { return };
        if session.report(first_used, usage, &self.settings) {
            self.usage_changed = true;
            if !is_shown_by(self.view.as_ref(), session) {
                self.events.extend(session.usage_report().map(Event::Usage));
            }
        }
    }

    fn spend(&mut self, number: Number, spending: &Spending, began: TimestampMs) {
        let Some(session) = self.live.get_mut(&number) else { return };
        session.spend(spending, began);
        self.spent.add(spending);
        self.usage_changed = true;
        if !is_shown_by(self.view.as_ref(), session) {
            self.events.extend(session.usage_report().map(Event::Usage));
        }
    }

    fn end_turn(
        &mut self,
        number: Number,
        (stop_reason, reason): (Arc<str>, Option<Arc<str>>),
        at: TimestampMs,
    ) {
        let Some(session) = self.live.get_mut(&number) else { return };
        let key = session.key.clone();
        let Some(turn) = session.end_turn(&self.settings, at) else {
            return never_began(&key);
        };
        let spent = std::mem::take(&mut session.turn_spent);
        let is_shown_by_view = is_shown_by(self.view.as_ref(), session);
        self.flush_session(number, None);
        if is_shown_by_view {
            self.flush_view();
            self.sum_usage();
        }
        let mode = self.mode(&key);
        self.events.push(Event::Turn(TurnEnd { key, mode, turn, stop_reason, reason, spent }));
    }

    /// The session's mode on the wire.
    fn mode(&self, key: &SessionKey) -> SessionMode {
        match &self.view {
            Some(view) if view.key() == key => SessionMode::Orchestrator,
            _ => SessionMode::SingleAgent,
        }
    }

    /// Flushes the sessions, then the view; with a decay rate, a tick passes.
    fn round(&mut self, decay_rate: Option<f64>) {
        let active: Vec<_> = self.active.iter().copied().collect();
        for number in active {
            self.flush_session(number, decay_rate);
        }
        self.flush_disk(decay_rate);
        self.flush_view();
    }

    /// With a decay rate, a tick passes.
    fn flush_session(&mut self, number: Number, decay_rate: Option<f64>) {
        let Some(session) = self.live.get_mut(&number) else { return };
        let changes = match decay_rate {
            Some(rate) => session.map.tick(rate),
            None => session.map.flush(),
        };
        if !session.map.is_active() {
            self.active.remove(&number);
        }
        self.deliver(number, changes);
    }

    fn flush_view(&mut self) {
        let delta = self.view.as_mut().and_then(View::flush);
        self.events.extend(delta.map(Event::Delta));
    }

    /// Applies a session's changes to the view and, if the session shows its own map, emits them.
    fn deliver(&mut self, number: Number, changes: Changes) {
        let Some(session) = self.live.get_mut(&number) else { return };
        if changes.is_empty() {
            return;
        }
        self.nodes_changed = true;
        if let Some(load) = self.agents.get_mut(&session.key.agent) {
            load.give_back(&changes.removed);
        }
        if let Some(view) = &mut self.view {
            view.merge.apply(number, &changes);
        }
        let shared = self.overlaps.apply(number, &changes);
        if !is_shown_by(self.view.as_ref(), session) {
            self.events.push(Event::Delta(session.delta(changes)));
        }
        for path in &shared {
            self.publish_overlaps(number, path);
        }
    }

    fn sum_usage(&mut self) {
        if mem::take(&mut self.usage_changed)
            && let Some(view) = &mut self.view
        {
            let usages = self.live.values().filter_map(|session| session.usage.as_ref());
            self.events.extend(view.sum(usages, &self.spent).map(Event::Usage));
        }
    }

    /// The sessions that show their own map.
    fn on_the_wire(&self) -> impl Iterator<Item = &TrackedSession> {
        self.live.values().filter(|session| !is_shown_by(self.view.as_ref(), session))
    }
}

impl AgentLoad {
    /// Reserves room for a node of `key` in one of `shares` parts of the limits; false if there is
    /// no room.
    fn take_node(
        &mut self,
        key: &SessionKey,
        path: &str,
        limits: AgentQuota,
        shares: usize,
    ) -> bool {
        let path_bytes = self.path_bytes + path.len();
        if self.nodes < limits.nodes / shares && path_bytes <= limits.path_bytes / shares {
            self.nodes += 1;
            self.path_bytes = path_bytes;
            return true;
        }
        if !mem::replace(&mut self.is_full, true) {
            let (agent, nodes, path_bytes) = (&key.agent, self.nodes, self.path_bytes);
            warn!(%agent, nodes, path_bytes, "the agent's map is full: new paths are dropped");
        }
        false
    }

    fn give_back(&mut self, paths: &[Arc<str>]) {
        self.nodes -= paths.len();
        self.path_bytes -= paths.iter().map(|path| path.len()).sum::<usize>();
        self.is_full &= paths.is_empty();
    }
}

fn never_began(key: &SessionKey) {
    warn!(agent = %key.agent, session = %key.session, "the end of a turn that never began");
}

/// Whether the session shows the view in place of its own map.
fn is_shown_by(view: Option<&View>, session: &TrackedSession) -> bool {
    view.is_some_and(|view| *view.key() == session.key)
}

#[cfg(test)]
mod tests;
