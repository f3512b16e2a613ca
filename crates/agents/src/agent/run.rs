//! One run of an agent: its process, relay, host and monitors, wired together.

use std::sync::Arc;
use std::time::Duration;

use eisen_base::task::{self, TaskSet};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::AsyncReadExt;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::concerns::{Concerns, enforce, watch_workspace};
use super::confinement::{Private, RunParts};
use super::lifecycle::LifecycleEvent;
use super::plugged::{DUPLEX, Plugged, Wires, translated};
use super::prompts::{Handover, RunHandle, send_briefings};
use super::stalls::publish_held;
use super::{AgentSettings, Surroundings, locks, pending_or, text_blocks, watch_over};
use crate::budget::BudgetStanding;
use crate::bus::Bus;
use crate::capture::RunFiles;
use crate::client_host::{HostError, HostHandle, PromptDraft, Screens, Urgency};
use crate::conflicts::RunOfAgent;
use crate::extract::Acp;
use crate::model::{
    AgentId, ChosenOptions, Event as BusEvent, OnLoop, SessionId, SessionKey, now_ms,
};
use crate::process::{Exit, Family, Launcher, Process, StderrLog, Stdio, Stopped};
use crate::proxy::{Gatekeeping, Permits, Proxy, Rules, Streams, Vitals};

/// One run of the agent's process.
pub(super) struct Run {
    /// The process, then its exit.
    process: Ending,
    pub(super) pid: u32,
    stderr: StderrLog,
    pub(super) handle: RunHandle,
    /// Opens the session; None once complete.
    handshake: Option<BoxFuture<'static, Result<Option<SessionId>, HostError>>>,
    /// Reports the reason of the process's death to the relay.
    ended: oneshot::Sender<String>,
    /// The tasks of relay and client host, which end after the process.
    wires: TaskSet,
    /// Its stop was ordered.
    ordered: bool,
    /// The reason why the relay failed, if it did.
    broken: watch::Receiver<Option<String>>,
    /// Its problems.
    concerns: Concerns,
    /// The decision that the agent waits for.
    held_up: watch::Receiver<Option<String>>,
    /// The tasks of prompts, briefings and monitors.
    beside: TaskSet,
    private: Option<Private>,
    /// Ends the locks of the run.
    _locks: Option<RunOfAgent>,
}

/// The parts of a new run.
pub(super) struct Fresh {
    pub(super) process: Process,
    pub(super) stdio: Stdio,
    /// Launches its terminals.
    pub(super) launcher: Launcher,
    pub(super) family: Family,
    pub(super) parts: RunParts,
    pub(super) permits: Arc<Permits>,
    /// Kept for the duration of the run.
    pub(super) private: Option<Private>,
    /// The plugin of an agent that does not speak ACP.
    pub(super) plugged: Option<Plugged>,
    pub(super) handover: Handover,
}

