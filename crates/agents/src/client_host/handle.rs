//! The handle of the host of one agent run, and the state that the host's task shares with it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::host::Host;
use super::messages::{HostMsg, Reply};
use super::terminals::Launch;
use super::tool_form::ToolForm;
use super::{
    AgentInfo, Cancelled, Chosen, Content, HostError, HostSettings, PermissionPolicy,
    PromptOutcome, Said, Screens, SessionLoad, Urgency, WaitingPrompt,
};
use crate::budget::Account;
use crate::capture::RunFiles;
use crate::conflicts::AgentConflicts;
use crate::model::SessionId;
use crate::process::Launcher;
use crate::proxy::{Branches, Permits, Vitals};

/// Capacity of the host's mailbox; senders wait when it is full, the agent does not.
const MAILBOX: usize = 64;

/// Handle of the host of one agent run; cheap to clone.
#[derive(Clone, Debug)]
pub struct HostHandle {
    pub(super) mailbox: mpsc::Sender<HostMsg>,
    pub(super) shared: Arc<Shared>,
}

/// State that the host's task shares with its handles.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: HostSettings,
    /// The policy in force, at first that of `settings`.
    pub(super) permissions: watch::Sender<PermissionPolicy>,
    pub(super) agent: OnceLock<AgentInfo>,
    /// The command by which the agent compresses its context, of those that it announced last.
    pub(super) compress: watch::Sender<Option<&'static str>>,
    /// Sessions in which other values are chosen than were told last.
    pub(super) chosen: watch::Sender<BTreeMap<SessionId, Chosen>>,
    /// Reports whether the agent waits for a decision.
    pub(super) vitals: OnceLock<Arc<Vitals>>,
    /// How the agent takes the tools of the team.
    pub(super) tool_form: ToolForm,
    /// The continuations of the agent's sessions.
    pub(super) branches: Arc<Branches>,
    /// Captures files that are written for the agent.
    pub(super) files: OnceLock<RunFiles>,
    /// Where its prompts get their share of a budget.
    pub(super) account: OnceLock<Account>,
    /// None where conflicts are not looked for.
    pub(super) conflicts: OnceLock<AgentConflicts>,
    /// The way of its terminals to those who watch.
    pub(super) screens: OnceLock<Screens>,
    /// The reason of the host's end; the first one is kept.
    pub(super) gone: OnceLock<String>,
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

    pub(super) fn spawn_with<R, W>(
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

    pub(super) async fn ask<T>(
        &self,
        message: impl FnOnce(Reply<T>) -> HostMsg,
    ) -> Result<T, HostError> {
        let (reply, answer) = oneshot::channel();
        self.send(message(reply)).await?;
        answer.await.unwrap_or_else(|_| Err(self.shared.gone()))
    }

    pub(super) async fn send(&self, message: HostMsg) -> Result<(), HostError> {
        self.mailbox.send(message).await.map_err(|_| self.shared.gone())
    }
}

impl Shared {
    pub(super) fn gone(&self) -> HostError {
        let reason = self.gone.get().map_or("its client ended", String::as_str);
        HostError::Gone(reason.to_owned())
    }
}
