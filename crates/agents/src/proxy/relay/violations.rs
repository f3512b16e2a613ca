//! Handles completed accesses outside the zone: reports them, and cancels the turn or stops the
//! agent as `on_violation` demands.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use tokio::io::AsyncWrite;
use tokio::time::Instant;

use super::{Decided, Relay};
use crate::extract::Ask;
use crate::line::Direction;
use crate::model::{
    Action, Activity, ActivityKind, BlockedId, OnViolation, PathUse, Record, SessionId, SessionKey,
    Via, wire_real,
};
use crate::proxy::handle::EndedTurn;
use crate::proxy::{NamedPath, ProxyError};
use crate::routing::{AccessScope, Making, Request};
use crate::zone::Permit;

/// Sessions whose last turn's end is kept; beyond this all are dropped.
const MOST_ENDS: usize = 1024;

/// Calls of a turn that are known by their ids; beyond this all count as new.
const MOST_CALLS: usize = 256;

/// The running turns, and how each session's last turn ended.
#[derive(Default)]
pub(super) struct RunningTurns {
    running: HashMap<SessionId, TurnCount>,
    last: u64,
    ends: HashMap<SessionId, EndedTurn>,
}

struct TurnCount {
    /// Unique within this relay.
    number: u64,
    /// Prompts of the session that overlap.
    prompts: usize,
    /// When the relay cancelled it; the client does not know.
    cut: Option<Instant>,
    /// Why it did, if that is the turn's reason.
    cut_for: Option<Arc<str>>,
    /// Its tool calls that run.
    calls: HashSet<Arc<str>>,
    /// The denied permission that no tool call has followed.
    denied: Option<Arc<str>>,
}

/// An access that no decision allowed.
pub(super) struct Violation {
    id: BlockedId,
    session: SessionId,
    /// The turn that reported it; `None` if none ran.
    turn: Option<u64>,
    path: Arc<str>,
    action: Action,
}

impl<AW, CW> Relay<AW, CW>
where
    AW: AsyncWrite + Unpin + Send,
    CW: AsyncWrite + Unpin + Send,
{
    /// Reports to routing a tool call that got past the gate to a path outside the zone.
    pub(super) fn performed(
        &mut self,
        session: &SessionId,
        path: &str,
        action: Action,
        by_program: bool,
    ) {
        let Some(gatekeeping) = &self.proxy.gate else { return };
        let zone = gatekeeping.rules.borrow().zone.clone();
        let denied = match zone.check(Path::new(path), action) {
            Ok(permit) => return self.report_use(session, &permit, by_program),
            Err(denied) => denied,
        };
        let real = zone.workspace().join(&*denied.path);
        let is_withheld =
            self.proxy.running.as_ref().is_some_and(|running| running.withholds(&real, action));
        if !is_withheld && gatekeeping.is_let_pass(&denied, by_program) {
            return;
        }
        let reported = gatekeeping.routing.observed(Request {
            key: SessionKey::new(self.proxy.agent.clone(), session.clone()),
            path: denied.path.clone(),
            action,
            via: Via::Tool,
            scope: AccessScope::Path,
            making: Making::Nothing,
            hold: false,
            may_wait: true,
            grantable: denied.grantable,
            denied_by: zone.denied_by(&denied.path),
            caller: None,
            call: None,
            patience: None,
            reason: None,
            wanted: None,
        });
        let (session, turn) = (session.clone(), self.turns.number(session));
        let (_, registration) = AbortHandle::new_pair();
        let reported: BoxFuture<'static, _> = Box::pin(async move {
            let violation = |id| Violation { id, session, turn, path: denied.path, action };
            Decided::Observed(reported.await.map(violation))
        });
        self.decisions.push(Abortable::new(reported, registration));
    }

    /// Records what a call of an observed agent did. Where there is a doorbell, that knows it better.
    fn report_use(&mut self, session: &SessionId, permit: &Permit, by_program: bool) {
        let Some(gatekeeping) = &self.proxy.gate else { return };
        let rules = gatekeeping.rules.borrow().clone();
        let Some(written) = rules.zone.written().filter(|_| rules.bounds.is_none()) else { return };
        let Permit { real, action, .. } = permit;
        if !real.starts_with(written.workspace()) {
            return;
        }
        let path: Arc<str> = wire_real(written.workspace(), real).into();
        let place = NamedPath { wire: &path, workspace: written.workspace() };
        let running = self.proxy.running.as_ref();
        let tool_call = running.and_then(|it| it.tool_call(session, place, Instant::now()));
        let used = PathUse {
            outside: !written.covers(real, *action),
            path,
            action: *action,
            via: if by_program { Via::Terminal } else { Via::Tool },
            tool_call,
            program: None,
            named: true,
        };
        let kind = ActivityKind::Record(Record::PathUsed(Arc::new(used)));
        self.unsent.push(Activity { session: session.clone(), kind });
    }

    /// Applies the agent's `on_violation`; an error ends the agent.
    pub(super) fn violated(&mut self, violation: Violation) -> Result<(), ProxyError> {
        let Some(gatekeeping) = &self.proxy.gate else { return Ok(()) };
        let on_violation = gatekeeping.rules.borrow().on_violation;
        let Violation { id, session, turn, path, action } = violation;
        match on_violation {
            OnViolation::Report => {}
            OnViolation::Cancel => {
                let runs = turn.is_some() && self.turns.number(&session) == turn;
                if runs && self.cancel_turn(&session, None) {
                    let agent = &self.proxy.agent;
                    tracing::warn!(%agent, %session, %id, %path, "cancelled a turn for an access outside the zone");
                }
            }
            OnViolation::Stop => {
                let did = match action {
                    Action::Read => "it read",
                    Action::Write => "it wrote",
                };
                return Err(ProxyError::Violation { did, path, id });
            }
        }
        Ok(())
    }

    /// Cancels the session's turn in its client's place; false if that was done before.
    pub(super) fn cancel_turn(&mut self, session: &SessionId, reason: Option<&Arc<str>>) -> bool {
        if self.cancelled.contains(session) || self.turns.number(session).is_none() {
            return false;
        }
        let line = self.proxy.extractor.cancel(session);
        self.send_to_agent(line.clone());
        self.observe(Direction::ToAgent, &line);
        let withdrawn = self.proxy.extractor.withdraw(session);
        self.to_agent.push(withdrawn.to_agent);
        self.to_client.push(withdrawn.to_client);
        self.turns.cut(session, reason);
        true
    }
}

