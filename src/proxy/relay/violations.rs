//! What follows an access outside the zone that a tool call told of: there was nothing to hold back,
//! but what goes on can be ended.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use tokio::io::AsyncWrite;

use super::{Decided, Relay};
use crate::extract::Ask;
use crate::line::Direction;
use crate::model::{Action, BlockedId, OnViolation, SessionId, SessionKey, Via};
use crate::proxy::ProxyError;
use crate::routing::Request;

/// Sessions whose last turn's reason is kept; past that all are forgotten.
const MOST_REASONS: usize = 1024;

/// The turns that run, and why those ended that ended last.
#[derive(Default)]
pub(super) struct Turns {
    running: HashMap<SessionId, TurnCount>,
    last: u64,
    reasons: HashMap<SessionId, Arc<str>>,
}

struct TurnCount {
    /// No other turn of this relay has it.
    number: u64,
    /// Prompts of the session that overlap.
    prompts: usize,
    /// It was cancelled here: its client doesn't know.
    cut: bool,
    /// A permission that was denied, as long as no tool call follows.
    denied: Option<Arc<str>>,
}

/// An access that nothing had allowed.
pub(super) struct Violation {
    id: BlockedId,
    session: SessionId,
    /// In which it was reported; None if none ran.
    turn: Option<u64>,
    path: Arc<str>,
    action: Action,
}

impl<AW, CW> Relay<AW, CW>
where
    AW: AsyncWrite + Unpin + Send,
    CW: AsyncWrite + Unpin + Send,
{
    /// Reports a tool call that reached outside the zone past the gate.
    pub(super) fn performed(&mut self, session: &SessionId, path: &str, action: Action) {
        let Some(gatekeeping) = &self.proxy.gate else { return };
        let zone = gatekeeping.rules.borrow().zone.clone();
        let Err(denied) = zone.check(Path::new(path), action) else { return };
        let reported = gatekeeping.routing.observed(Request {
            key: SessionKey::new(self.proxy.agent.clone(), session.clone()),
            path: denied.path.clone(),
            action,
            via: Via::Tool,
            hold: false,
            may_wait: true,
            grantable: denied.grantable,
            denied_by: zone.denied_by(&denied.path),
            caller: None,
        });
        let (session, turn) = (session.clone(), self.turns.number(session));
        let (_, registration) = AbortHandle::new_pair();
        let reported: BoxFuture<'static, _> = Box::pin(async move {
            let violation = |id| Violation { id, session, turn, path: denied.path, action };
            Decided::Observed(reported.await.map(violation))
        });
        self.decisions.push(Abortable::new(reported, registration));
    }

    /// Does what the agent's rules say of it; an error ends the agent.
    pub(super) fn violated(&mut self, violation: Violation) -> Result<(), ProxyError> {
        let Some(gatekeeping) = &self.proxy.gate else { return Ok(()) };
        let on_violation = gatekeeping.rules.borrow().on_violation;
        let Violation { id, session, turn, path, action } = violation;
        match on_violation {
            OnViolation::Report => {}
            OnViolation::Cancel => {
                let runs = turn.is_some() && self.turns.number(&session) == turn;
                if runs && !self.cancelled.contains(&session) {
                    let agent = &self.proxy.agent;
                    tracing::warn!(%agent, %session, %id, %path, "cancels a turn for what it did");
                    let line = self.proxy.extractor.cancel(&session);
                    self.to_agent.push(line.clone());
                    self.observe(Direction::ToAgent, &line);
                    let withdrawn = self.proxy.extractor.withdraw(&session);
                    self.to_agent.push(withdrawn.to_agent);
                    self.to_client.push(withdrawn.to_client);
                    self.turns.cut(&session);
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
}

impl Turns {
    pub(super) fn began(&mut self, session: &SessionId) {
        self.last += 1;
        self.reasons.remove(session);
        let new = TurnCount { number: self.last, prompts: 0, cut: false, denied: None };
        self.running.entry(session.clone()).or_insert(new).prompts += 1;
    }

    /// A permission was denied. Many agents end their turn on that, and don't say why.
    pub(super) fn denied(&mut self, session: &SessionId, why: &str) {
        if let Some(turn) = self.running.get_mut(session) {
            turn.denied = Some(why.into());
        }
    }

    /// A tool call runs: the turn goes on after what was denied.
    pub(super) fn on_next_turn(&mut self, session: &SessionId) {
        if let Some(turn) = self.running.get_mut(session) {
            turn.denied = None;
        }
    }

    /// Why a turn ends that says nothing of it.
    pub(super) fn why(&self, session: &SessionId) -> Option<Arc<str>> {
        self.running.get(session).and_then(|turn| turn.denied.clone())
    }

    /// The reason of the session's last turn, if it ended with one.
    pub(super) fn reason(&self, session: &SessionId) -> Option<Arc<str>> {
        self.reasons.get(session).cloned()
    }

    pub(super) fn ended(&mut self, session: &SessionId, reason: Option<&Arc<str>>) {
        if let Some(reason) = reason {
            if self.reasons.len() >= MOST_REASONS {
                self.reasons.clear();
            }
            self.reasons.insert(session.clone(), Arc::clone(reason));
        }
        if let Some(turn) = self.running.get_mut(session) {
            turn.prompts -= 1;
            if turn.prompts == 0 {
                self.running.remove(session);
            }
        }
    }

    fn cut(&mut self, session: &SessionId) {
        if let Some(turn) = self.running.get_mut(session) {
            turn.cut = true;
        }
    }

    /// Whether this asks for a permission in a turn that was cancelled here, which its client would
    /// still give.
    pub(super) fn is_cut(&self, ask: &Ask) -> bool {
        let turn = self.running.get(&ask.session);
        ask.via == Via::Permission && turn.is_some_and(|turn| turn.cut)
    }

    fn number(&self, session: &SessionId) -> Option<u64> {
        self.running.get(session).map(|turn| turn.number)
    }
}