enum Ending {
    Running(Process),
    Stopping(BoxFuture<'static, Exit>),
}

/// An event of a run.
pub(super) enum RunEvent {
    Opened(Option<SessionId>),
    Failed(String),
    Concern(Option<String>),
    /// Its start waits for a decision; None when it no longer does.
    HeldUp(Option<String>),
    Exited(Exit),
}

impl Run {
    pub(super) fn start(
        fresh: Fresh,
        settings: &AgentSettings,
        rules: watch::Receiver<Rules>,
        team: &Surroundings,
        last: Option<SessionId>,
    ) -> Self {
        let Fresh { process, stdio, launcher, family, parts, permits, private, .. } = fresh;
        let Fresh { plugged, handover, .. } = fresh;
        let (client, proxy_client) = tokio::io::duplex(DUPLEX);
        let (from_client, to_client) = tokio::io::split(proxy_client);
        let (from_proxy, to_proxy) = tokio::io::split(client);
        let gate = locks::gate(team, settings, rules.clone(), permits.clone());
        let proxy = proxy(settings, team, gate, parts.clone(), plugged.is_some());
        let RunParts { running, vitals, files } = parts;
        let wires: Wires = (Box::new(stdio.stdout), Box::new(stdio.stdin));
        let ((from_agent, to_agent), plugin_concern, translation) = translated(wires, plugged);
        let streams = Streams { from_agent, to_agent, from_client, to_client };
        let (ended, death) = oneshot::channel();
        let (relay_handle, relaying) = proxy.start(streams, death);
        // The host's stream ends when `open` is dropped, after the relay's error was recorded.
        let (end, open) = tokio::io::duplex(1);
        let (host, hosting) = HostHandle::spawn(
            settings.host.clone(),
            launcher,
            permits,
            from_proxy.chain(end),
            to_proxy,
            CancellationToken::new(),
        );
        let (breaking, broken) = watch::channel(None);
        let mut wires = TaskSet::default();
        let dying = host.clone();
        let breaks = move |why: String| {
            dying.died(&why);
            breaking.send_if_modified(|known| known.is_none() && known.replace(why).is_none());
        };
        if let Some((translator, agent, far)) = translation {
            wires.spawn(translator.run(agent, tokio::io::split(far), breaks.clone()));
        }
        wires.spawn(async move {
            let (relayed, streams) = relaying.await;
            relayed.unwrap_or_else(|error| breaks(error.to_string()));
            drop((streams, open));
        });
        // The host's log lines name the agent.
        wires.spawn(hosting.instrument(tracing::error_span!("host", agent = %settings.id)));
        equip(&host, (settings, team), vitals.clone(), files.clone());
        let locks = locks::begin(team, settings, process.pid(), &host, vitals.clone());
        let (concern_sender, concern) = watch::channel(None);
        let (held_sender, held_up) = watch::channel(None);
        let mut beside = TaskSet::default();
        let (moved_sender, moved) = watch::channel(None);
        beside.spawn(watch_workspace(rules, moved_sender));
        beside.spawn(publish_held(vitals.clone(), held_sender));
        beside.spawn(publish_chosen(host.clone(), settings.id.clone(), team.bus.clone()));
        beside.spawn(enforce(settings.account.standing(), relay_handle.clone()));
        let cpu_ms = move || family.usage().cpu_ms;
        beside.spawn(watch_over(vitals.clone(), settings.stall_after, cpu_ms, concern_sender));
        let (log, id, pid) = (settings.log.clone(), settings.id.clone(), process.pid());
        let handshake = handshake(host.clone(), settings.session, last).boxed();
        let losses = files.as_ref().map_or_else(|| watch::channel(None).1, RunFiles::lost);
        Self {
            pid,
            stderr: StderrLog::spawn(stdio.stderr, log, id, pid),
            process: Ending::Running(process),
            handle: RunHandle {
                host,
                relay: relay_handle,
                vitals,
                calls: running,
                account: settings.account.clone(),
                model_calls: settings.model_calls.clone(),
                files,
                edition: settings.edition,
                handover,
            },
            handshake: Some(handshake),
            ended,
            wires,
            ordered: false,
            broken,
            concerns: Concerns::new([moved, concern, plugin_concern, losses], standing(settings)),
            held_up,
            beside,
            private,
            _locks: locks,
        }
    }

    /// Begins to stop the process in order.
    pub(super) async fn stop(&mut self, settings: &AgentSettings) {
        self.handshake = None;
        self.ordered = true;
        self.handle.relay.close_agent().await;
        let placeholder = Ending::Stopping(std::future::pending().boxed());
        let process = match std::mem::replace(&mut self.process, placeholder) {
            Ending::Running(process) => process,
            // It stops already, by an earlier order or on its own.
            ending @ Ending::Stopping(_) => {
                self.process = ending;
                return;
            }
        };
        let (agent, grace) = (settings.id.clone(), settings.stop_grace);
        // Skip the wait for an exit that will not come.
        let ends_on_eof = settings.ends_on_eof;
        let for_eof = if ends_on_eof { grace } else { Duration::ZERO };
        self.process = Ending::Stopping(Box::pin(async move {
            match process.stop(for_eof, grace).await {
                Stopped::OnEof(exit) => exit,
                Stopped::OnTerm(exit) => {
                    if ends_on_eof {
                        tracing::info!(%agent, "did not exit when its input closed: SIGTERM was needed");
                    }
                    exit
                }
                Stopped::Killed => {
                    tracing::warn!(%agent, ?grace, "did not end on SIGTERM: killed");
                    Exit::KILLED
                }
            }
        }));
    }