impl RunningTurns {
    pub(super) fn began(&mut self, session: &SessionId) {
        self.last += 1;
        self.ends.remove(session);
        let new = TurnCount {
            number: self.last,
            prompts: 0,
            cut: None,
            cut_for: None,
            calls: HashSet::new(),
            denied: None,
        };
        self.running.entry(session.clone()).or_insert(new).prompts += 1;
    }

    /// Records that a permission was denied. Many agents then end their turn without a reason.
    pub(super) fn denied(&mut self, session: &SessionId, why: &str) {
        if let Some(turn) = self.running.get_mut(session) {
            turn.denied = Some(why.into());
        }
    }

    /// Records that a tool call runs, so the turn survived the denial.
    pub(super) fn on_tool_call(&mut self, session: &SessionId) {
        if let Some(turn) = self.running.get_mut(session) {
            turn.denied = None;
        }
    }

    /// The reason for a turn that ends without giving one. One that was cancelled did not end for a denial.
    pub(super) fn why(&self, session: &SessionId, is_cancelled: bool) -> Option<Arc<str>> {
        let turn = self.running.get(session)?;
        turn.cut_for.clone().or_else(|| turn.denied.clone().filter(|_| !is_cancelled))
    }

    /// How the session's last turn ended.
    pub(super) fn end(&self, session: &SessionId) -> Option<EndedTurn> {
        self.ends.get(session).cloned()
    }

    pub(super) fn ended(&mut self, session: &SessionId, end: EndedTurn) {
        if self.ends.len() >= MOST_ENDS {
            self.ends.clear();
        }
        self.ends.insert(session.clone(), end);
        if let Some(turn) = self.running.get_mut(session) {
            turn.prompts -= 1;
            if turn.prompts == 0 {
                self.running.remove(session);
            }
        }
    }

    fn cut(&mut self, session: &SessionId, reason: Option<&Arc<str>>) {
        if let Some(turn) = self.running.get_mut(session) {
            turn.cut = Some(Instant::now());
            turn.cut_for = reason.cloned();
        }
    }

    pub(super) fn sessions(&self) -> Vec<SessionId> {
        self.running.keys().cloned().collect()
    }

    /// Notes that a call runs; true if it just began.
    pub(super) fn call_began(&mut self, session: &SessionId, call: &Arc<str>) -> bool {
        let Some(turn) = self.running.get_mut(session) else { return false };
        if turn.calls.len() >= MOST_CALLS {
            turn.calls.clear();
        }
        turn.calls.insert(Arc::clone(call))
    }

    /// Notes that a call ended; true if it ran.
    pub(super) fn call_ended(&mut self, session: &SessionId, call: &Arc<str>) -> bool {
        self.running.get_mut(session).is_some_and(|turn| turn.calls.remove(call))
    }

    /// Whether a tool call runs.
    pub(super) fn calls(&self, session: &SessionId) -> bool {
        self.running.get(session).is_some_and(|turn| !turn.calls.is_empty())
    }

    /// Whether a turn that was cancelled runs on after that long.
    pub(super) fn ignores(&self, patience: Duration) -> bool {
        self.running.values().filter_map(|turn| turn.cut).any(|cut| cut.elapsed() >= patience)
    }

    /// Whether this is a permission request in a turn that the relay cancelled; its client might
    /// still grant it.
    pub(super) fn is_cut(&self, ask: &Ask) -> bool {
        let turn = self.running.get(&ask.session);
        ask.via == Via::Permission && turn.is_some_and(|turn| turn.cut.is_some())
    }

    fn number(&self, session: &SessionId) -> Option<u64> {
        self.running.get(session).map(|turn| turn.number)
    }
}
