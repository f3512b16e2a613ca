//! Folds activities into heat maps (heat, context, turns, compaction) and publishes them as
//! snapshots and deltas, with the orchestrator's merged view. Does not know where activities come
//! from.
//!
//! [`TrackerHandle`] pushes inputs into an inbox; one task takes them out, applies them to the
//! pure core (`sessions`, and below it `session`, `heat`, `view`, `merge` and `overlap`) and
//! publishes the resulting events.

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
mod testing;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use self::inbox::{Inbox, Query};
use self::session_input::SessionInput;
use self::sessions::Sessions;
use self::task::Task;
use crate::bus::{Bus, Demand, Rendered};
use crate::model::{
    Activity, ActivityKind, AgentId, FileChange, Model, Overlap, Record, SeenBy, SessionId,
    SessionKey, SessionMode, Snapshot, Source, Spending, Spent, TimestampMs, Topic, Touch,
    UpdateDetail, Usage, UsageReport, now_ms,
};

pub use symbols::{Symbols, Write};

/// The `[tracker]` section of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub context_turns: u64,
    pub compaction_threshold: f64,
    pub decay_rate: f64,
    pub tick: Duration,
    pub idle_tick: Duration,
}

/// The session that shows the merged view.
#[derive(Clone, Debug)]
pub enum OrchestratorView {
    /// A session of the designated agent; `""` until one is open.
    Agent(AgentId),
    /// A separate one: agent `orchestrator`, session `team-NAME`.
    External(SessionKey),
    /// No view, in `observe`. The key names the empty snapshot while no session is known.
    None(SessionKey),
}

/// A live session, without its map.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionReport {
    pub key: SessionKey,
    /// `Orchestrator` for the one that shows the merged view.
    pub mode: SessionMode,
    /// Its client opened it. An agent can name sessions that no client opened.
    pub is_open: bool,
    pub model: Option<Model>,
    /// Its own usage, not the team's, also for the orchestrator's session.
    pub usage: Option<Usage>,
    /// Since the team began.
    pub spent: Spent,
    pub is_running: bool,
}

/// Sends inputs and queries to the tracker's task; cheap to clone.
#[derive(Clone)]
pub struct TrackerHandle {
    inbox: Arc<Inbox>,
    roster: watch::Receiver<()>,
    /// Subscribers of `session/update`, and of records.
    demands: [Demand; 2],
    settings: Settings,
    clock: Clock,
}

/// Every live session at one moment.
#[derive(Clone, Default, Debug)]
pub struct Snapshots {
    /// Number of the first event on the bus that is not included.
    pub as_of: u64,
    /// In order of appearance, the default target first (or an empty one); without a view, session
    /// `""` comes last. Concurrent queries share them.
    pub sessions: Vec<Arc<Rendered<Snapshot>>>,
}

/// The clock for recorded events.
pub type Clock = Arc<dyn Fn() -> TimestampMs + Send + Sync>;

impl TrackerHandle {
    /// Starts the tracker; the task ends after `cancel`, with a last round of deltas.
    pub fn spawn(
        settings: Settings,
        view: OrchestratorView,
        bus: Bus,
        cancel: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send) {
        Self::spawn_with_clock(settings, view, bus, cancel, Arc::new(now_ms))
    }

    /// Like [`Self::spawn`], with another clock than the system's.
    pub fn spawn_with_clock(
        settings: Settings,
        view: OrchestratorView,
        bus: Bus,
        cancel: CancellationToken,
        clock: Clock,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let inbox = Arc::new(Inbox::default());
        let demands = [Topic::SessionUpdate, Topic::Record].map(|topic| bus.demand(topic));
        let (changing, roster) = watch::channel(());
        let sessions = Sessions::new(settings, view);
        let task = Task::new(settings, sessions, Arc::clone(&inbox), bus, changing);
        (Self { inbox, roster, demands, settings, clock }, task.run(cancel))
    }

    /// Records one activity. Never waits, bounded memory. Drops updates without a subscriber.
    pub fn record(&self, agent: &AgentId, activity: Activity) {
        self.record_all(agent, std::iter::once(activity));
    }

    /// Records several activities, and wakes the task once.
    pub fn record_all(&self, agent: &AgentId, activities: impl Iterator<Item = Activity>) {
        let wants_updates = self.wants_updates();
        let is_unwanted = |kind: &_| {
            matches!(kind, ActivityKind::Update(_) | ActivityKind::Record(_)) && !wants_updates
        };
        let input =
            activities.filter(|activity| !is_unwanted(&activity.kind)).flat_map(|activity| {
                let read = if wants_updates { read_of(&activity.kind) } else { None };
                let input = SessionInput::from_activity(activity.kind);
                let key = SessionKey::new(agent.clone(), activity.session);
                let read = read.map(SessionInput::Record);
                [read, input].into_iter().flatten().map(move |input| (key.clone(), input))
            });
        let mut input = input.peekable();
        if input.peek().is_some() {
            self.inbox.push_inputs(input, (self.clock)());
        }
    }

