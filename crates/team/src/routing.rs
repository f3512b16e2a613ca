//! The life of a blocked access: pending or denied, its owners, decision, grants and expiry, and
//! the orchestrator's briefing. Knows neither streams nor JSON-RPC.

mod asked;
mod board;
mod briefing;
mod decision;
mod explain;
mod grants;
mod judged;
mod lanes;
mod owners;
mod preview;
mod questions;
mod queued;
mod rates;
mod reasons;
mod request;
mod rules;
mod shown;
mod sweeps;
mod task;
mod team_grants;
#[cfg(test)]
mod tests;
mod wait;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use eisen_base::task::spawn;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::bus::Bus;
use crate::model::{
    AgentId, BlockedAccess, BlockedId, BlockedStatus, SessionId, SessionKey, TeamGrant,
};
use crate::tasks::Waits;
use crate::tracker::TrackerHandle;
use crate::zone::Zone;
pub use asked::{AccessAnswer, Whose};
pub use decision::{Decider, Decision, ResolveError};
pub use explain::{AccessReason, Explain};
use lanes::{LanePermit, Lanes};
use owners::MOST_QUESTIONS;
pub use owners::OwnerQuestion;
pub use queued::{Allowance, Queued};
pub use request::{AccessScope, Making, Request, Settlement};
pub use rules::{RoutingRules, RuledAccess};
pub use shown::ShownAccess;
use task::{Envelope, Outputs, RoutingMsg, Task};
pub use team_grants::{GrantStore, opened_by};

/// Messages that wait for the routing task; beyond this a relay waits with its request.
const MAILBOX: usize = 1024;

/// The settings of the team that routing needs.
#[derive(Debug)]
pub struct Settings {
    pub orchestrator: Orchestrator,
    pub rules: Rules,
    /// The absolute path of this program, for the orchestrator agent's shell.
    pub program: PathBuf,
    /// The waits between agents, which waits for the orchestrator agent are part of.
    pub waits: Waits,
    /// The queue for a person that an earlier run left.
    pub queued: Vec<Queued>,
    /// Grants that persons gave for the team in earlier runs.
    pub granted: Vec<TeamGrant>,
    /// Keeps what they open; None: nothing is opened for the team.
    pub store: Option<Arc<dyn GrantStore>>,
}

impl Settings {
    /// The settings of a team with no other waits, whose earlier run left nothing.
    pub fn new(orchestrator: Orchestrator, rules: Rules) -> Self {
        let (program, waits) = ("eisen-core".into(), Waits::default());
        let (queued, granted) = (Vec::new(), Vec::new());
        Self { orchestrator, rules, program, waits, queued, granted, store: None }
    }
}

/// The settings that may change while the team runs.
#[derive(Default, Debug)]
pub struct Rules {
    /// Hold a blocked access for a decision, rather than deny it at once.
    pub hold: bool,
    /// Exceptions from `hold`, by agent.
    pub hold_of: HashMap<AgentId, bool>,
    /// A held access is denied after this time without a decision.
    /// None: for as long as it takes.
    pub hold_timeout: Option<Duration>,
    /// The rules of `[[routing]]`, which come before `hold`.
    pub routing: RoutingRules,
    /// No person can be asked: what one would decide is denied at once.
    pub unattended: bool,
    /// Zones of the agents that own paths.
    pub owners: Vec<(AgentId, Arc<Zone>)>,
    /// The zone of each agent.
    pub zones: HashMap<AgentId, Arc<Zone>>,
}

impl Rules {
    /// Whether blocked accesses of the agent are held.
    fn holds(&self, agent: &AgentId) -> bool {
        self.hold_of.get(agent).copied().unwrap_or(self.hold)
    }
}

/// The decider of blocked accesses.
#[derive(Clone, Debug)]
pub enum Orchestrator {
    /// An agent of the team, prompted in its own session.
    Agent(AgentId),
    /// An agent `HOST/AGENT` of another team of a hub, in which this team is `host`.
    Elsewhere { agent: AgentId, host: String },
    /// A program on the port, shown as this session.
    External(SessionKey),
    /// None is configured: any client of the port may decide.
    Nobody,
}

