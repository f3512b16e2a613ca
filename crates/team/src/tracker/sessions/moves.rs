//! Opens and closes sessions, and moves the view from one session to another.

use tracing::warn;

use super::{Number, Sessions, is_shown_by, never_began};
use crate::model::{AgentId, Event, SessionKey, SessionMode, Snapshot, Spent, TurnEnd};
use crate::tracker::heat::Changes;
use crate::tracker::session::TrackedSession;
use crate::tracker::session_input::SessionInput;
use crate::tracker::view::View;

impl Sessions {
    /// Moves the view to the designated orchestrator's session `key`.
    pub(in crate::tracker) fn orchestrate(&mut self, key: SessionKey) {
        if self.view.as_ref().is_some_and(|view| view.may_move_to(&key)) {
            self.move_view(key);
        }
    }

    /// Closes all sessions of an agent that left.
    pub(in crate::tracker) fn forget(&mut self, agent: &AgentId) {
        let of_agent = self.live.iter().filter(|(_, session)| session.key.agent == *agent);
        let numbers: Vec<Number> = of_agent.map(|(number, _)| *number).collect();
        for number in numbers {
            self.close(number);
        }
    }

    /// Returns the session's number; opens it if `input` can begin a session.
    pub(super) fn number(&mut self, key: &SessionKey, input: &SessionInput) -> Option<Number> {
        if let Some(number) = self.numbers.get(key) {
            return Some(*number);
        }
        match input {
            SessionInput::Closed
            | SessionInput::Wrote { .. }
            | SessionInput::Compacted
            | SessionInput::Spent(..)
            | SessionInput::Looped(_)
            | SessionInput::Model(_)
            | SessionInput::Update(_)
            | SessionInput::Record(_) => None,
            SessionInput::TurnEnded { .. } => {
                never_began(key);
                None
            }
            SessionInput::Opened { .. } => {
                if self.view.as_ref().is_some_and(|view| view.waits_for(key)) {
                    self.move_view(key.clone());
                }
                Some(self.open(key))
            }
            SessionInput::Touched { .. } | SessionInput::Usage { .. } | SessionInput::TurnBegan => {
                Some(self.open(key))
            }
        }
    }

    /// Applies an input of a session closed while prompts ran; returns any other input.
    pub(super) fn input_while_closing(
        &mut self,
        key: &SessionKey,
        input: SessionInput,
    ) -> Option<SessionInput> {
        let mode = self.mode(key);
        let Some(turns) = self.closing.get_mut(key) else { return Some(input) };
        let is_open_again = self.numbers.contains_key(key);
        match input {
            SessionInput::TurnEnded { stop_reason, reason } => {
                if let Some(turn) = turns.end() {
                    let (key, spent) = (key.clone(), Spent::default());
                    let end = TurnEnd { key, mode, turn, stop_reason, reason, spent };
                    self.events.push(Event::Turn(end));
                }
                if !turns.is_running() {
                    self.closing.shift_remove(key);
                }
            }
            input if is_open_again => return Some(input),
            SessionInput::Opened { .. } => return Some(input),
            SessionInput::TurnBegan => turns.begin(),
            SessionInput::Spent(spending, _) => self.spent.add(&spending),
            // Late inputs of a prompt do not open the session again.
            SessionInput::Closed
            | SessionInput::Touched { .. }
            | SessionInput::Wrote { .. }
            | SessionInput::Usage { .. }
            | SessionInput::Compacted
            | SessionInput::Looped(_)
            | SessionInput::Model(_)
            | SessionInput::Update(_)
            | SessionInput::Record(_) => {}
        }
        None
    }

    /// Removes the session's nodes from the wire, then the session.
    pub(super) fn close(&mut self, number: Number) {
        self.flush_session(number, None);
        let Some(session) = self.live.get_mut(&number) else { return };
        let changes = session.map.clear();
        self.deliver(number, changes);
        self.active.remove(&number);
        let Some(session) = self.live.remove(&number) else { return };
        self.numbers.remove(&session.key);
        self.roster_changed |= session.is_open;
        self.usage_changed |= session.usage.is_some();
        if let Some(load) = self.agents.get_mut(&session.key.agent) {
            load.sessions -= 1;
            if load.sessions == 0 {
                self.agents.remove(&session.key.agent);
            }
        }
        if is_shown_by(self.view.as_ref(), &session)
            && let Some(fallback) = self.view.as_ref().and_then(View::fallback)
            && fallback != session.key
        {
            self.move_view(fallback);
        }
        self.await_turns(session);
    }

