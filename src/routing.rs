//! The life of a blocked access: owners, pending, grants, expiry, and what the orchestrator is
//! told. Knows neither stdio nor the shapes of JSON-RPC.

mod board;
mod briefing;
mod grants;
mod lanes;
mod rates;
mod sweeps;
mod task;
#[cfg(test)]
mod tests;
mod wait;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::bus::Bus;
use crate::model::{
    Action, AgentId, BlockedAccess, BlockedId, BlockedStatus, SessionId, SessionKey, Via, quoted,
};
use crate::tracker::TrackerHandle;
use crate::zone::Zone;
use lanes::{LanePermit, Lanes};
use task::{Letter, RoutingMsg, Task};

/// Requests that wait for the routing task; past that a relay waits with its denied request.
const MAILBOX: usize = 1024;

/// What routing is told of the team.
#[derive(Debug)]
pub struct Settings {
    pub orchestrator: Orchestrator,
    pub rules: Rules,
    /// This program, as the orchestrator agent finds it whatever its PATH is.
    pub program: PathBuf,
}

/// What may change while the team runs.
#[derive(Default, Debug)]
pub struct Rules {
    /// Hold what is blocked for a decision, rather than deny it at once.
    pub hold: bool,
    /// Agents for which it is otherwise.
    pub hold_of: HashMap<AgentId, bool>,
    /// A held access that nobody decided is denied.
    pub hold_timeout: Duration,
    /// Zones of the agents that own paths.
    pub owners: Vec<(AgentId, Arc<Zone>)>,
}

impl Rules {
    /// Whether what the agent is blocked at is held.
    fn holds(&self, agent: &AgentId) -> bool {
        self.hold_of.get(agent).copied().unwrap_or(self.hold)
    }
}

/// Who decides.
#[derive(Clone, Debug)]
pub enum Orchestrator {
    /// An agent of the team, prompted in its own session.
    Agent(AgentId),
    /// A program on the port; it is shown as this session.
    External(SessionKey),
    /// Nobody was named: whoever is on the port may decide.
    Nobody,
}

/// A denied access on its way to a decision.
#[derive(Clone, Debug)]
pub struct Request {
    pub key: SessionKey,
    pub path: Arc<str>,
    pub action: Action,
    pub via: Via,
    /// Hold it whatever the settings say: a permission that is the orchestrator's to give.
    pub hold: bool,
    /// False: it is denied at once, whatever the settings say.
    pub may_wait: bool,
    /// Nobody's word lets it pass: it is denied at once, and cannot be allowed.
    pub grantable: bool,
    /// The pattern of `denied` that matches it: no agent's decision lets it pass.
    pub denied_by: Option<Arc<str>>,
    /// The process whose call the kernel stopped: what it tries again and again is told once.
    pub caller: Option<u32>,
}

/// How a request left routing.
#[derive(Clone, PartialEq, Debug)]
pub enum Settlement {
    Allowed,
    /// The orchestrator's content stands for the file's.
    Answered(String),
    Denied {
        id: BlockedId,
        owners: Vec<AgentId>,
        message: Option<String>,
    },
}

/// Who decides a blocked access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decider {
    /// A person, or a program that has the control token.
    Person,
    /// The same, who says that it may be opened even though a pattern of `denied` matches it.
    Insistent,
    /// An agent of the team, with its own token.
    Agent(AgentId),
}

/// What the orchestrator decides.
#[derive(Clone, PartialEq, Debug)]
pub enum Decision {
    Deny { message: Option<String> },
    Allow { scope: Scope, ttl: Option<Duration> },
    Answer { content: String },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    Once,
    Session,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    #[error("no blocked access has the id {0}")]
    Unknown(BlockedId),
    #[error("{id} is decided already: {}", .status.as_str())]
    Settled { id: BlockedId, status: BlockedStatus },
    #[error(
        "only a read through `fs/read_text_file` can be answered with content: allow this or deny it"
    )]
    NotAnswerable,
    #[error("{} cannot be opened to any agent", quoted(.0))]
    NotGrantable(Arc<str>),
    #[error(
        "{0} only counts what was denied, of which nobody asked by name or too much at once: there \
         is nothing to decide"
    )]
    Sweep(BlockedId),
    #[error(
        "{id} is an access of `{agent}` itself, and no agent decides its own: a person with the \
         control token can"
    )]
    Own { id: BlockedId, agent: AgentId },
    #[error(
        "{} matches the pattern {} in `denied`: no agent can open or answer it; a person with the \
         control token can, by `eisen-core resolve {id} allow --even-denied`",
        quoted(path),
        quoted(pattern)
    )]
    DeniedBy { id: BlockedId, path: Arc<str>, pattern: Arc<str> },
    #[error("the team is stopping")]
    Stopping,
}

