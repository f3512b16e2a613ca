//! The ACP client of supervised agents: sessions, prompt queue, files, terminals, permissions.
//! Depends neither on the supervisor nor on servers.
//!
//! One task owns the state of one agent run (`actor`); each request of the agent runs in a task of
//! its own, so that no request waits for one in the opposite direction.

mod actor;
mod answer_line;
mod answers;
mod attach;
mod choice;
mod content;
mod dispatch;
mod draft;
mod elicitations;
mod error;
mod files;
mod first_prompt;
mod forks;
mod guests;
mod handshake;
mod host;
mod messages;
mod offers;
mod permissions;
mod requests;
mod rpc;
mod session_options;
mod sessions;
mod terminals;
#[cfg(test)]
mod tests;
mod tool_form;
mod transport;
mod turns;
mod writes;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::budget::Account;
use crate::capture::RunFiles;
use crate::conflicts::AgentConflicts;
use crate::model::{BlockedAccess, BlockedId, SessionId};
use crate::process::Launcher;
use crate::proxy::{Branches, Permits, Vitals};
use host::Host;
use messages::{HostMsg, Reply};
use terminals::Launch;
pub use terminals::Screens;
pub use tool_form::TeamTools;
use tool_form::ToolForm;

pub use answers::{Answers, TurnAnswer};
pub use choice::ChoiceRequest;
pub use content::{Content, is_command, team_block};
pub use draft::{PromptDraft, WaitingPrompt};
pub use error::HostError;
pub use forks::{Continuation, Document, Forking};
pub use handshake::{AgentInfo, PROTOCOL_VERSION};
pub use offers::{Chosen, OptionValue, SessionChoices, SessionCommand, SessionOption};

/// Bytes of what an agent calls its last tool call.
pub const LONGEST_ACTION: usize = 200;

/// Capacity of the host's mailbox; senders wait when it is full, the agent does not.
const MAILBOX: usize = 64;

/// Settings of the host of one agent.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// `cwd` of new sessions; an absolute path.
    pub cwd: PathBuf,
    pub permissions: PermissionPolicy,
    /// Offer `terminal/*`.
    pub terminals: bool,
    /// Offer `fs/*`.
    pub files: bool,
    pub mcp_servers: Vec<Value>,
    /// The MCP server with the tools of the team.
    pub tools: Option<TeamTools>,
    pub auth_method: Option<String>,
    pub model: Option<String>,
    /// The name that the agent's provider has for `model`: taken where the agent offers none of that name.
    pub model_there: Option<String>,
    /// None: the agent's own. One that offers no choice of it keeps that, too.
    pub thinking: Option<String>,
    pub mode: Option<String>,
    /// The mode to set without one, in which it asks for permission. An agent that does not offer it asks by
    /// itself.
    pub asking_mode: Option<String>,
    /// The prompt by which it compresses its context, unless it announces one; None if unknown.
    pub compress: Option<String>,
    /// Environment of terminals, in addition to the supervisor's.
    pub env: BTreeMap<String, String>,
    /// Timeout of each step from `initialize` to an open session.
    pub initialize_timeout: Duration,
    /// Receives the last line of each answer, if set.
    pub answers: Option<Answers>,
}

/// The answer to permission requests inside the zone, and to questions to the user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PermissionPolicy {
    Allow,
    Deny,
    /// The orchestrator decides permission requests before they reach the host; questions that only
    /// a user can answer do not go to it.
    Orchestrator,
}

/// Priority of a prompt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Urgency {
    /// After the running turn, before other queued prompts.
    Briefing,
    Normal,
}

/// The outcome of a completed turn.
#[derive(Clone, PartialEq, Debug)]
pub struct PromptOutcome {
    pub session: SessionId,
    /// As in the protocol.
    pub stop_reason: String,
    /// The reason of the end, where it is known beyond the agent's answer.
    pub reason: Option<Arc<str>>,
    /// The agent's message chunks, joined.
    pub text: String,
    /// As in [`Said`].
    pub last_message_at: usize,
    /// Accesses that were denied immediately; only for a prompt of the orchestrator.
    pub blocked: Vec<BlockedId>,
    /// Accesses of the turn that were blocked, and not allowed by its end.
    pub refused: Vec<BlockedAccess>,
}

impl PromptOutcome {
    /// The agent's text after its last tool call or plan.
    pub fn last_message(&self) -> &str {
        self.text.get(self.last_message_at..).unwrap_or_default().trim()
    }

