//! Does what the gate decides: holds requests until they are decided, and answers those that are
//! denied or cancelled.

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use tokio::io::AsyncWrite;
use tokio::task::unconstrained;
use tokio::time::Instant;

use super::{Decided, Relay};
use crate::conflicts::{LockWait, Passage, Refused};
use crate::extract::{Ask, Refusal};
use crate::line::Direction;
use crate::model::{Action, AgentId, Via};
use crate::preview::Wanted;
use crate::proxy::contention::refusal;
use crate::proxy::gatekeeper::{GateAction, HeldRequest, orphaned};
use crate::proxy::{NamedPath, ProxyError};
use crate::routing::{RoutingHandle, Settlement};

/// An agent whose requests fill its lane in routing.
type FullLane = (RoutingHandle, AgentId);

impl<AW, CW> Relay<AW, CW>
where
    AW: AsyncWrite + Unpin + Send,
    CW: AsyncWrite + Unpin + Send,
{
    pub(super) fn decided(&mut self, decided: Decided) -> Result<(), ProxyError> {
        match decided {
            Decided::Released(numbers) => self.release(&numbers),
            Decided::Observed(violation) => {
                return violation.map_or(Ok(()), |it| self.violated(it));
            }
            Decided::Unlocked(number, outcome) => {
                if let Some(held) = self.waiting.take(number) {
                    self.unlocked(held, outcome);
                }
            }
            Decided::Settled(number, settlement) => {
                if let Some(held) = self.waiting.take(number) {
                    self.settled(held, settlement);
                }
            }
        }
        Ok(())
    }

    /// Does what the gate decided.
    pub(super) fn apply(&mut self, action: GateAction) {
        match action {
            GateAction::Pass(line) => {
                self.to_client.push(line.clone());
                self.observe(Direction::ToClient, &line);
            }
            GateAction::Drop { why, line, replies } => {
                self.proxy.vitals.stray(&line);
                if let Some(count) = self.dropped.count(why) {
                    let (agent, start) = (&self.proxy.agent, String::from_utf8_lossy(&line));
                    tracing::warn!(%agent, why, ?start, count, "dropped a line");
                }
                for reply in replies {
                    self.to_agent.push(reply);
                }
            }
            GateAction::Refuse(ask, refusal) => self.refuse(&ask, &refusal),
            GateAction::Hold(held) => self.hold(held),
            GateAction::AwaitLock(held, wait) => self.await_lock(held, wait),
        }
    }

    pub(super) fn settled(&mut self, held: HeldRequest, settlement: Settlement) {
        let Some(gatekeeping) = &self.proxy.gate else { return };
        match settlement {
            Settlement::Allowed => {
                let action = gatekeeping.allowed(held, self.proxy.running.as_deref());
                self.apply(action);
            }
            Settlement::Answered(content) => {
                match self.proxy.extractor.answer(&held.ask, &content) {
                    Some(reply) => self.to_agent.push(reply),
                    None => self.refuse(&held.ask, &Refusal::Cancelled),
                }
            }
            Settlement::Denied { id, owners, message } => {
                let path = held.path();
                if held.ask.via == Via::Permission {
                    let why = format!("it ended after a permission was denied: `{path}` ({id})");
                    self.turns.denied(&held.ask.session, &why);
                }
                self.refuse(&held.ask, &Refusal::Outside { blocked: id, path, owners, message });
            }
        }
    }

    /// Sends the request to routing; the relay goes on reading meanwhile.
    pub(super) fn hold(&mut self, held: HeldRequest) {
        self.flush_updates();
        let Some(gatekeeping) = &self.proxy.gate else { return };
        let mut request = held.request(&self.proxy.agent);
        if request.via == Via::Fs && request.action == Action::Write {
            request.wanted = self.proxy.extractor.wanted(&held.line).as_deref().map(Wanted::new);
        }
        if let Some(running) = &self.proxy.running {
            let rules = gatekeeping.rules.borrow();
            let place = NamedPath { wire: &request.path, workspace: rules.zone.workspace() };
            request.call = running.tool_call(&request.key.session, place, Instant::now());
        }
        let routing = gatekeeping.routing.clone();
        self.keep(held, |number| {
            Box::pin(async move {
                let settlement = routing.request(request).await.unwrap_or_else(orphaned);
                Decided::Settled(number, settlement)
            })
        });
    }

    /// Has a write wait for a lock; the relay goes on reading meanwhile.
    pub(super) fn await_lock(&mut self, held: HeldRequest, wait: Box<LockWait>) {
        if let Some(text) = self.proxy.extractor.wanted(&held.line) {
            wait.wants(Wanted::new(&text));
        }
        self.keep(held, |number| {
            Box::pin(async move { Decided::Unlocked(number, wait.settled().await) })
        });
    }

    fn unlocked(&mut self, held: HeldRequest, outcome: Result<Passage, Refused>) {
        let Some(gatekeeping) = &self.proxy.gate else { return };
        match outcome {
            Ok(_) => {
                let action = gatekeeping.judge_again(held, self.proxy.running.as_deref());
                self.apply(action);
            }
            Err(refused) => self.refuse(&held.ask, &refusal(refused)),
        }
    }

    /// Keeps a request until the future is ready.
    fn keep(
        &mut self,
        held: HeldRequest,
        decision: impl FnOnce(u64) -> BoxFuture<'static, Decided>,
    ) {
        let cancelled = self.cancelled.contains(&held.ask.session);
        let permits = self.proxy.gate.as_ref().and_then(|gate| gate.permits.as_ref());
        match self.waiting.keep(held, permits.map(|permits| permits.memory())) {
            Ok((number, registration)) => {
                let decision = decision(number);
                self.decisions.push(Abortable::new(decision, registration));
                if cancelled {
                    self.release_later(vec![number]);
                }
            }
            Err(held) => {
                tracing::warn!(agent = %self.proxy.agent, "too many requests wait for a decision");
                self.refuse(&held.ask, &Refusal::Cancelled);
            }
        }
    }

    /// Returns the agent's lane if it is full: no more of the agent's lines are read until routing
    /// has taken some requests.
    pub(super) fn release_excess(&self) -> Option<FullLane> {
        let gatekeeping = self.proxy.gate.as_ref()?;
        let is_full = !self.waiting.is_empty() && gatekeeping.routing.is_full(&self.proxy.agent);
        is_full.then(|| (gatekeeping.routing.clone(), self.proxy.agent.clone()))
    }

    pub(super) fn refuse(&mut self, ask: &Ask, refusal: &Refusal) {
        if let Some(reply) = self.proxy.extractor.refuse(ask, refusal) {
            self.to_agent.push(reply);
        }
    }

    /// Releases requests once routing has received them, so that immediate denials still arrive.
    pub(super) fn release_later(&mut self, numbers: Vec<u64>) {
        let Some(gatekeeping) = &self.proxy.gate else { return };
        if numbers.is_empty() {
            return;
        }
        let (agent, routing) = (self.proxy.agent.clone(), gatekeeping.routing.clone());
        let (_, registration) = AbortHandle::new_pair();
        let settled: BoxFuture<'static, _> = Box::pin(async move {
            routing.settled(&agent).await;
            Decided::Released(numbers)
        });
        self.decisions.push(Abortable::new(settled, registration));
    }

    /// Reports and judges the agent's last requests and accesses after its end.
    pub(super) async fn decide_the_last(&mut self) -> Result<(), ProxyError> {
        self.release_later(self.waiting.all());
        let mut judged = Ok(());
        while let Some(decision) = unconstrained(self.decisions.next()).await {
            if let Ok(decided) = decision {
                judged = judged.and(self.decided(decided));
                // A request for several paths may be held again for the next one.
                self.release_later(self.waiting.all());
            }
        }
        judged
    }

    /// Answers cancelled requests.
    pub(super) fn release(&mut self, numbers: &[u64]) {
        for number in numbers {
            if let Some(held) = self.waiting.take(*number) {
                self.refuse(&held.ask, &Refusal::Cancelled);
            }
        }
    }
}

/// Starts the read once the lane has room.
pub(super) async fn after<T>(full_lane: Option<FullLane>, read: impl Future<Output = T>) -> T {
    if let Some((routing, agent)) = full_lane {
        routing.has_room(&agent).await;
    }
    read.await
}
