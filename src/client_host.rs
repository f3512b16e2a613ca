//! The ACP client of supervised agents: sessions, prompt queue, files, terminals, permissions.
//! Knows neither the supervisor nor servers.
//!
//! One task owns the state of one agent run (`actor`); what an agent asks for runs in tasks of
//! its own, so that no request ever waits for one in the opposite direction.

mod actor;
mod answers;
mod attach;
mod content;
mod dispatch;
mod elicitations;
mod error;
mod files;
mod guests;
mod handshake;
mod host;
mod messages;
mod permissions;
mod requests;
mod rpc;
mod sessions;
mod terminals;
#[cfg(test)]
mod tests;
mod transport;
mod turns;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::model::{BlockedId, SessionId};
use crate::process::Launcher;
use crate::proxy::{Permits, Vitals};
use host::Host;
use messages::{HostMsg, Reply};
use terminals::Launch;

pub use answers::{Answers, TurnAnswer};
pub use content::Content;
pub use error::HostError;
pub use handshake::AgentInfo;

/// Messages that wait for the host's task; past that the sender waits, never the agent.
const MAILBOX: usize = 64;

/// How the host behaves towards one agent.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Absolute: `cwd` of new sessions.
    pub cwd: PathBuf,
    pub permissions: PermissionPolicy,
    /// Whether `terminal/*` is offered.
    pub terminals: bool,
    /// Whether `fs/*` is offered.
    pub files: bool,
    pub mcp_servers: Vec<Value>,
    pub auth_method: Option<String>,
    pub model: Option<String>,
    pub mode: Option<String>,
    /// Environment of terminals beside the supervisor's own.
    pub env: BTreeMap<String, String>,
    /// For each step until a session is open, `initialize` first.
    pub initialize_timeout: Duration,
    /// Where the end of each answer goes; None: nowhere.
    pub answers: Option<Answers>,
}

/// How a permission request inside the zone is answered, and a question to the user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PermissionPolicy {
    Allow,
    Deny,
    /// The orchestrator is asked before a permission request comes here, and is not asked what
    /// only a user can know.
    Orchestrator,
}

/// Which prompts go first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Urgency {
    /// Behind the running turn, before other queued prompts.
    Briefing,
    Normal,
}

/// A prompt turn that came to its end.
#[derive(Clone, PartialEq, Debug)]
pub struct PromptOutcome {
    pub session: SessionId,
    /// As the protocol has it.
    pub stop_reason: String,
    /// Why it ended so, where more is known than the agent says.
    pub reason: Option<Arc<str>>,
    /// The agent's message chunks, joined.
    pub text: String,
    /// Accesses that were denied at once, for a prompt of the orchestrator's.
    pub blocked: Vec<BlockedId>,
}

/// What is known of a turn while it runs: read along over a watch channel, so that a slow reader
/// costs no more than the text itself.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Said {
    /// Set once the prompt was sent; it waits in a queue till then.
    pub session: Option<SessionId>,
    /// The agent's message chunks so far: a prefix of [`PromptOutcome::text`].
    pub text: String,
}

/// What a cancel met.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cancelled {
    /// Running turns that the agent was asked to end.
    pub turns: usize,
    /// Prompts that were withdrawn before they were sent.
    pub prompts: usize,
}

/// A session of the agent's run, and what goes on in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionLoad {
    pub session: SessionId,
    /// Takes the prompts that name no session.
    pub is_default: bool,
    pub is_running: bool,
    /// Prompts behind that.
    pub queued: usize,
}

/// Speaks to the host of one agent run.
#[derive(Clone, Debug)]
pub struct HostHandle {
    mailbox: mpsc::Sender<HostMsg>,
    shared: Arc<Shared>,
}

/// What the host's task and its handles both read.
#[derive(Debug)]
struct Shared {
    settings: HostSettings,
    /// Those of `settings`, until others were set.
    permissions: watch::Sender<PermissionPolicy>,
    agent: OnceLock<AgentInfo>,
    /// Tells while the agent waits for others.
    vitals: OnceLock<Arc<Vitals>>,
    /// Why the host ended; the first reason given stays.
    gone: OnceLock<String>,
}

