//! One agent: a pure transition function for its lifecycle, and an actor that performs the
//! effects. Knows no other agent but the state of those it depends on.

mod actor;
mod admission;
mod confining;
mod doorkeeper;
mod lifecycle;
mod plugged;
mod prompting;
mod run;
mod stalls;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::DuplexStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::client_host::{
    AgentInfo, Cancelled, HostError, HostSettings, PromptOutcome, Said, SessionLoad,
};
use crate::model::{AgentId, AgentState, AgentStatus, OnViolation, Order, SessionId, now_ms};
use crate::process::{Command, Family, Launcher, Limits};
use crate::routing::RoutingHandle;
use crate::tracker::TrackerHandle;
use crate::zone::{Bounds, Zone};
use actor::{Actor, AgentMsg};
use prompting::RunHandle;

pub use admission::{Admission, Capacity};
pub use doorkeeper::{KernelAccessConfig, KernelAccessHandler};
pub use lifecycle::{Policy, Restarts};
pub use plugged::Plugin;
pub use stalls::{STALL_AFTER, watch_over};

/// Orders that wait for an agent; past that whoever orders waits.
const MAILBOX: usize = 64;

/// Everything one agent is started with.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct AgentSettings {
    pub id: AgentId,
    /// Of which edition of the configuration they are: a run tells which one it was started with.
    pub edition: u64,
    pub command: Command,
    /// Where its standard error is kept.
    pub log: PathBuf,
    pub zone: Arc<Zone>,
    /// What the kernel holds it to; None if it does not.
    pub bounds: Option<Arc<Bounds>>,
    /// What the kernel lacks to hold it wholly, by name, if it is meant to.
    pub kernel_lacks: Arc<[String]>,
    /// Report what it opens, where the kernel holds it.
    pub observe_files: bool,
    /// What reads its lines; None: it speaks ACP.
    pub plugin: Option<Plugin>,
    pub host: HostSettings,
    /// Open a session once it is initialized.
    pub session: bool,
    /// Sent once the session is open.
    pub prompt: Option<String>,
    /// Its permissions are the orchestrator's to give.
    pub orchestrator_permits: bool,
    pub on_violation: OnViolation,
    /// It is the one that blocked accesses are put before.
    pub is_orchestrator: bool,
    pub restarts: Restarts,
    /// How long it may be silent in a turn, and use no CPU, before it counts as stalled; zero: for
    /// ever.
    pub stall_after: Duration,
    /// Of the agent with its terminals.
    pub limits: Limits,
    /// Whether it can be expected to end when its standard input does.
    pub ends_on_eof: bool,
    /// After its standard input is closed, and again after SIGTERM.
    pub stop_grace: Duration,
}

/// What an agent shares with the rest of its team.
#[derive(Clone)]
pub struct Surroundings {
    pub launcher: Launcher,
    /// A folder in which no agent is granted anything: walls are tried by a file there.
    pub ungranted: PathBuf,
    pub bus: crate::bus::Bus,
    pub tracker: TrackerHandle,
    pub routing: RoutingHandle,
    /// Who may run.
    pub admission: Admission,
    /// What extraction asks of the disk.
    pub workspace: Arc<dyn crate::extract::Workspace>,
}

/// What holds an agent to its zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneEnforcement {
    /// The kernel does, and all that it starts.
    pub by_kernel: bool,
    /// What the kernel lacks to do so wholly, if it is meant to.
    pub lacks: Arc<[String]>,
}

/// Speaks to an agent's actor; cheap to clone.
#[derive(Clone, Debug)]
pub struct AgentHandle {
    id: AgentId,
    mailbox: mpsc::Sender<AgentMsg>,
    status: watch::Receiver<AgentStatus>,
    run: watch::Receiver<Option<RunHandle>>,
    family: watch::Receiver<Option<Family>>,
    held: watch::Receiver<ZoneEnforcement>,
    routing: RoutingHandle,
    tracker: TrackerHandle,
}

#[derive(Debug)]
pub struct Prompt {
    /// None: the agent's default one.
    pub session: Option<SessionId>,
    /// ACP content blocks.
    pub blocks: Vec<Value>,
    /// The orchestrator waits for the turn's end.
    pub by_orchestrator: bool,
    /// Shows the turn as it goes.
    pub said: watch::Sender<Said>,
}

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("agent `{agent}` is {}, not ready{}", .state.as_str(), because(.reason.as_ref()))]
    NotReady { agent: AgentId, state: AgentState, reason: Option<String> },
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("the agent is gone: it was removed, or the team is stopping")]
    Stopping,
}