    /// Starts the work of an open session: briefings and the configured prompt.
    pub(super) async fn opened(
        &mut self,
        session: Option<SessionId>,
        settings: &AgentSettings,
        team: &Surroundings,
        prompted: &watch::Sender<bool>,
    ) {
        let Some(session) = session else { return };
        if settings.is_orchestrator {
            let key = SessionKey::new(settings.id.clone(), session.clone());
            team.tracker.set_orchestrator_session(key);
            team.routing.set_orchestrator_session(session.clone()).await;
            self.beside.spawn(send_briefings(self.handle.clone(), team.clone()));
        }
        if let Some(prompt) = settings.prompt.clone().filter(|_| !*prompted.borrow()) {
            let (run, prompted) = (self.handle.clone(), prompted.clone());
            let (agent, may_move) = (settings.id.clone(), settings.candidate.is_some());
            self.beside.spawn(async move {
                let draft = PromptDraft::new(text_blocks(&prompt), None);
                let (handover, words) = (run.handover.clone(), draft.clone());
                let making = async move { Some(handover.before(words.blocks())) };
                let (content, share) = run.with_share(making, false);
                let content = content.of_draft(draft);
                let outcome = run.host.prompt(Some(session), content, Urgency::Normal).await;
                match share.outcome(outcome) {
                    Err(error @ HostError::Gone(_)) => {
                        tracing::warn!(%agent, %error, "the prompt of the configuration broke off");
                    }
                    Err(error) => {
                        tracing::warn!(%agent, %error, "the prompt of the configuration failed");
                        // The next candidate gets it, too.
                        prompted.send_replace(!may_move);
                    }
                    Ok(outcome) => {
                        let failed = run.relay.turn_end(outcome.session).await;
                        let failed = failed.is_some_and(|end| end.reason.is_some());
                        prompted.send_replace(!(failed && may_move));
                    }
                }
            });
        }
    }

