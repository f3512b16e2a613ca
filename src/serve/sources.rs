//! Owns the interface by which the port reads the team's state and decides accesses.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout_at;

use crate::bus::Bus;
use crate::capture::Capture;
use crate::conflicts::Conflicts;
use crate::journal::Journal;
use crate::mcp::ToolUses;
use crate::model::{
    AccessRule, Action, AgentId, BlockedAccess, BlockedId, BlockedStatus, Overlap, OwnerAnswer,
    SessionId, UsageReport,
};
use crate::routing::{
    AccessAnswer, Decider, Decision, OwnerQuestion, ResolveError, RoutingHandle, ShownAccess, Whose,
};
use crate::serve::BoxFuture;
use crate::session::{Answer, PATIENCE, RegistryError, RegistryHandle, RegistryRequest};
use crate::tasks::{Tasks, Waits};
use crate::tracker::{SessionReport, Settings, Snapshots, TrackerHandle};
use crate::watch::{GraphHandle, GraphState};

/// The state behind the stream. An answer contains all events that were published before the call.
pub trait Sources: Send + Sync + 'static {
    /// All live sessions.
    fn snapshots(&self) -> BoxFuture<'_, Snapshots>;

    /// The last usage of each session.
    fn usages(&self) -> BoxFuture<'_, Vec<UsageReport>>;

    /// The sessions of the agents; empty if none are known.
    fn sessions(&self) -> BoxFuture<'_, Vec<SessionReport>> {
        Box::pin(async { Vec::new() })
    }

    /// Blocked accesses, oldest first.
    fn blocked(&self, status: Option<BlockedStatus>) -> BoxFuture<'_, Vec<BlockedAccess>>;

    /// The present overlaps, the latest first.
    fn overlaps(&self) -> BoxFuture<'_, Vec<Overlap>> {
        Box::pin(async { Vec::new() })
    }

    /// Puts an access that an agent asks for, in one of `sessions`, before its decider; None if the
    /// agent has no zone here.
    fn ask_access(
        &self,
        _agent: AgentId,
        _sessions: Vec<SessionId>,
        _path: String,
        _action: Action,
        _reason: Arc<str>,
    ) -> BoxFuture<'_, Option<AccessAnswer>> {
        Box::pin(async { None })
    }

    /// The rule of `[[routing]]` for an access that an agent would ask for.
    fn rule_of_ask(
        &self,
        _agent: AgentId,
        _path: String,
        _action: Action,
    ) -> BoxFuture<'_, Option<AccessRule>> {
        Box::pin(async { None })
    }

    /// The owners of a path, and the rights of an agent there; None if the agent has no zone here.
    fn whose<'a>(&'a self, _agent: &'a AgentId, _path: String) -> BoxFuture<'a, Option<Whose>> {
        Box::pin(async { None })
    }

    /// The agent that decides accesses; None: a program or a person does.
    fn lead(&self) -> Option<AgentId> {
        None
    }

    /// The tasks that agents are given; None: they take none.
    fn tasks(&self) -> Option<Tasks> {
        None
    }

    /// Where the use of the team's tools is recorded.
    fn tool_uses(&self) -> ToolUses {
        ToolUses::default()
    }

    /// The waits between agents.
    fn waits(&self) -> Waits {
        Waits::default()
    }

    /// Conflicts of writes; None: they are not looked for.
    fn conflicts(&self) -> Option<Conflicts> {
        None
    }

    /// Decides a blocked access, and returns it.
    fn resolve(
        &self,
        id: BlockedId,
        decision: Decision,
        by: Decider,
    ) -> BoxFuture<'_, Result<BlockedAccess, ResolveError>>;

    /// Decides a blocked access if it still is as [`Self::show`] showed it with this version. Sources
    /// that show none decide in any case.
    fn resolve_shown(
        &self,
        id: BlockedId,
        decision: Decision,
        by: Decider,
        _version: String,
    ) -> BoxFuture<'_, Result<BlockedAccess, ResolveError>> {
        self.resolve(id, decision, by)
    }

    /// Shows an access that nobody decided, to an agent or to a person.
    fn show(
        &self,
        id: BlockedId,
        _reader: Option<AgentId>,
    ) -> BoxFuture<'_, Result<ShownAccess, ResolveError>> {
        Box::pin(async { Err(ResolveError::Unknown(id)) })
    }

    /// The questions to owners, for whoever answers them; None: there are none, or they were taken.
    fn take_questions(&self) -> Option<mpsc::Receiver<OwnerQuestion>> {
        None
    }

    /// Gives an owner's answer to its asker, or says why there is none.
    fn owner_answered(
        &self,
        _id: BlockedId,
        _answer: Result<(OwnerAnswer, String), String>,
    ) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// The code graph; with `wait` once it is complete.
    fn graph(&self, wait: bool) -> BoxFuture<'_, GraphState>;

    /// The team's journal; None: switched off.
    fn journal(&self) -> Option<Journal>;

    /// The team's journal, once it has all published events and all changes of files so far, as far
    /// as it can be written.
    fn recorded(&self) -> BoxFuture<'_, Option<Journal>> {
        Box::pin(async { self.journal() })
    }

    /// How a replay's heat map is kept; None: nothing can be replayed.
    fn tracking(&self) -> Option<Settings> {
        None
    }

    /// The name under which sessions are recorded; None: nothing is recorded.
    fn team(&self) -> Option<&str> {
        None
    }

    /// Whether the sources show an earlier run.
    fn is_replay(&self) -> bool {
        false
    }

    /// Queries the registry, once it has all sessions published before.
    fn registry(&self, request: RegistryRequest) -> BoxFuture<'_, Result<Answer, RegistryError>>;
}

