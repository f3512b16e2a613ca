//! Activities → heat, context, turns and compaction → snapshots and deltas; the orchestrator's
//! merged view. Knows nothing of where activities come from.
//!
//! [`TrackerHandle`] puts what it is told into an inbox; one task takes it out, feeds the pure
//! core (`sessions`, and below it `session`, `heat`, `view`, `merge` and `overlap`) and publishes the events
//! that the core answers with.

mod heat;
mod inbox;
mod merge;
mod overlap;
mod session;
mod session_input;
mod sessions;
mod symbols;
mod task;
mod view;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod testing;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use self::inbox::{Ask, Inbox};
use self::session_input::SessionInput;
use self::sessions::Sessions;
use self::task::Task;
use crate::bus::{Bus, Demand, Rendered};
use crate::model::{
    Activity, ActivityKind, AgentId, Model, SessionKey, SessionMode, Snapshot, TimestampMs, Topic,
    Usage, UsageReport, now_ms,
};

pub use symbols::{Symbols, Write};

/// How the map lives; see `[tracker]` of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub context_turns: u64,
    pub compaction_threshold: f64,
    pub decay_rate: f64,
    pub tick: Duration,
    pub idle_tick: Duration,
}

/// Whose session shows the merged view.
#[derive(Clone, Debug)]
pub enum OrchestratorView {
    /// A designated agent's; session `""` until it is open.
    Agent(AgentId),
    /// One of its own: agent `orchestrator`, session `team-NAME`.
    External(SessionKey),
    /// `observe`: nobody's. The key is what the empty snapshot names while no session is known.
    None(SessionKey),
}

/// A live session, without its map.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionReport {
    pub key: SessionKey,
    /// `Orchestrator` for the one that shows the merged view.
    pub mode: SessionMode,
    /// Its client opened it; the agent alone may speak of any session.
    pub is_open: bool,
    pub model: Option<Model>,
    /// Its own, in the orchestrator's session too.
    pub usage: Option<Usage>,
    pub is_running: bool,
}

/// Speaks to the tracker's task.
#[derive(Clone)]
pub struct TrackerHandle {
    inbox: Arc<Inbox>,
    roster: watch::Receiver<()>,
    /// Whether anybody wants `session/update`s.
    demand: Demand,
    clock: Clock,
}

/// Every live session at one moment.
#[derive(Clone, Default, Debug)]
pub struct Snapshots {
    /// Number of the first event on the bus that these don't contain.
    pub as_of: u64,
    /// In order of appearance, the default target first (an empty one if there is none); without a
    /// view, what belongs to no session (`""`) comes last. Those who ask at the same time share them.
    pub sessions: Vec<Arc<Rendered<Snapshot>>>,
}

type Clock = Arc<dyn Fn() -> TimestampMs + Send + Sync>;

impl TrackerHandle {
    /// Starts the tracker; the task ends when `cancel` does, after a last round of deltas.
    pub fn spawn(
        settings: Settings,
        view: OrchestratorView,
        bus: Bus,
        cancel: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send) {
        Self::spawn_with_clock(settings, view, bus, cancel, Arc::new(now_ms))
    }

    fn spawn_with_clock(
        settings: Settings,
        view: OrchestratorView,
        bus: Bus,
        cancel: CancellationToken,
        clock: Clock,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (inbox, demand) = (Arc::new(Inbox::default()), bus.demand(Topic::SessionUpdate));
        let (changing, roster) = watch::channel(());
        let sessions = Sessions::new(settings, view);
        let task = Task::new(settings, sessions, Arc::clone(&inbox), bus, changing);
        (Self { inbox, roster, demand, clock }, task.run(cancel))
    }

    /// Hands in what a line told. Never waits, and costs bounded memory. Updates are left out
    /// while nobody wants them.
    pub fn record(&self, agent: &AgentId, activity: Activity) {
        self.record_all(agent, std::iter::once(activity));
    }

    /// The same for what lines told that came together.
    pub fn record_all(&self, agent: &AgentId, activities: impl Iterator<Item = Activity>) {
        let wants_updates = self.wants_updates();
        let left_out = |kind: &_| matches!(kind, ActivityKind::Update(_)) && !wants_updates;
        let input =
            activities.filter(|activity| !left_out(&activity.kind)).filter_map(|activity| {
                let input = SessionInput::from_activity(activity.kind)?;
                Some((SessionKey::new(agent.clone(), activity.session), input))
            });
        let mut input = input.peekable();
        if input.peek().is_some() {
            self.inbox.push_inputs(input, (self.clock)());
        }
    }

    /// Whether anybody wants updates as they came; those that are told meanwhile are dropped.
    pub fn wants_updates(&self) -> bool {
        self.demand.is_there()
    }

    /// Heats a path that was blocked.
    pub fn blocked(&self, key: &SessionKey, path: Arc<str>) {
        self.inbox.push_input(key.clone(), SessionInput::blocked(path), (self.clock)());
    }

    /// From now on what is touched is told by its symbols too, as `symbols` knows them.
    pub fn join(&self, symbols: Arc<dyn Symbols>) {
        self.inbox.join(symbols);
    }

    /// Tells that the disk shows a file written, nobody knows by whom. Never waits, and costs
    /// bounded memory.
    pub fn disk_wrote(&self, path: Arc<str>) {
        self.inbox.disk_wrote(path, (self.clock)());
    }

    /// Names the session in which the designated orchestrator works from now on. Until the first
    /// call that is the first session which its agent opens. Another agent's session, or one where
    /// no agent is designated, changes nothing.
    pub fn set_orchestrator_session(&self, key: SessionKey) {
        self.inbox.orchestrate(key);
    }

    /// Ends every session of an agent that left the team: each takes back what it shows.
    pub fn forget(&self, agent: AgentId) {
        self.inbox.forget(agent);
    }

    /// Waits until everything recorded so far is published.
    pub async fn settled(&self) {
        self.ask(Ask::Settled).await;
    }

    /// What they contain was published before.
    pub async fn snapshots(&self) -> Snapshots {
        self.ask(Ask::Snapshots).await.unwrap_or_default()
    }

    /// The last usage of each session that reported one, in the order of [`Self::snapshots`].
    pub async fn usages(&self) -> Vec<UsageReport> {
        self.ask(Ask::Usages).await.unwrap_or_default()
    }

    /// Every session in order of appearance; None if the tracker has ended.
    pub async fn sessions(&self) -> Option<Vec<SessionReport>> {
        self.ask(Ask::Sessions).await
    }

    /// Changes whenever a session was opened or closed, or has another mode or model.
    pub fn roster(&self) -> watch::Receiver<()> {
        self.roster.clone()
    }

    /// None if the task has ended.
    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.inbox.ask(ask(reply));
        answer.await.ok()
    }
}

impl fmt::Debug for TrackerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackerHandle").finish_non_exhaustive()
    }
}