    /// The outcome with another last message.
    #[must_use]
    pub fn with_answer(self, text: String) -> Self {
        Self { text, last_message_at: 0, ..self }
    }
}

/// The state of a turn, published over a watch channel while it runs, so that a slow reader costs
/// no more memory than the text.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Said {
    /// How often the prompt was sent. All else is of the last time.
    pub attempt: u32,
    /// Set when the prompt is sent; None while it is queued.
    pub session: Option<SessionId>,
    /// The agent's message chunks so far: a prefix of [`PromptOutcome::text`].
    pub text: String,
    /// Where the text after the agent's last tool call or plan begins.
    pub last_message_at: usize,
    /// The title of its last tool call: one line, at most [`LONGEST_ACTION`] bytes.
    pub last_action: Option<String>,
}

/// The number of turns and prompts that a cancel affected.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cancelled {
    /// Running turns that received a cancellation.
    pub turns: usize,
    /// Prompts that were withdrawn before they were sent.
    pub prompts: usize,
}

/// A session of the agent's run, with its running turn and queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionLoad {
    pub session: SessionId,
    /// Receives the prompts that name no session.
    pub is_default: bool,
    pub is_running: bool,
    /// Prompts in the queue.
    pub queued: usize,
    /// The value of each option that the agent offers there.
    pub chosen: Chosen,
}

/// Handle of the host of one agent run; cheap to clone.
#[derive(Clone, Debug)]
pub struct HostHandle {
    mailbox: mpsc::Sender<HostMsg>,
    shared: Arc<Shared>,
}

/// State that the host's task shares with its handles.
#[derive(Debug)]
struct Shared {
    settings: HostSettings,
    /// The policy in force, at first that of `settings`.
    permissions: watch::Sender<PermissionPolicy>,
    agent: OnceLock<AgentInfo>,
    /// The command by which the agent compresses its context, of those that it announced last.
    compress: watch::Sender<Option<&'static str>>,
    /// Sessions in which other values are chosen than were told last.
    chosen: watch::Sender<BTreeMap<SessionId, Chosen>>,
    /// Reports whether the agent waits for a decision.
    vitals: OnceLock<Arc<Vitals>>,
    /// How the agent takes the tools of the team.
    tool_form: ToolForm,
    /// The continuations of the agent's sessions.
    branches: Arc<Branches>,
    /// Captures files that are written for the agent.
    files: OnceLock<RunFiles>,
    /// Where its prompts get their share of a budget.
    account: OnceLock<Account>,
    /// None where conflicts are not looked for.
    conflicts: OnceLock<AgentConflicts>,
    /// The way of its terminals to those who watch.
    screens: OnceLock<Screens>,
    /// The reason of the host's end; the first one is kept.
    gone: OnceLock<String>,
}

impl HostHandle {
    /// Sets the vitals by which the clock of the handshake stops while the agent waits for others.
    pub fn set_vitals(&self, vitals: Arc<Vitals>) {
        // An agent has one only.
        let _ = self.shared.vitals.set(vitals);
    }

    /// Sets the capture of files that are written for the agent.
    pub fn set_files(&self, files: RunFiles) {
        // A run has one only.
        let _ = self.shared.files.set(files);
    }

    /// Sets what refuses the prompts of attached editors once a budget is used up.
    pub fn set_account(&self, account: Account) {
        // A run has one only.
        let _ = self.shared.account.set(account);
    }

    /// Sets the locks of files that are written for the agent.
    pub fn set_conflicts(&self, conflicts: AgentConflicts) {
        // A run has them once.
        let _ = self.shared.conflicts.set(conflicts);
    }

    /// Sets the way of the agent's terminals to those who watch.
    pub fn set_screens(&self, screens: Screens) {
        // A run has them once.
        let _ = self.shared.screens.set(screens);
    }

    /// Returns the prompt by which the agent compresses its context, if that is known: what it announced
    /// itself comes before what is known of it.
    pub fn compress_prompt(&self) -> Option<String> {
        let announced = self.shared.compress.borrow().map(str::to_owned);
        announced.or_else(|| self.shared.settings.compress.clone())
    }

    /// Whether the agent's program shows its model the tools that it lists; None: unknown, or it has none.
    pub fn shows_tools(&self) -> Option<bool> {
        self.shared.settings.tools.as_ref()?.shown
    }