impl HostHandle {
    /// Lets the clock of the handshake stand still while the agent waits for others.
    pub fn mind(&self, vitals: Arc<Vitals>) {
        // One agent has one.
        let _ = self.shared.vitals.set(vitals);
    }

    /// Starts a host on the client's end of a proxy; `launcher` starts the agent's terminals. It
    /// ends with `cancel`, or when `reader` does; every prompt that runs then ends with
    /// [`HostError::Gone`], its terminals are killed.
    pub fn spawn<R, W>(
        settings: HostSettings,
        launcher: Launcher,
        permits: Arc<Permits>,
        reader: R,
        writer: W,
        cancel: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send)
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        Self::spawn_with(settings, Arc::new(launcher), permits, reader, writer, cancel)
    }

    fn spawn_with<R, W>(
        settings: HostSettings,
        launcher: Arc<dyn Launch>,
        permits: Arc<Permits>,
        reader: R,
        writer: W,
        cancel: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send)
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let shared = Arc::new(Shared {
            permissions: watch::Sender::new(settings.permissions),
            settings,
            agent: OnceLock::new(),
            vitals: OnceLock::new(),
            gone: OnceLock::new(),
        });
        let (mailbox, messages) = mpsc::channel(MAILBOX);
        let host = Host::new(Arc::clone(&shared), launcher, permits, messages, reader, writer);
        (Self { mailbox, shared }, host.run(cancel))
    }

    /// Who the agent said it is; None before [`HostHandle::initialize`] succeeded.
    pub fn agent_info(&self) -> Option<&AgentInfo> {
        self.shared.agent.get()
    }

    /// Queues a prompt; answers when its turn ends. Dropping the future withdraws a queued prompt,
    /// and leaves a running one alone.
    pub async fn prompt(
        &self,
        session: Option<SessionId>,
        content: Content,
        urgency: Urgency,
    ) -> Result<PromptOutcome, HostError> {
        self.prompt_aloud(session, content, urgency, watch::Sender::default()).await
    }

    /// Like [`HostHandle::prompt`], and `said` shows the turn as it goes.
    pub async fn prompt_aloud(
        &self,
        session: Option<SessionId>,
        content: Content,
        urgency: Urgency,
        said: watch::Sender<Said>,
    ) -> Result<PromptOutcome, HostError> {
        self.ask(|reply| HostMsg::Prompt { session, content, urgency, said, reply }).await
    }

    /// Cancels the running turn and what is queued, of one session or all. The turn itself ends
    /// when the agent says so.
    pub async fn cancel(&self, session: Option<SessionId>) -> Result<Cancelled, HostError> {
        self.ask(|reply| HostMsg::Cancel { session, queued: true, reply }).await
    }

    /// Like [`HostHandle::cancel`], and leaves what is queued alone.
    pub async fn cancel_turn(&self, session: Option<SessionId>) -> Result<Cancelled, HostError> {
        self.ask(|reply| HostMsg::Cancel { session, queued: false, reply }).await
    }

    /// The sessions of this run, in no order.
    pub async fn session_loads(&self) -> Result<Vec<SessionLoad>, HostError> {
        self.ask(|reply| HostMsg::Loads { reply }).await
    }

    /// Answers permission requests by another policy from now on.
    pub fn set_permissions(&self, policy: PermissionPolicy) {
        self.shared.permissions.send_replace(policy);
    }

    /// Says why the agent died, before its streams end: those who wait are told this, and not that
    /// a stream closed.
    pub fn died(&self, why: &str) {
        let _ = self.shared.gone.set(why.to_owned());
    }

    async fn ask<T>(&self, message: impl FnOnce(Reply<T>) -> HostMsg) -> Result<T, HostError> {
        let (reply, answer) = oneshot::channel();
        self.send(message(reply)).await?;
        answer.await.unwrap_or_else(|_| Err(self.shared.gone()))
    }

    async fn send(&self, message: HostMsg) -> Result<(), HostError> {
        self.mailbox.send(message).await.map_err(|_| self.shared.gone())
    }
}

impl Shared {
    fn gone(&self) -> HostError {
        let reason = self.gone.get().map_or("its client ended", String::as_str);
        HostError::Gone(reason.to_owned())
    }
}
