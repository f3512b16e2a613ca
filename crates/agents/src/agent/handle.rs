//! The handle of an agent: what others ask of it, and how that fails.

use std::sync::Arc;
use std::time::Duration;

use eisen_base::task;
use tokio::io::DuplexStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::actor::{Actor, AgentMsg};
use super::prompts::{AgentError, Handover, Prompt, RunHandle};
use super::{AgentSettings, Silence, Surroundings, ZoneEnforcement, stalls};
use crate::client_host::{
    AgentInfo, Cancelled, Continuation, Forking, PromptOutcome, SessionChoices, SessionLoad,
    WaitingPrompt,
};
use crate::model::{AgentId, AgentState, AgentStatus, How, OpenCalls, Order, SessionId, now_ms};
use crate::process::Family;
use crate::routing::RoutingHandle;
use crate::tracker::TrackerHandle;

/// Capacity of an agent's mailbox; senders wait when it is full.
const MAILBOX: usize = 64;

/// Handle of an agent's actor; cheap to clone.
#[derive(Clone, Debug)]
pub struct AgentHandle {
    id: AgentId,
    mailbox: mpsc::Sender<AgentMsg>,
    status: watch::Receiver<AgentStatus>,
    run: watch::Receiver<Option<RunHandle>>,
    family: watch::Receiver<Option<Family>>,
    held: watch::Receiver<ZoneEnforcement>,
    handover: Handover,
    routing: RoutingHandle,
    tracker: TrackerHandle,
}

impl AgentHandle {
    /// Creates the actor, which is idle until [`Order::Start`]. Dropping its future kills the agent
    /// and all its child processes.
    pub fn spawn(
        settings: AgentSettings,
        surroundings: Surroundings,
        cancel: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (mailbox, messages) = mpsc::channel(MAILBOX);
        let (status, status_seen) = watch::channel(AgentStatus {
            agent: settings.id.clone(),
            state: AgentState::Stopped,
            pid: None,
            reason: None,
            restarts: 0,
            candidate: settings.candidate.clone(),
            timestamp_ms: now_ms(),
        });
        let (run, run_seen) = watch::channel(None);
        let (family, family_seen) = watch::channel(None);
        let id = settings.id.clone();
        let (routing, tracker) = (surroundings.routing.clone(), surroundings.tracker.clone());
        let actor = Actor::new(settings, surroundings, status, run, family);
        let handle = Self {
            id,
            mailbox,
            status: status_seen,
            run: run_seen,
            family: family_seen,
            held: actor.held(),
            handover: actor.handover(),
            routing,
            tracker,
        };
        (handle, actor.run(messages, cancel))
    }

    pub fn status(&self) -> AgentStatus {
        self.status.borrow().clone()
    }

    /// Returns a receiver of the agent's status.
    pub fn watch(&self) -> watch::Receiver<AgentStatus> {
        self.status.clone()
    }

    /// Returns the edition of the settings of the current run; None without a run.
    pub fn edition(&self) -> Option<u64> {
        self.run.borrow().as_ref().map(|run| run.edition)
    }

    /// Returns the enforcement of the current run, or of the next one if the agent does not run.
    pub fn held(&self) -> ZoneEnforcement {
        self.held.borrow().clone()
    }

    /// Returns the process family of the current or last run; None before the first.
    pub fn family(&self) -> Option<Family> {
        self.family.borrow().clone()
    }

    /// Replaces the agent's settings and dependencies, and returns when the actor has them.
    /// Settings that only take effect at a start wait for the next one.
    pub async fn change(
        &self,
        settings: AgentSettings,
        depends_on: Vec<watch::Receiver<AgentStatus>>,
    ) {
        let (reply, answer) = oneshot::channel();
        let message = AgentMsg::Change { settings: Box::new(settings), depends_on, reply };
        if self.mailbox.send(message).await.is_ok() {
            // An error means that the actor has ended.
            let _ = answer.await;
        }
    }

    /// Puts a record in front of the next prompt of the agent's next run.
    pub fn hand_over(&self, record: String) {
        self.handover.set(record);
    }

    /// Has the agent fail: it stops, and is in the error state for this reason.
    pub async fn fail(&self, why: String) {
        let _ = self.mailbox.send(AgentMsg::Fail(why)).await;
    }

    /// Removes the agent from the team: stops it in order and ends its sessions. Returns when its
    /// actor has ended.
    pub async fn leave(&self) -> AgentStatus {
        let _ = self.mailbox.send(AgentMsg::Leave).await;
        let mut status = self.status.clone();
        while status.changed().await.is_ok() {}
        status.borrow().clone()
    }

    /// Returns the agent's status once it has stopped, or once the start is under way.
    pub async fn order(&self, order: Order) -> Result<AgentStatus, AgentError> {
        let (reply, answer) = oneshot::channel();
        let message = AgentMsg::Order { order, reply };
        self.mailbox.send(message).await.map_err(|_| AgentError::Stopping)?;
        let status = answer.await.map_err(|_| AgentError::Stopping)?;
        if order != Order::Stop {
            return Ok(status);
        }
        // A start that was ordered meanwhile also ends the wait.
        let ended = |now: &AgentStatus| now.state.is_at_rest() || now.restarts != status.restarts;
        let mut now = self.status.clone();
        let stopped = now.wait_for(ended).await;
        stopped.map(|status| status.clone()).map_err(|_| AgentError::Stopping)
    }

    /// Returns when the turn has ended and its activities are published. Dropping the future
    /// withdraws a queued prompt; a running turn continues.
    pub async fn prompt(&self, prompt: Prompt) -> Result<PromptOutcome, AgentError> {
        let run = self.ready()?;
        run.prompt(&self.id, &self.routing, &self.tracker, prompt).await
    }