    /// Ends the tasks of the run once the process is dead, and returns how it died; `offence` names
    /// a limit that it broke.
    pub(super) async fn finish(mut self, exit: Exit, offence: Option<String>) -> LifecycleEvent {
        let offence = offence.filter(|_| !self.ordered);
        let offended = offence.is_some();
        let mut why = match offence.or_else(|| self.broken.borrow().clone()) {
            Some(known) => known,
            None if self.ordered => "it was stopped".to_owned(),
            None => exit.to_string(),
        };
        let mut tail = self.stderr.tail().await;
        // Some say why they end in a line of their output, and with status 0.
        let is_early = self.handle.host.agent_info().is_none();
        if is_early && tail.is_empty() {
            tail.extend(self.handle.vitals.last_stray());
        }
        if (!exit.success() || is_early) && !self.ordered && !tail.is_empty() {
            why = format!("{why}; its last words: {}", tail.join(" | "));
        }
        // The end of the relay ends the host, which ends every running prompt.
        self.handle.host.died(&why);
        let _ = self.ended.send(why.clone());
        while self.wires.join_next().await.is_some() {}
        if let Some(private) = self.private.take() {
            // The terminals have ended already.
            let _ = task::spawn_blocking(|| drop(private)).await;
        }
        // The agent's last output may be the cause.
        match self.broken.borrow().clone() {
            Some(why) if !offended => LifecycleEvent::BrokeOff(why),
            _ => LifecycleEvent::Exited { exit, why },
        }
    }
}

/// How the agent stands with its budgets, by which it may be refused from the start.
fn standing(settings: &AgentSettings) -> watch::Receiver<BudgetStanding> {
    let mut standing = settings.account.standing();
    standing.mark_changed();
    standing
}

/// Gives the host of a run what it shares with the proxy.
fn equip(
    host: &HostHandle,
    (settings, team): (&AgentSettings, &Surroundings),
    vitals: Arc<Vitals>,
    files: Option<RunFiles>,
) {
    host.set_vitals(vitals);
    host.set_account(settings.account.clone());
    host.set_screens(Screens::new(team.tracker.clone(), settings.id.clone()));
    if let Some(files) = files {
        host.set_files(files);
    }
}

/// Tells what is chosen in sessions whenever that changes, at most so often: an agent may change it as often as
/// it likes.
async fn publish_chosen(host: HostHandle, agent: AgentId, bus: Bus) {
    const PAUSE: Duration = Duration::from_secs(1);
    loop {
        for (session, chosen) in host.newly_chosen().await {
            let key = SessionKey::new(agent.clone(), session);
            let timestamp_ms = now_ms();
            bus.publish(BusEvent::Chosen(ChosenOptions { key, chosen, timestamp_ms }));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Builds the proxy of one run; `plugged` means that a plugin translates for the agent.
fn proxy(
    settings: &AgentSettings,
    team: &Surroundings,
    gate: Gatekeeping,
    parts: RunParts,
    plugged: bool,
) -> Proxy {
    let RunParts { running, vitals, files } = parts;
    if let Some(calls) = &settings.model_calls {
        calls.follow(vitals.clone());
    }
    let extractor = Acp::new(team.workspace.clone(), settings.host.cwd.clone());
    let extractor = extractor.counting(settings.usage, settings.uncounted_mode.clone());
    let extractor = extractor.finding_loops(settings.on_loop != OnLoop::Off).leaving_outputs();
    let extractor = if plugged { extractor.with_reasons() } else { extractor };
    Proxy {
        agent: settings.id.clone(),
        extractor: Box::new(extractor),
        tracker: team.tracker.clone(),
        gate: Some(gate),
        running: Some(running),
        vitals,
        files,
        account: settings.account.clone(),
        model_calls: settings.model_calls.clone(),
        tally: team.tally.clone(),
    }
}

/// Waits for the next event of a run; without a run it never returns.
pub(super) async fn next_of_run(run: &mut Option<Run>) -> RunEvent {
    let Some(run) = run else { return std::future::pending().await };
    let Run { process, handshake, broken, concerns, held_up, .. } = run;
    let (stopping, starting) = (matches!(process, Ending::Stopping(_)), handshake.is_some());
    tokio::select! {
        biased;
        // Before the exit, which may be its consequence.
        why = broken_off(broken), if !stopping => RunEvent::Failed(why),
        exit = process.exit() => RunEvent::Exited(exit),
        opened = pending_or(handshake.as_mut()) => {
            *handshake = None;
            match opened {
                Ok(session) => RunEvent::Opened(session),
                // The agent is dying, and its exit has the better reason.
                Err(HostError::Gone(_)) => RunEvent::Exited(process.exit().await),
                Err(error) => RunEvent::Failed(error.to_string()),
            }
        }
        problem = concerns.changed() => RunEvent::Concern(problem),
        Ok(()) = held_up.changed(), if starting => {
            RunEvent::HeldUp(held_up.borrow_and_update().clone())
        }
    }
}

impl Ending {
    /// Waits until the process and its child processes are dead.
    async fn exit(&mut self) -> Exit {
        if let Self::Running(process) = self {
            process.wait().await;
            let placeholder = Self::Stopping(std::future::pending().boxed());
            if let Self::Running(process) = std::mem::replace(self, placeholder) {
                *self = Self::Stopping(process.kill().boxed());
            }
        }
        match self {
            Self::Stopping(ending) => ending.await,
            Self::Running(_) => std::future::pending().await,
        }
    }
}

/// Opens a session if the settings ask for one; restores `last` if there is one.
async fn handshake(
    host: HostHandle,
    session: bool,
    last: Option<SessionId>,
) -> Result<Option<SessionId>, HostError> {
    host.initialize().await?;
    match last {
        _ if !session => Ok(None),
        Some(last) => host.restore_session(last).await.map(Some),
        None => host.new_session().await.map(Some),
    }
}

async fn broken_off(broken: &mut watch::Receiver<Option<String>>) -> String {
    match broken.wait_for(Option::is_some).await.map(|why| why.clone()) {
        Ok(Some(why)) => why,
        _ => std::future::pending().await,
    }
}