/// Sends messages to the routing task.
#[derive(Clone, Debug)]
pub struct RoutingHandle {
    mailbox: mpsc::Sender<Envelope>,
    lanes: Arc<Lanes>,
    waiting: watch::Receiver<u64>,
    queue: watch::Receiver<Arc<[Queued]>>,
    /// None once they are taken.
    questions: Arc<Mutex<Option<mpsc::Receiver<OwnerQuestion>>>>,
    explain: Arc<OnceLock<Box<dyn Explain>>>,
}

impl RoutingHandle {
    /// Creates the routing task; it ends with `cancel`.
    pub fn spawn(
        settings: Settings,
        bus: Bus,
        tracker: TrackerHandle,
        cancel: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (mailbox, messages) = mpsc::channel(MAILBOX);
        let (nudge, waiting) = watch::channel(0);
        let (queued, queue) = watch::channel(Arc::default());
        let (asked, questions) = mpsc::channel(MOST_QUESTIONS);
        let task = Task::new(settings, bus, tracker, Outputs { nudge, queue: queued, asked });
        let (lanes, questions) = (Arc::default(), Arc::new(Mutex::new(Some(questions))));
        let explain = Arc::default();
        (Self { mailbox, lanes, waiting, queue, questions, explain }, task.run(messages, cancel))
    }

    /// Routes a denied access; returns at once or when it is decided. `None` if routing has ended.
    /// Dropping the future expires the access.
    pub async fn request(&self, request: Request) -> Option<Settlement> {
        let permit = self.lanes.enter(&request.key.agent).await;
        self.ask_from(permit, |reply| RoutingMsg::Request { request, reply }).await
    }

    /// Reports an access that a tool call completed. It is listed unless it was allowed or the
    /// kernel stopped it; the future returns its id. Never waits to report: a full mailbox is only
    /// logged.
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

    /// Counts an incidental access. It is denied at once unless a grant covers it (true). The
    /// accesses of a session share one entry for each `turn`, and those whose refusal does no harm another one;
    /// turn 0 stands for no turn.
    pub async fn record_incidental(&self, request: Request, turn: u64, is_harmless: bool) -> bool {
        let permit = self.lanes.enter(&request.key.agent).await;
        let message = |reply| RoutingMsg::Incidental { request, turn, is_harmless, reply };
        self.ask_from(permit, message).await.unwrap_or(false)
    }

    /// Lists a denied access that was counted as incidental until a tool call named it.
    pub async fn record_intended(&self, request: Request) {
        let permit = self.lanes.enter(&request.key.agent).await;
        let _ =
            self.mailbox.send(Envelope { message: RoutingMsg::Intended(request), permit }).await;
    }

    /// Reports the end of a turn, in order with observed accesses. Never waits.
    pub fn turn_over(&self, key: SessionKey) {
        if let Err(mpsc::error::TrySendError::Full(message)) =
            self.mailbox.try_send(RoutingMsg::TurnOver(key).into())
        {
            let mailbox = self.mailbox.clone();
            // The grants of the turn must end even if the mailbox is full.
            spawn(async move {
                let _ = mailbox.send(message).await;
            });
        }
    }

    /// Takes the accesses of the last turn of a session that were blocked and not allowed so far.
    pub async fn take_story(&self, key: SessionKey) -> Vec<BlockedAccess> {
        self.ask(|reply| RoutingMsg::Story { key, reply }).await.unwrap_or_default()
    }

    /// Reports that a tool call failed: nobody waits for its accesses any more. Never waits; what a full
    /// mailbox loses ends with the turn.
    pub fn call_failed(&self, key: SessionKey, call: Arc<str>) {
        let _ = self.mailbox.try_send(RoutingMsg::CallFailed { key, call }.into());
    }

    /// Decides a blocked access; returns its new state.
    pub async fn resolve(
        &self,
        id: BlockedId,
        decision: Decision,
        by: Decider,
    ) -> Result<BlockedAccess, ResolveError> {
        self.ask(|reply| RoutingMsg::Resolve { id, decision, by, seen: None, reply })
            .await
            .unwrap_or(Err(ResolveError::Stopping))
    }

    /// The grants for the team, oldest first.
    pub async fn grants(&self) -> Vec<TeamGrant> {
        self.ask(RoutingMsg::Grants).await.unwrap_or_default()
    }