    /// Returns once the agent has shown no progress for so long in a turn, while it waited for nobody and
    /// no tool call ran. Never without a run.
    pub async fn silent_for(&self, after: Duration) -> Silence {
        let run = self.run.borrow().clone();
        match run {
            Some(run) => stalls::silence(&run.vitals, &run.calls, after).await,
            None => std::future::pending().await,
        }
    }

    /// Cancels the running turn and, with `queued`, the prompts in the queue.
    pub async fn cancel(
        &self,
        session: Option<SessionId>,
        queued: bool,
    ) -> Result<Cancelled, AgentError> {
        let host = self.ready()?.host;
        Ok(if queued { host.cancel(session).await? } else { host.cancel_turn(session).await? })
    }

    /// Returns the prompts that wait and can be changed, of one session or of all.
    pub async fn waiting(
        &self,
        session: Option<SessionId>,
    ) -> Result<Vec<WaitingPrompt>, AgentError> {
        Ok(self.ready()?.host.waiting(session).await?)
    }

    /// Gives a prompt that waits another text.
    pub async fn edit(&self, id: String, text: String) -> Result<WaitingPrompt, AgentError> {
        Ok(self.ready()?.host.edit(id, text).await?)
    }

    /// Takes back a prompt that waits.
    pub async fn withdraw(&self, id: String) -> Result<WaitingPrompt, AgentError> {
        Ok(self.ready()?.host.withdraw(id).await?)
    }

    /// Returns what a session offers to choose, and what is chosen.
    pub async fn session_options(
        &self,
        session: Option<SessionId>,
    ) -> Result<SessionChoices, AgentError> {
        Ok(self.ready()?.host.session_options(session).await?)
    }

    /// Has the agent choose a value of an option. It goes on even if the returned future is dropped: what the
    /// agent answers is to be known.
    pub async fn set_session_option(
        &self,
        session: Option<SessionId>,
        option: String,
        value: String,
    ) -> Result<SessionChoices, AgentError> {
        let host = self.ready()?.host;
        let choosing = async move { host.set_session_option(session, &option, &value).await };
        let chosen = task::spawn(choosing).await;
        Ok(chosen.map_err(|_| AgentError::Stopping)??)
    }

    /// Returns the agent's own description and its sessions; None before the handshake.
    pub async fn announced(&self) -> Option<(AgentInfo, Vec<SessionLoad>)> {
        let run = self.run.borrow().clone()?;
        let info = run.host.agent_info()?.clone();
        Some((info, run.host.session_loads().await.unwrap_or_default()))
    }

    /// Returns the prompt by which the agent compresses its context; None if unknown.
    pub fn compress_prompt(&self) -> Option<String> {
        self.run.borrow().as_ref()?.host.compress_prompt()
    }

    /// The provider of the team's that its model calls go to; None: they go elsewhere, or it does not run.
    pub fn provider(&self) -> Option<Arc<str>> {
        let run = self.run.borrow();
        run.as_ref()?.model_calls.as_ref().map(|calls| Arc::clone(calls.provider()))
    }

    /// Its calls of models that run, by the endpoint.
    pub fn open_calls(&self) -> OpenCalls {
        let run = self.run.borrow();
        let calls = run.as_ref().and_then(|run| run.model_calls.as_ref());
        calls.map_or_else(OpenCalls::default, |calls| calls.open())
    }

    /// Whether its program shows its model the tools that it lists; None: unknown, or it has none.
    pub fn shows_tools(&self) -> Option<bool> {
        self.run.borrow().as_ref()?.host.shows_tools()
    }

    pub async fn new_session(&self) -> Result<SessionId, AgentError> {
        let run = self.ready()?;
        let session = run.host.new_session().await?;
        run.settled(&self.tracker).await;
        Ok(session)
    }

    /// Opens a session for questions beside the agent's work, which is never the default.
    pub async fn session_beside(&self) -> Result<SessionId, AgentError> {
        let run = self.ready()?;
        let session = run.host.session_beside().await?;
        run.settled(&self.tracker).await;
        Ok(session)
    }

    /// Goes on with a session of an earlier process of the agent.
    pub async fn resume(&self, session: &SessionId) -> Result<(), AgentError> {
        let run = self.ready()?;
        run.host.resume_session(session).await?;
        run.settled(&self.tracker).await;
        Ok(())
    }

    /// Opens a session that begins as a fork; returns when that is published.
    pub async fn fork(&self, forking: Forking) -> Result<(SessionId, How), AgentError> {
        let run = self.ready()?;
        let forked = run.host.fork_session(forking).await?;
        run.settled(&self.tracker).await;
        Ok(forked)
    }

    /// Sets a session back, unless `commit` fails.
    pub async fn rewind<E>(
        &self,
        session: &SessionId,
        continuation: Continuation,
        commit: impl Future<Output = Result<(), E>>,
    ) -> Result<Result<(), E>, AgentError> {
        let run = self.ready()?;
        let rewound = run.host.rewind_session(session, continuation, commit).await?;
        run.settled(&self.tracker).await;
        Ok(rewound)
    }

    /// Attaches an editor; see [`HostHandle::attach`](crate::client_host::HostHandle::attach) for
    /// the stream.
    pub async fn attach(&self) -> Result<DuplexStream, AgentError> {
        Ok(self.ready()?.host.attach().await?)
    }

    fn ready(&self) -> Result<RunHandle, AgentError> {
        let status = self.status();
        let run = self.run.borrow().clone();
        match (status.state, run) {
            (AgentState::Ready, Some(run)) => Ok(run),
            (state, _) => {
                Err(AgentError::NotReady { agent: self.id.clone(), state, reason: status.reason })
            }
        }
    }
}