fn because(reason: Option<&String>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

impl AgentHandle {
    /// Starts the actor; it does nothing until [`Order::Start`]. Dropping its future kills the
    /// agent with all that it started.
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
            routing,
            tracker,
        };
        (handle, actor.run(messages, cancel))
    }

    pub fn status(&self) -> AgentStatus {
        self.status.borrow().clone()
    }

    /// Changes with the agent's state.
    pub fn watch(&self) -> watch::Receiver<AgentStatus> {
        self.status.clone()
    }

    /// The edition of the settings that its run was started with; None if it does not run.
    pub fn edition(&self) -> Option<u64> {
        self.run.borrow().as_ref().map(|run| run.edition)
    }

    /// How its run is held to its zone, or the next one if it does not run.
    pub fn held(&self) -> ZoneEnforcement {
        self.held.borrow().clone()
    }

    /// The processes of its run, or of the last one; None if there was none yet.
    pub fn family(&self) -> Option<Family> {
        self.family.borrow().clone()
    }

    /// Goes on by other settings of the same agent, and waits for others before it starts; answers
    /// when that holds. What is only taken at a start is taken at the next.
    pub async fn change(
        &self,
        settings: AgentSettings,
        depends_on: Vec<watch::Receiver<AgentStatus>>,
    ) {
        let (reply, answer) = oneshot::channel();
        let message = AgentMsg::Change { settings: Box::new(settings), depends_on, reply };
        if self.mailbox.send(message).await.is_ok() {
            // An error says that it is gone.
            let _ = answer.await;
        }
    }

    /// Lets it leave the team: stops it in an orderly way and ends its sessions. Answers when its
    /// actor has ended.
    pub async fn leave(&self) -> AgentStatus {
        let _ = self.mailbox.send(AgentMsg::Leave).await;
        let mut status = self.status.clone();
        while status.changed().await.is_ok() {}
        status.borrow().clone()
    }

    /// Answers with the agent as it stands: once it is stopped, or the start is under way.
    pub async fn order(&self, order: Order) -> Result<AgentStatus, AgentError> {
        let (reply, answer) = oneshot::channel();
        let message = AgentMsg::Order { order, reply };
        self.mailbox.send(message).await.map_err(|_| AgentError::Stopping)?;
        let status = answer.await.map_err(|_| AgentError::Stopping)?;
        if order != Order::Stop {
            return Ok(status);
        }
        // An order to start that came meanwhile ends the wait as well.
        let ended = |now: &AgentStatus| now.state.is_at_rest() || now.restarts != status.restarts;
        let mut now = self.status.clone();
        let stopped = now.wait_for(ended).await;
        stopped.map(|status| status.clone()).map_err(|_| AgentError::Stopping)
    }

    /// Answers once the turn has ended and everyone was told. Dropping the future withdraws a
    /// prompt that still waits for its turn, and leaves a running one alone.
    pub async fn prompt(&self, prompt: Prompt) -> Result<PromptOutcome, AgentError> {
        let run = self.ready()?;
        run.prompt(&self.id, &self.routing, &self.tracker, prompt).await
    }

    /// Cancels the running turn, and with `queued` the prompts behind it.
    pub async fn cancel(
        &self,
        session: Option<SessionId>,
        queued: bool,
    ) -> Result<Cancelled, AgentError> {
        let host = self.ready()?.host;
        Ok(if queued { host.cancel(session).await? } else { host.cancel_turn(session).await? })
    }

    /// Who the agent said it is, and its sessions; None where it doesn't run, or has not said.
    pub async fn announced(&self) -> Option<(AgentInfo, Vec<SessionLoad>)> {
        let run = self.run.borrow().clone()?;
        let info = run.host.agent_info()?.clone();
        Some((info, run.host.session_loads().await.unwrap_or_default()))
    }

    pub async fn new_session(&self) -> Result<SessionId, AgentError> {
        let run = self.ready()?;
        let session = run.host.new_session().await?;
        run.settled(&self.tracker).await;
        Ok(session)
    }

    /// Attaches an editor: the stream carries ACP, as the host's `attach` says.
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

/// Returns a prompt of plain text as ACP content blocks.
pub fn text_blocks(text: &str) -> Vec<Value> {
    vec![serde_json::json!({ "type": "text", "text": text })]
}

async fn pending_or<F: Future + Unpin>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