    /// Ends what a person opened for the team; returns it.
    pub async fn revoke(&self, grant: String) -> Result<TeamGrant, ResolveError> {
        let revoked = self.ask(|reply| RoutingMsg::Revoke { grant, reply }).await;
        revoked.unwrap_or(Err(ResolveError::Stopping))
    }

    /// Every pending access and the last 10,000 others, oldest first.
    pub async fn list(&self, status: Option<BlockedStatus>) -> Vec<BlockedAccess> {
        self.ask(|reply| RoutingMsg::List { status, reply }).await.unwrap_or_default()
    }

    /// Marks the agent as working for the orchestrator until the result is dropped: since the
    /// orchestrator waits for it, its accesses are denied at once, and their ids collected.
    pub async fn orchestrate(&self, agent: AgentId) -> Orchestrated {
        let _ = self.mailbox.send(RoutingMsg::BeginOrchestrated(agent.clone()).into()).await;
        Orchestrated { routing: self.clone(), agent: Some(agent) }
    }

    /// Changes whenever a blocked access waits for the orchestrator agent.
    pub fn waiting(&self) -> watch::Receiver<u64> {
        self.waiting.clone()
    }

    /// The accesses that a person decides by a rule, oldest first: those that wait, and those that
    /// are allowed and not yet tried again.
    pub fn queue(&self) -> watch::Receiver<Arc<[Queued]>> {
        self.queue.clone()
    }

    /// Takes the messages of decisions that could not reach the agent, a line each: a system call
    /// fails without a message.
    pub async fn notes(&self, agent: AgentId) -> Vec<String> {
        self.ask(|reply| RoutingMsg::Notes { agent, reply }).await.unwrap_or_default()
    }

    /// Keeps a line for an agent until its next prompt.
    pub async fn note(&self, agent: AgentId, line: String) {
        let _ = self.mailbox.send(RoutingMsg::Note { agent, line }.into()).await;
    }

    /// Replaces the settings. Pending accesses keep their deadline.
    pub async fn change(&self, rules: Rules) {
        let _ = self.mailbox.send(RoutingMsg::Change(rules).into()).await;
    }

    /// Removes the grants and undecided accesses of an agent that left the team, since another may
    /// take its name.
    pub async fn forget(&self, agent: AgentId) {
        let _ = self.mailbox.send(RoutingMsg::Forget(agent).into()).await;
    }

    /// Waits until routing has received all earlier requests of an agent; those that are denied at
    /// once are answered by then.
    pub async fn settled(&self, agent: &AgentId) {
        let permit = self.lanes.enter(agent).await;
        let _ = self.ask_from(permit, RoutingMsg::Settle).await;
    }

    /// Whether the lane of an agent is full.
    pub fn is_full(&self, agent: &AgentId) -> bool {
        self.lanes.is_full(agent)
    }

    /// Waits until the lane of an agent has room.
    pub async fn has_room(&self, agent: &AgentId) {
        self.lanes.enter(agent).await;
    }

    /// Puts back the accesses of a briefing that was not delivered.
    pub async fn brief_again(&self) {
        let _ = self.mailbox.send(RoutingMsg::BriefAgain.into()).await;
    }

    /// Reports that the prompt with the last briefing ended.
    pub async fn briefed(&self) {
        let _ = self.mailbox.send(RoutingMsg::Briefed.into()).await;
    }

    /// Sets the session of the orchestrator agent.
    pub async fn set_orchestrator_session(&self, session: SessionId) {
        let _ = self.mailbox.send(RoutingMsg::OrchestratorSession(session).into()).await;
    }

    async fn ask<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> RoutingMsg) -> Option<T> {
        self.ask_from(None, message).await
    }

    async fn ask_from<T>(
        &self,
        permit: LanePermit,
        message: impl FnOnce(oneshot::Sender<T>) -> RoutingMsg,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(Envelope { message: message(reply), permit }).await.ok()?;
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
    /// Removes the mark; returns the ids of the accesses denied meanwhile.
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
            // The ids are not needed, but the mark must be removed even if the mailbox is full.
            spawn(async move {
                let (reply, _) = oneshot::channel();
                let _ = mailbox.send(RoutingMsg::EndOrchestrated { agent, reply }.into()).await;
            });
        }
    }
}
