//! The actor of one agent: performs the effects of its lifecycle, one run after the other.

use std::sync::Arc;

use eisen_base::task;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::admission::{StartPermit, USUAL_MEMORY, news_of, until};
use super::confinement::{RunParts, confine};
use super::lifecycle::{Effect, Lifecycle, LifecycleEvent};
use super::prompts::{Handover, RunHandle};
use super::run::{Fresh, Run, RunEvent, next_of_run};
use super::writes::files_of;
use super::{AgentSettings, Plugin, Surroundings, ZoneEnforcement, pending_or};
use crate::model::{AgentState, AgentStatus, Event as BusEvent, Order, SessionId, now_ms};
use crate::plugin::Conversation;
use crate::process::{Family, Peak};
use crate::proxy::{Branches, LiveCalls, Permits, Rules, Vitals};

#[derive(Debug)]
pub(super) enum AgentMsg {
    Order {
        order: Order,
        reply: oneshot::Sender<AgentStatus>,
    },
    Change {
        settings: Box<AgentSettings>,
        depends_on: Vec<watch::Receiver<AgentStatus>>,
        reply: oneshot::Sender<()>,
    },
    Fail(String),
    Leave,
}

/// State of one agent: its process and the tasks of its run.
pub(super) struct Actor {
    settings: AgentSettings,
    /// The settings that a run follows while it is running.
    rules: watch::Sender<Rules>,
    /// Enforcement of the current run, or of the next one.
    held: watch::Sender<ZoneEnforcement>,
    team: Surroundings,
    depends_on: Vec<watch::Receiver<AgentStatus>>,
    lifecycle: Lifecycle,
    status: watch::Sender<AgentStatus>,
    handle: watch::Sender<Option<RunHandle>>,
    run: Option<Run>,
    /// The current problem of an agent that is ready.
    concern: Option<String>,
    family: watch::Sender<Option<Family>>,
    /// Completes when the agent's dependencies are ready.
    clearance: Option<BoxFuture<'static, ()>>,
    /// The agent's position in the admission queue, then its start permit.
    place: Option<StartPermit>,
    backoff: Option<Instant>,
    /// The configured prompt has completed; a restart does not repeat it.
    prompted: watch::Sender<bool>,
    /// The last open session, which a restart restores.
    session: Option<SessionId>,
    /// The conversation that an agent behind a plugin can resume.
    conversation: Conversation,
    /// The continuations of its sessions.
    branches: Arc<Branches>,
    handover: Handover,
}

impl Actor {
    pub(super) fn new(
        settings: AgentSettings,
        team: Surroundings,
        status: watch::Sender<AgentStatus>,
        handle: watch::Sender<Option<RunHandle>>,
        family: watch::Sender<Option<Family>>,
    ) -> Self {
        let lifecycle = Lifecycle::new(settings.restarts);
        Self {
            rules: watch::Sender::new(settings.rules()),
            held: watch::Sender::new(settings.enforcement()),
            settings,
            team,
            depends_on: Vec::new(),
            lifecycle,
            status,
            handle,
            run: None,
            concern: None,
            family,
            clearance: None,
            place: None,
            backoff: None,
            prompted: watch::Sender::new(false),
            session: None,
            conversation: Conversation::default(),
            branches: Arc::default(),
            handover: Handover::default(),
        }
    }

    pub(super) fn handover(&self) -> Handover {
        self.handover.clone()
    }

    pub(super) fn held(&self) -> watch::Receiver<ZoneEnforcement> {
        self.held.subscribe()
    }

    pub(super) async fn run(
        mut self,
        mut messages: mpsc::Receiver<AgentMsg>,
        cancel: CancellationToken,
    ) {
        while !self.lifecycle.is_gone() {
            let event = tokio::select! {
                () = cancel.cancelled() => return,
                message = messages.recv() => match message {
                    Some(AgentMsg::Order { order, reply }) => {
                        self.on(match order {
                            Order::Start => LifecycleEvent::Start,
                            Order::Stop => LifecycleEvent::Stop,
                            Order::Restart => LifecycleEvent::Restart,
                        }).await;
                        let _ = reply.send(self.status.borrow().clone());
                        continue;
                    }
                    Some(AgentMsg::Change { settings, depends_on, reply }) => {
                        self.change(*settings, depends_on);
                        let _ = reply.send(());
                        continue;
                    }
                    Some(AgentMsg::Fail(why)) => LifecycleEvent::Failed(why),
                    Some(AgentMsg::Leave) => LifecycleEvent::Leave,
                    None => return,
                },
                () = pending_or(self.clearance.as_mut()) => {
                    self.clearance = None;
                    if let why @ Some(_) = self.enqueue() {
                        self.publish(why);
                    }
                    continue;
                }
                why = news_of(&mut self.place), if self.is_waiting() => match why {
                    None => LifecycleEvent::Cleared,
                    why => {
                        self.publish(why);
                        continue;
                    }
                },
                () = until(self.backoff) => {
                    self.backoff = None;
                    LifecycleEvent::BackoffOver
                }
                event = next_of_run(&mut self.run) => match self.on_run_event(event).await {
                    Some(event) => event,
                    None => continue,
                },
            };
            self.on(event).await;
        }
    }