/// Asks the recorder of sessions to catch up; answered once all known sessions are in the registry.
pub type Recorder = mpsc::Sender<oneshot::Sender<()>>;

/// The sources of a running team.
#[derive(Clone, Debug)]
pub struct Handles {
    pub tracker: TrackerHandle,
    pub routing: RoutingHandle,
    pub registry: RegistryHandle,
    /// None: switched off.
    pub graph: Option<GraphHandle>,
    /// With the bus that it follows; None: switched off.
    pub journal: Option<(Journal, Bus)>,
    /// None without a journal.
    pub capture: Option<Capture>,
    /// None: nothing is recorded.
    pub recorder: Option<Recorder>,
    /// The name of the team that records.
    pub team: Option<String>,
    /// The orchestrator agent.
    pub lead: Option<AgentId>,
    /// None: agents take no tasks.
    pub tasks: Option<Tasks>,
    /// None: conflicts are not looked for.
    pub conflicts: Option<Conflicts>,
    pub tool_uses: ToolUses,
    pub waits: Waits,
    /// Whether the registry's active session is the default target, if live.
    pub follows_active: bool,
}

impl Handles {
    /// The team's journal, once it has all published events.
    async fn committed(&self) -> Option<Journal> {
        let (journal, bus) = self.journal.as_ref()?;
        let _ = journal.settled(bus.position()).await;
        Some(journal.clone())
    }
}