    fn open(&mut self, key: &SessionKey) -> Number {
        let load = self.agents.entry(key.agent.clone()).or_default();
        if load.sessions >= self.limits.sessions {
            self.close_stalest(&key.agent);
        }
        let number = self.next_number;
        self.next_number += 1;
        let session = TrackedSession::new(key.clone());
        if !is_shown_by(self.view.as_ref(), &session) {
            self.events.push(Event::Snapshot(session.snapshot()));
        }
        self.agents.entry(key.agent.clone()).or_default().sessions += 1;
        self.numbers.insert(key.clone(), number);
        self.live.insert(number, session);
        number
    }

    fn close_stalest(&mut self, agent: &AgentId) {
        let stalest = self
            .on_the_wire()
            .filter(|session| session.key.agent == *agent)
            .min_by_key(|session| (session.turns.is_running(), session.last_input));
        let Some(key) = stalest.map(|session| session.key.clone()) else { return };
        if let Some(load) = self.agents.get_mut(agent)
            && !std::mem::replace(&mut load.is_crowded, true)
        {
            let limit = self.limits.sessions;
            warn!(%agent, limit, "too many sessions: each new one closes the stalest");
        }
        if let Some(number) = self.numbers.get(&key) {
            self.close(*number);
        }
    }

    fn await_turns(&mut self, session: TrackedSession) {
        if !session.turns.is_running() {
            return;
        }
        if self.closing.len() >= self.limits.closing
            && let Some((key, _)) = self.closing.shift_remove_index(0)
        {
            let SessionKey { agent, session } = key;
            warn!(%agent, %session, "too many closed sessions with prompts: its `turn` lines are dropped");
        }
        match self.closing.get_mut(&session.key) {
            Some(turns) => turns.adopt(session.turns),
            None => {
                self.closing.insert(session.key, session.turns);
            }
        }
    }

    /// Changes the map of two sessions: each ends with a delta that removes all nodes, in its old
    /// mode, and goes on with an empty snapshot in its new mode and one delta. The numbers of
    /// deltas stay consecutive, so clients can follow snapshots, deltas or one mode.
    fn move_view(&mut self, key: SessionKey) {
        self.flush();
        self.roster_changed = true;
        let Some(view) = &mut self.view else { return };
        self.events.extend(view.withdraw().map(Event::Delta));
        let (left, left_seq) = (view.key().clone(), view.seq());

        let number = self.numbers.get(&key);
        let session = number.and_then(|number| self.live.get_mut(number));
        let seq = session.map_or(0, |session| {
            let removed: Vec<_> = session.map.nodes().into_iter().map(|node| node.path).collect();
            if !removed.is_empty() {
                let delta = session.delta(Changes { updates: Vec::new(), removed });
                self.events.push(Event::Delta(delta));
            }
            session.seq
        });
        view.move_to(key, seq);
        self.events.push(Event::Snapshot(view.snapshot()));
        self.events.extend(view.flush().map(Event::Delta));
        self.events.extend(view.usage().map(Event::Usage));

        if let Some(number) = self.numbers.get(&left).copied() {
            self.show_again(number, left_seq);
        }
    }

    /// Shows a session's own map after the view left it. `seq` numbers its last delta.
    fn show_again(&mut self, number: Number, seq: u64) {
        let Some(session) = self.live.get_mut(&number) else { return };
        session.seq = seq;
        self.events.push(Event::Snapshot(Snapshot {
            key: session.key.clone(),
            mode: SessionMode::SingleAgent,
            seq,
            nodes: Vec::new(),
            omitted: session.omitted,
        }));
        session.map.show_again();
        let usage = session.usage_report();
        self.flush_session(number, None);
        if self.live.get(&number).is_some_and(|session| session.map.is_active()) {
            self.active.insert(number);
        }
        self.events.extend(usage.map(Event::Usage));
    }
}

#[cfg(test)]
mod tests;