    async fn on(&mut self, event: LifecycleEvent) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            tracing::debug!(agent = %self.settings.id, ?event, "lifecycle");
            for effect in self.lifecycle.on(event, Instant::now(), fastrand::f64()) {
                events.extend(self.perform(effect).await);
            }
        }
        if self.lifecycle.state().is_at_rest() {
            (self.clearance, self.place, self.backoff) = (None, None, None);
        }
    }

    async fn perform(&mut self, effect: Effect) -> Option<LifecycleEvent> {
        match effect {
            Effect::Publish(reason) => self.publish(reason),
            Effect::AwaitClearance => self.await_clearance(),
            Effect::Backoff(wait) => {
                self.place = None;
                self.backoff = Some(Instant::now() + wait);
            }
            Effect::Spawn => return Some(self.spawn().await),
            Effect::StopProcess => {
                self.handle.send_replace(None);
                if let Some(run) = &mut self.run {
                    run.stop(&self.settings).await;
                }
            }
            Effect::Forget => {
                let agent = self.settings.id.clone();
                self.team.routing.forget(agent.clone()).await;
                // The routing task has then seen the agent's last requests, and opens no session
                // for it again.
                self.team.routing.settled(&agent).await;
                if let Some(conflicts) = &self.team.conflicts {
                    conflicts.forget(&agent);
                }
                self.team.tracker.forget(agent);
                self.team.tracker.settled().await;
            }
        }
        None
    }

    fn change(&mut self, settings: AgentSettings, depends_on: Vec<watch::Receiver<AgentStatus>>) {
        let rules = settings.rules_after(self.run.is_some(), &self.rules);
        self.rules.send_replace(rules);
        if let Some(run) = &self.run {
            run.handle.host.set_permissions(settings.host.permissions);
        } else {
            self.held.send_replace(settings.enforcement());
        }
        self.lifecycle.set_restarts(settings.restarts);
        if settings.prompt != self.settings.prompt {
            self.prompted = watch::Sender::new(false);
        }
        if settings.candidate != self.settings.candidate {
            // Another agent does not know its session.
            (self.session, self.conversation) = (None, Conversation::default());
        }
        self.settings = settings;
        let alike = |(a, b): (&watch::Receiver<_>, &watch::Receiver<_>)| a.same_channel(b);
        let same = depends_on.len() == self.depends_on.len()
            && depends_on.iter().zip(&self.depends_on).all(alike);
        self.depends_on = depends_on;
        // An agent that waits for the same dependencies keeps its position in the queue.
        if self.is_waiting() && !same {
            self.await_clearance();
        }
    }

    fn publish(&self, reason: Option<String>) {
        let is_ready = self.lifecycle.state() == AgentState::Ready;
        let reason = reason.or_else(|| self.concern.clone().filter(|_| is_ready));
        let status = AgentStatus {
            agent: self.settings.id.clone(),
            state: self.lifecycle.state(),
            pid: self.run.as_ref().map(|run| run.pid),
            reason,
            restarts: self.lifecycle.restarts(),
            candidate: self.settings.candidate.clone(),
            timestamp_ms: now_ms(),
        };
        match (status.state, &status.reason) {
            (AgentState::Error, reason) => {
                let reason = reason.as_deref().unwrap_or_default();
                tracing::error!(agent = %status.agent, reason, "agent in error");
            }
            (AgentState::Ready | AgentState::Connecting, Some(reason)) => {
                tracing::warn!(agent = %status.agent, reason, "agent in trouble");
            }
            (AgentState::Restarting, reason) => {
                let reason = reason.as_deref().unwrap_or_default();
                tracing::warn!(agent = %status.agent, reason, "agent restarts");
            }
            (state, _) => tracing::info!(agent = %status.agent, state = state.as_str(), "agent"),
        }
        self.status.send_replace(status.clone());
        self.team.bus.publish(BusEvent::Agent(status));
    }

    fn await_clearance(&mut self) {
        let depends_on = self.depends_on.clone();
        // A restarted agent queues again.
        self.place = None;
        let mut clearance = async move {
            for mut other in depends_on {
                // The actor of a dependency has ended, so that it never becomes ready.
                if other.wait_for(|other| other.state == AgentState::Ready).await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        }
        .boxed();
        // Queue now: agents run in the order in which they were started.
        let why = if (&mut clearance).now_or_never().is_some() {
            self.clearance = None;
            self.enqueue()
        } else {
            self.clearance = Some(clearance);
            Some(self.waits_for_others())
        };
        self.publish(why);
    }

    /// Enters the admission queue; returns the reason for the wait.
    fn enqueue(&mut self) -> Option<String> {
        let last = self.family.borrow().as_ref().map(|family| family.peak().memory_bytes);
        let need = self.settings.limits.memory_bytes().or(last).unwrap_or(USUAL_MEMORY);
        let mut place = self.team.admission.enter(self.settings.id.clone(), need);
        place.wish(self.settings.slot.as_ref(), &self.settings.id);
        let why = place.waits_for();
        self.place = Some(place);
        why
    }

    fn is_waiting(&self) -> bool {
        self.lifecycle.state() == AgentState::Initializing
    }

    fn waits_for_others(&self) -> String {
        let unready = self.depends_on.iter().map(|other| other.borrow().clone());
        let unready = unready.filter(|other| other.state != AgentState::Ready);
        let unready: Vec<_> = unready.map(|other| format!("`{}`", other.agent)).collect();
        format!("waits for {} to be ready", unready.join(", "))
    }

    async fn spawn(&mut self) -> LifecycleEvent {
        let family = self.team.launcher.family(self.settings.limits);
        let launcher = self.team.launcher.within(&family);
        let (running, vitals) = (Arc::new(LiveCalls::default()), Vitals::new());
        let rules = self.settings.begin(&self.rules);
        let zone = Arc::clone(&rules.borrow().zone);
        let team = self.team.in_workspace(zone.workspace());
        let _ = task::spawn_blocking(move || zone.take_workspace()).await;
        let files = files_of(&self.settings, &team, &running, &family);
        let parts = RunParts { running, vitals, files };
        let (settings, guards) = (&self.settings, parts.clone());
        let confined = confine(launcher, settings, &team, rules.clone(), guards).await;
        let (launcher, private) = match confined {
            Ok(confined) => confined,
            Err(why) => return LifecycleEvent::NotSpawned(why),
        };
        let plug = |plugin: &Plugin| {
            plugin.plug(self.team.launcher.within(&family), self.conversation.clone())
        };
        let plugged = match self.settings.plugin.as_ref().map(plug).transpose() {
            Ok(plugged) => plugged,
            Err(why) => return LifecycleEvent::NotSpawned(why),
        };
        let (process, stdio) = match launcher.spawn(&self.settings.command).await {
            Ok(spawned) => spawned,
            Err(error) => return LifecycleEvent::NotSpawned(error.to_string()),
        };
        if let Some(place) = &self.place {
            place.set_family(&family);
        }
        self.family.send_replace(Some(family.clone()));
        self.branches.begin_run(self.session.as_ref());
        let memory = self.team.memory.of_agent(self.settings.limits.memory_bytes());
        let permits = Arc::new(Permits::with(self.branches.clone(), memory));
        let handover = self.handover.clone();
        let fresh =
            Fresh { process, stdio, launcher, family, parts, permits, private, plugged, handover };
        let run = Run::start(fresh, &self.settings, rules, &team, self.session.clone());
        self.held.send_replace(self.settings.enforcement());
        self.handle.send_replace(Some(run.handle.clone()));
        self.run = Some(run);
        LifecycleEvent::Spawned
    }

    fn publish_peak(&self) {
        if let Some(family) = &*self.family.borrow() {
            let Peak { memory_bytes, processes } = family.peak();
            tracing::info!(agent = %self.settings.id, memory_bytes, processes, "peak resource use");
        }
    }

    /// Handles an event of the run; returns None if the lifecycle does not change.
    async fn on_run_event(&mut self, event: RunEvent) -> Option<LifecycleEvent> {
        Some(match event {
            RunEvent::Opened(session) => {
                self.session.clone_from(&session);
                if let Some(run) = &mut self.run {
                    run.opened(session, &self.settings, &self.team, &self.prompted).await;
                    // A client that sees the agent ready must find its session.
                    run.handle.settled(&self.team.tracker).await;
                }
                LifecycleEvent::Opened
            }
            RunEvent::Failed(why) => LifecycleEvent::Failed(why),
            RunEvent::Concern(concern) => {
                self.concern = concern;
                if self.lifecycle.state() == AgentState::Ready {
                    self.publish(None);
                }
                return None;
            }
            RunEvent::HeldUp(why) => {
                let connects = self.lifecycle.state() == AgentState::Connecting;
                return connects.then(|| self.publish(why)).and(None);
            }
            RunEvent::Exited(exit) => {
                self.concern = None;
                let offence = self.family.borrow().as_ref().and_then(Family::exceeded_limit);
                let event = match self.run.take() {
                    Some(run) => run.finish(exit, offence).await,
                    None => LifecycleEvent::Exited { exit, why: exit.to_string() },
                };
                self.publish_peak();
                self.held.send_replace(self.settings.enforcement());
                self.handle.send_replace(None);
                self.team.tracker.settled().await;
                event
            }
        })
    }
}