    /// Records what a call took that `began` then: it counts to the turn that ran at that time, also if that has ended.
    pub fn spent(
        &self,
        agent: &AgentId,
        session: SessionId,
        spending: Spending,
        began: TimestampMs,
    ) {
        let key = SessionKey::new(agent.clone(), session);
        self.inbox.push_input(key, SessionInput::Spent(spending, Some(began)), (self.clock)());
    }

    /// Records a changed file, before the inputs that [`TrackerHandle::hold`] holds back.
    pub fn file_changed(&self, key: SessionKey, change: FileChange) {
        if self.wants_updates() {
            let input = SessionInput::Record(Record::FileChanged(Arc::new(change)));
            self.inbox.push_ahead(key, input, (self.clock)());
        }
    }

    /// Records a file that the client read for a session.
    pub fn file_read(&self, key: SessionKey, path: Arc<str>) {
        if self.wants_updates() {
            let read = Record::FileRead { path, by: SeenBy::ClientHost };
            self.inbox.push_input(key, SessionInput::Record(read), (self.clock)());
        }
    }

    /// Holds back an agent's inputs from now on, until the value is dropped.
    pub fn hold(&self, agent: &AgentId) -> Hold {
        self.inbox.hold(agent);
        Hold { inbox: Arc::clone(&self.inbox), agent: agent.clone() }
    }

    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// How much of an agent's updates its subscribers want: of `session/update` each, of records
    /// the texts.
    pub fn update_detail(&self) -> UpdateDetail {
        match self.demands.each_ref().map(Demand::is_there) {
            [true, _] => UpdateDetail::Each,
            [false, true] => UpdateDetail::Merged,
            [false, false] => UpdateDetail::None,
        }
    }

    /// Whether there is a subscriber of `session/update` or of records; without one, updates and
    /// records are dropped.
    pub fn wants_updates(&self) -> bool {
        self.demands.iter().any(Demand::is_there)
    }

    /// Heats a path that was blocked.
    pub fn blocked(&self, key: &SessionKey, path: Arc<str>) {
        self.inbox.push_input(key.clone(), SessionInput::blocked(path), (self.clock)());
    }

    /// Adds symbols to nodes and overlaps from now on.
    pub fn join(&self, symbols: Arc<dyn Symbols>) {
        self.inbox.join(symbols);
    }

    /// Numbers the turns of sessions that are opened again behind those that they had before this run.
    pub fn go_on_behind(&self, turns: HashMap<SessionKey, u64>) {
        self.inbox.go_on_behind(turns);
    }

    /// Records a write seen on the disk, by an unknown author. Never waits, bounded memory.
    pub fn disk_wrote(&self, path: Arc<str>) {
        self.inbox.disk_wrote(path, (self.clock)());
    }

    /// Moves the view to another session of the designated orchestrator; before the first call it
    /// is in the first session that the agent opens. Ignored for sessions of other agents, and if
    /// no agent is designated.
    pub fn set_orchestrator_session(&self, key: SessionKey) {
        self.inbox.orchestrate(key);
    }

    /// Closes every session of an agent that left the team, and removes their nodes.
    pub fn forget(&self, agent: AgentId) {
        self.inbox.forget(agent);
    }

    /// Waits until everything recorded so far is published.
    pub async fn settled(&self) {
        self.query(Query::Settled).await;
    }

    /// Every session's map. Its whole content is published already.
    pub async fn snapshots(&self) -> Snapshots {
        self.query(Query::Snapshots).await.unwrap_or_default()
    }

    /// The last usage of each session that reported one, in the order of [`Self::snapshots`].
    pub async fn usages(&self) -> Vec<UsageReport> {
        self.query(Query::Usages).await.unwrap_or_default()
    }

    /// Every session in order of appearance; None if the tracker has ended.
    pub async fn sessions(&self) -> Option<Vec<SessionReport>> {
        self.query(Query::Sessions).await
    }

    /// The overlaps that there are now.
    pub async fn overlaps(&self) -> Option<Vec<Overlap>> {
        self.query(Query::Overlaps).await
    }

    /// Changes whenever a session was opened or closed, or has another mode or model.
    pub fn roster(&self) -> watch::Receiver<()> {
        self.roster.clone()
    }

    /// None if the task has ended.
    async fn query<T>(&self, query: impl FnOnce(oneshot::Sender<T>) -> Query) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.inbox.query(query(reply));
        answer.await.ok()
    }
}

/// A read that is certain, not only an agent's claim.
fn read_of(kind: &ActivityKind) -> Option<Record> {
    let ActivityKind::Touched { path, touch: Touch::Read, source, .. } = kind else { return None };
    let path = (*source == Source::Kernel).then(|| Arc::clone(path))?;
    Some(Record::FileRead { path, by: SeenBy::Doorbell })
}

/// Holds back an agent's inputs.
pub struct Hold {
    inbox: Arc<Inbox>,
    agent: AgentId,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.inbox.release(&self.agent);
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold").field("agent", &self.agent).finish_non_exhaustive()
    }
}

impl fmt::Debug for TrackerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackerHandle").finish_non_exhaustive()
    }
}