impl Sources for Handles {
    fn snapshots(&self) -> BoxFuture<'_, Snapshots> {
        Box::pin(async {
            let mut snapshots = self.tracker.snapshots().await;
            let sessions = &mut snapshots.sessions;
            if self.follows_active
                && let Some(active) = self.registry.active().await
                && let Some(place) = sessions.iter().position(|shown| shown.key == active)
            {
                sessions[..=place].rotate_right(1);
            }
            snapshots
        })
    }

    fn usages(&self) -> BoxFuture<'_, Vec<UsageReport>> {
        Box::pin(self.tracker.usages())
    }

    fn sessions(&self) -> BoxFuture<'_, Vec<SessionReport>> {
        Box::pin(async { self.tracker.sessions().await.unwrap_or_default() })
    }

    fn blocked(&self, status: Option<BlockedStatus>) -> BoxFuture<'_, Vec<BlockedAccess>> {
        Box::pin(self.routing.list(status))
    }

    fn overlaps(&self) -> BoxFuture<'_, Vec<Overlap>> {
        Box::pin(async { self.tracker.overlaps().await.unwrap_or_default() })
    }

    fn ask_access(
        &self,
        agent: AgentId,
        sessions: Vec<SessionId>,
        path: String,
        action: Action,
        reason: Arc<str>,
    ) -> BoxFuture<'_, Option<AccessAnswer>> {
        Box::pin(self.routing.ask_access(agent, sessions, path, action, reason))
    }

    fn rule_of_ask(
        &self,
        agent: AgentId,
        path: String,
        action: Action,
    ) -> BoxFuture<'_, Option<AccessRule>> {
        Box::pin(self.routing.rule_of_ask(agent, path, action))
    }

    fn whose<'a>(&'a self, agent: &'a AgentId, path: String) -> BoxFuture<'a, Option<Whose>> {
        Box::pin(self.routing.whose(agent, path))
    }

    fn take_questions(&self) -> Option<mpsc::Receiver<OwnerQuestion>> {
        self.routing.take_questions()
    }

    fn owner_answered(
        &self,
        id: BlockedId,
        answer: Result<(OwnerAnswer, String), String>,
    ) -> BoxFuture<'_, ()> {
        Box::pin(self.routing.owner_answered(id, answer))
    }

    fn lead(&self) -> Option<AgentId> {
        self.lead.clone()
    }

    fn tasks(&self) -> Option<Tasks> {
        self.tasks.clone()
    }

    fn waits(&self) -> Waits {
        self.waits.clone()
    }

    fn tool_uses(&self) -> ToolUses {
        self.tool_uses.clone()
    }

    fn conflicts(&self) -> Option<Conflicts> {
        self.conflicts.clone()
    }

    fn resolve(
        &self,
        id: BlockedId,
        decision: Decision,
        by: Decider,
    ) -> BoxFuture<'_, Result<BlockedAccess, ResolveError>> {
        Box::pin(async {
            let resolved = self.routing.resolve(id, decision, by).await;
            if resolved.is_ok() {
                // The decision stands even if it can't be recorded; `ps` shows that.
                self.committed().await;
            }
            resolved
        })
    }

    fn resolve_shown(
        &self,
        id: BlockedId,
        decision: Decision,
        by: Decider,
        version: String,
    ) -> BoxFuture<'_, Result<BlockedAccess, ResolveError>> {
        Box::pin(async move {
            let resolved = self.routing.resolve_shown(id, decision, by, &version).await;
            if resolved.is_ok() {
                self.committed().await;
            }
            resolved
        })
    }

    fn show(
        &self,
        id: BlockedId,
        reader: Option<AgentId>,
    ) -> BoxFuture<'_, Result<ShownAccess, ResolveError>> {
        Box::pin(self.routing.show(id, reader))
    }

    fn graph(&self, wait: bool) -> BoxFuture<'_, GraphState> {
        Box::pin(async move {
            match &self.graph {
                Some(graph) => graph.state(wait).await,
                None => GraphState::Off,
            }
        })
    }

    fn team(&self) -> Option<&str> {
        self.team.as_deref()
    }

    fn tracking(&self) -> Option<Settings> {
        Some(self.tracker.settings())
    }

    fn journal(&self) -> Option<Journal> {
        self.journal.as_ref().map(|(journal, _)| journal.clone())
    }

    fn recorded(&self) -> BoxFuture<'_, Option<Journal>> {
        Box::pin(async {
            if let Some(capture) = &self.capture {
                capture.settle().await;
            }
            self.committed().await
        })
    }

    fn registry(&self, request: RegistryRequest) -> BoxFuture<'_, Result<Answer, RegistryError>> {
        Box::pin(async {
            let deadline = Instant::now() + PATIENCE;
            if let Some(recorder) = &self.recorder {
                let (caught_up, is_caught_up) = oneshot::channel();
                let catching_up = async {
                    // A recorder that has ended has nothing left to write.
                    if recorder.send(caught_up).await.is_ok() {
                        let _ = is_caught_up.await;
                    }
                };
                // A recorder that can't write is not awaited longer.
                let _ = timeout_at(deadline.into(), catching_up).await;
            }
            self.registry.ask_by(request, deadline).await
        })
    }
}