    /// Creates a host on the client's end of a proxy; `launcher` starts the agent's terminals. The
    /// host ends on `cancel` or at the end of `reader`: running prompts then fail with
    /// [`HostError::Gone`], and its terminals are killed.
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
        let first = settings.tools.as_ref().and_then(|tools| tools.first);
        let shared = Arc::new(Shared {
            permissions: watch::Sender::new(settings.permissions),
            settings,
            agent: OnceLock::new(),
            compress: watch::Sender::default(),
            chosen: watch::Sender::default(),
            tool_form: ToolForm::new(first),
            vitals: OnceLock::new(),
            branches: Arc::clone(permits.branches()),
            files: OnceLock::new(),
            account: OnceLock::new(),
            conflicts: OnceLock::new(),
            screens: OnceLock::new(),
            gone: OnceLock::new(),
        });
        let (mailbox, messages) = mpsc::channel(MAILBOX);
        let mailboxes = (messages, mailbox.downgrade());
        let host = Host::new(Arc::clone(&shared), launcher, permits, mailboxes, (reader, writer));
        (Self { mailbox, shared }, host.run(cancel))
    }

    /// Returns the agent's own description; None before [`HostHandle::initialize`] succeeded.
    pub fn agent_info(&self) -> Option<&AgentInfo> {
        self.shared.agent.get()
    }

    /// Queues a prompt and returns when its turn ends. Dropping the future withdraws a queued
    /// prompt; a running turn continues.
    pub async fn prompt(
        &self,
        session: Option<SessionId>,
        content: Content,
        urgency: Urgency,
    ) -> Result<PromptOutcome, HostError> {
        self.prompt_streaming(session, content, urgency, watch::Sender::default()).await
    }

    /// Like [`HostHandle::prompt`], and publishes the turn's state through `said`.
    pub async fn prompt_streaming(
        &self,
        session: Option<SessionId>,
        content: Content,
        urgency: Urgency,
        said: watch::Sender<Said>,
    ) -> Result<PromptOutcome, HostError> {
        self.ask(|reply| HostMsg::Prompt { session, content, urgency, said, reply }).await
    }

    /// Cancels the running turn and the queued prompts, of one session or of all. The turn ends
    /// when the agent answers.
    pub async fn cancel(&self, session: Option<SessionId>) -> Result<Cancelled, HostError> {
        self.ask(|reply| HostMsg::Cancel { session, queued: true, reply }).await
    }

    /// Like [`HostHandle::cancel`], without the queued prompts.
    pub async fn cancel_turn(&self, session: Option<SessionId>) -> Result<Cancelled, HostError> {
        self.ask(|reply| HostMsg::Cancel { session, queued: false, reply }).await
    }

    /// Returns the sessions of this run, in no order.
    pub async fn session_loads(&self) -> Result<Vec<SessionLoad>, HostError> {
        self.ask(|reply| HostMsg::Loads { reply }).await
    }

    /// Returns the prompts that wait and can be changed, of one session or of all.
    pub async fn waiting(
        &self,
        session: Option<SessionId>,
    ) -> Result<Vec<WaitingPrompt>, HostError> {
        self.ask(|reply| HostMsg::Waiting { session, reply }).await
    }

    /// Gives a prompt that waits another text.
    pub async fn edit(&self, id: String, text: String) -> Result<WaitingPrompt, HostError> {
        self.ask(|reply| HostMsg::Edit { id, text, reply }).await
    }

    /// Takes back a prompt that waits; its sender gets [`HostError::Withdrawn`].
    pub async fn withdraw(&self, id: String) -> Result<WaitingPrompt, HostError> {
        self.ask(|reply| HostMsg::Withdraw { id, reply }).await
    }

    /// Waits until other values are chosen in sessions; returns each of these with all that is chosen there.
    pub async fn newly_chosen(&self) -> BTreeMap<SessionId, Chosen> {
        let mut chosen = self.shared.chosen.subscribe();
        // The sender lives as long as this handle.
        let _ = chosen.wait_for(|chosen| !chosen.is_empty()).await;
        let mut taken = BTreeMap::new();
        self.shared.chosen.send_if_modified(|chosen| {
            taken = std::mem::take(chosen);
            false
        });
        taken
    }

    /// Replaces the policy for permission requests.
    pub fn set_permissions(&self, policy: PermissionPolicy) {
        self.shared.permissions.send_replace(policy);
    }

    /// Records the reason of the agent's death before its streams end, so that callers receive it
    /// instead of "stream closed".
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