/// Speaks to the routing task.
#[derive(Clone, Debug)]
pub struct RoutingHandle {
    mailbox: mpsc::Sender<Letter>,
    lanes: Arc<Lanes>,
    waiting: watch::Receiver<u64>,
}

impl RoutingHandle {
    /// Starts routing; the task ends with `cancel`.
    pub fn spawn(
        settings: Settings,
        bus: Bus,
        tracker: TrackerHandle,
        cancel: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (mailbox, messages) = mpsc::channel(MAILBOX);
        let (nudge, waiting) = watch::channel(0);
        let task = Task::new(settings, bus, tracker, nudge);
        let lanes = Arc::default();
        (Self { mailbox, lanes, waiting }, task.run(messages, cancel))
    }

    /// Routes a denied access; answers at once or when it is decided. None: routing has ended.
    /// Dropping the future expires the access: nobody waits for it any more.
    pub async fn request(&self, request: Request) -> Option<Settlement> {
        let place = self.lanes.enter(&request.key.agent).await;
        self.ask_from(place, |reply| RoutingMsg::Request { request, reply }).await
    }

    /// Reports that a tool call was done with an access, whose line it becomes unless the access
    /// had been allowed, or never came to be. Answers with the line's id, if there is one. Never
    /// waits to report: with a full mailbox that is only logged.
    pub fn observed(
        &self,
        request: Request,
    ) -> impl Future<Output = Option<BlockedId>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        if let Err(error) = self.mailbox.try_send(RoutingMsg::Observed { request, reply }.into()) {
            tracing::error!(%error, "could not report an access outside a zone");
        }
        async move { answer.await.ok() }
    }

    /// Counts an access that nobody asked for by name: it is denied at once, unless just this was
    /// granted (true), and told in one line for each `turn` of its session. Turn 0 stands for what
    /// belongs to none.
    pub async fn record_incidental(&self, request: Request, turn: u64) -> bool {
        let place = self.lanes.enter(&request.key.agent).await;
        let swept = self.ask_from(place, |reply| RoutingMsg::Swept { request, turn, reply });
        swept.await.unwrap_or(false)
    }

    /// Tells of an access that was counted as swept: it was denied, but a call names it.
    pub async fn record_intended(&self, request: Request) {
        let place = self.lanes.enter(&request.key.agent).await;
        let _ = self.mailbox.send(Letter { message: RoutingMsg::Meant(request), place }).await;
    }

    /// Says that a turn of the session ended, in the order of what was observed. Never waits.
    pub fn turn_over(&self, key: SessionKey) {
        if let Err(mpsc::error::TrySendError::Full(message)) =
            self.mailbox.try_send(RoutingMsg::TurnOver(key).into())
        {
            let mailbox = self.mailbox.clone();
            // Late is better than never: what was granted for the turn ends with it.
            tokio::spawn(async move {
                let _ = mailbox.send(message).await;
            });
        }
    }

    /// Decides a blocked access; answers with it as it stands now.
    pub async fn resolve(
        &self,
        id: BlockedId,
        decision: Decision,
        by: Decider,
    ) -> Result<BlockedAccess, ResolveError> {
        self.ask(|reply| RoutingMsg::Resolve { id, decision, by, reply })
            .await
            .unwrap_or(Err(ResolveError::Stopping))
    }

    /// Every pending access and the last 10,000 others, oldest first.
    pub async fn list(&self, status: Option<BlockedStatus>) -> Vec<BlockedAccess> {
        self.ask(|reply| RoutingMsg::List { status, reply }).await.unwrap_or_default()
    }

    /// While the result lives, the agent works for the orchestrator, which waits for it: its
    /// accesses are denied at once, and their ids collected.
    pub async fn orchestrate(&self, agent: AgentId) -> Orchestrated {
        let _ = self.mailbox.send(RoutingMsg::BeginOrchestrated(agent.clone()).into()).await;
        Orchestrated { routing: self.clone(), agent: Some(agent) }
    }

    /// Changes whenever something waits for the orchestrator agent.
    pub fn waiting(&self) -> watch::Receiver<u64> {
        self.waiting.clone()
    }

    /// Takes what waits for the orchestrator agent as one prompt text; None if all was decided.
    /// Unless [`RoutingHandle::briefed`] follows, its next session is told again.
    pub async fn briefing(&self) -> Option<String> {
        self.ask(RoutingMsg::Briefing).await.flatten()
    }

    /// Takes what was said to an agent with decisions that it did not learn of: the kernel tells a
    /// program no more than that it may not. A line each.
    pub async fn notes(&self, agent: AgentId) -> Vec<String> {
        self.ask(|reply| RoutingMsg::Notes { agent, reply }).await.unwrap_or_default()
    }

    /// Goes on by other settings. What is held already keeps its time.
    pub async fn change(&self, rules: Rules) {
        let _ = self.mailbox.send(RoutingMsg::Change(rules).into()).await;
    }

    /// Forgets an agent that left the team: what it was granted, and what was not decided yet.
    /// Another may come under its name.
    pub async fn forget(&self, agent: AgentId) {
        let _ = self.mailbox.send(RoutingMsg::Forget(agent).into()).await;
    }

    /// Waits until every request that was made for an agent before has been taken in: those that
    /// are denied at once have their answer.
    pub async fn settled(&self, agent: &AgentId) {
        let place = self.lanes.enter(agent).await;
        let _ = self.ask_from(place, RoutingMsg::Settle).await;
    }

    /// Whether as many requests of an agent wait to be taken in as may at once.
    pub fn is_full(&self, agent: &AgentId) -> bool {
        self.lanes.is_full(agent)
    }

    /// Waits until another request of an agent would be taken in soon.
    pub async fn has_room(&self, agent: &AgentId) {
        self.lanes.enter(agent).await;
    }

    /// Puts back what was taken for a briefing that was not told.
    pub async fn brief_again(&self) {
        let _ = self.mailbox.send(RoutingMsg::BriefAgain.into()).await;
    }

    /// Says that the prompt with the last briefing came to its end.
    pub async fn briefed(&self) {
        let _ = self.mailbox.send(RoutingMsg::Briefed.into()).await;
    }

    /// Says in which session the designated orchestrator works.
    pub async fn set_orchestrator_session(&self, session: SessionId) {
        let _ = self.mailbox.send(RoutingMsg::OrchestratorSession(session).into()).await;
    }

    async fn ask<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> RoutingMsg) -> Option<T> {
        self.ask_from(None, message).await
    }

    async fn ask_from<T>(
        &self,
        place: LanePermit,
        message: impl FnOnce(oneshot::Sender<T>) -> RoutingMsg,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(Letter { message: message(reply), place }).await.ok()?;
        answer.await.ok()
    }
}

/// An agent that works for the orchestrator.
#[derive(Debug)]
pub struct Orchestrated {
    routing: RoutingHandle,
    agent: Option<AgentId>,
}

impl Orchestrated {
    /// Ends it; returns the ids of what was denied meanwhile.
    pub async fn end(mut self) -> Vec<BlockedId> {
        let Some(agent) = self.agent.take() else { return Vec::new() };
        let message = |reply| RoutingMsg::EndOrchestrated { agent, reply };
        self.routing.ask(message).await.unwrap_or_default()
    }
}

impl Drop for Orchestrated {
    fn drop(&mut self) {
        if let Some(agent) = self.agent.take() {
            let mailbox = self.routing.mailbox.clone();
            // The ids are of no use to anyone now, but the mark must go, full mailbox or not.
            tokio::spawn(async move {
                let (reply, _) = oneshot::channel();
                let _ = mailbox.send(RoutingMsg::EndOrchestrated { agent, reply }.into()).await;
            });
        }
    }
}
