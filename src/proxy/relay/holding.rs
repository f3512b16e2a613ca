//! Requests that left the stream until they are decided, and those that are answered in the client's
//! place.

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use tokio::io::AsyncWrite;
use tokio::task::unconstrained;

use super::{Decided, Relay};
use crate::extract::{Ask, Refusal};
use crate::model::{AgentId, Via};
use crate::proxy::ProxyError;
use crate::proxy::gatekeeper::{HeldRequest, orphaned};
use crate::routing::{RoutingHandle, Settlement};

/// Whose requests wait to be taken in, and where.
type Crowd = (RoutingHandle, AgentId);

impl<AW, CW> Relay<AW, CW>
where
    AW: AsyncWrite + Unpin + Send,
    CW: AsyncWrite + Unpin + Send,
{
    pub(super) fn settled(&mut self, held: HeldRequest, settlement: Settlement) {
        let Some(gatekeeping) = &self.proxy.gate else { return };
        match settlement {
            Settlement::Allowed => {
                let verdict = gatekeeping.allowed(held, self.proxy.running.as_deref());
                self.follow(verdict);
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

    /// Asks routing, and goes on reading meanwhile.
    pub(super) fn hold(&mut self, held: HeldRequest) {
        let Some(gatekeeping) = &self.proxy.gate else { return };
        let request = held.request(&self.proxy.agent);
        let routing = gatekeeping.routing.clone();
        let cancelled = self.cancelled.contains(&held.ask.session);
        match self.waiting.keep(held) {
            Ok((number, registration)) => {
                let decision: BoxFuture<'static, _> = Box::pin(async move {
                    let settlement = routing.request(request).await.unwrap_or_else(orphaned);
                    Decided::Settled(number, settlement)
                });
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

    /// Who decides has enough of this agent's requests before it: no more of its lines are read
    /// until some of these are taken in.
    pub(super) fn release_excess(&self) -> Option<Crowd> {
        let gatekeeping = self.proxy.gate.as_ref()?;
        let is_crowd = !self.waiting.is_empty() && gatekeeping.routing.is_full(&self.proxy.agent);
        is_crowd.then(|| (gatekeeping.routing.clone(), self.proxy.agent.clone()))
    }

    pub(super) fn refuse(&mut self, ask: &Ask, refusal: &Refusal) {
        if let Some(reply) = self.proxy.extractor.refuse(ask, refusal) {
            self.to_agent.push(reply);
        }
    }

    /// Lets go of requests once routing has taken them in, so that what is denied at once is.
    pub(super) fn release_later(&mut self, numbers: Vec<u64>) {
        let Some(gatekeeping) = &self.proxy.gate else { return };
        if numbers.is_empty() {
            return;
        }
        let (agent, routing) = (self.proxy.agent.clone(), gatekeeping.routing.clone());
        let (_, registration) = AbortHandle::new_pair();
        let taken_in: BoxFuture<'static, _> = Box::pin(async move {
            routing.settled(&agent).await;
            Decided::LetGo(numbers)
        });
        self.decisions.push(Abortable::new(taken_in, registration));
    }

    /// What was asked for and done in the last moments is still reported, and judged.
    pub(super) async fn decide_the_last(&mut self) -> Result<(), ProxyError> {
        self.release_later(self.waiting.all());
        let mut judged = Ok(());
        while let Some(decision) = unconstrained(self.decisions.next()).await {
            if let Ok(decided) = decision {
                judged = judged.and(self.decided(decided));
                // What is about several paths may be held anew for the next one.
                self.release_later(self.waiting.all());
            }
        }
        judged
    }

    /// Answers requests whose decision nobody awaits any more.
    pub(super) fn release(&mut self, numbers: &[u64]) {
        for number in numbers {
            if let Some(held) = self.waiting.take(*number) {
                self.refuse(&held.ask, &Refusal::Cancelled);
            }
        }
    }
}

/// Reads on once fewer requests wait to be taken in.
pub(super) async fn after<T>(crowd: Option<Crowd>, read: impl Future<Output = T>) -> T {
    if let Some((routing, agent)) = crowd {
        routing.has_room(&agent).await;
    }
    read.await
}
