//! The state of a running team, read from the handles of its rooms.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout_at;

use super::{BoxFuture, RemoteTeams, Sources};
use crate::bus::Bus;
use crate::capture::Capture;
use crate::conflicts::{self, Conflicts, HeldDecision, ShownConflict};
use crate::journal::Journal;
use crate::mcp::ToolUses;
use crate::model::{
    AccessRule, Action, AgentId, BlockedAccess, BlockedId, BlockedStatus, Conflict, ConflictId,
    DecidedBy, Overlap, OwnerAnswer, SessionId, TeamGrant, UsageReport,
};
use crate::routing::{
    AccessAnswer, Decider, Decision, Explain, OwnerQuestion, ResolveError, RoutingHandle,
    ShownAccess, Whose,
};
use crate::runs::TeamRuns;
use crate::session::{Answer, PATIENCE, RegistryError, RegistryHandle, RegistryRequest};
use crate::tasks::{Tasks, Waits};
use crate::tokens::ScopedTokens;
use crate::tracker::{SessionReport, Settings, Snapshots, TrackerHandle};
use crate::watch::{GraphHandle, GraphState};
use crate::zone::Zone;

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
    /// The agent at which sessions of the gateway begin; None: the orchestrator agent, or the first one.
    pub default_agent: Option<AgentId>,
    /// None: agents take no tasks.
    pub tasks: Option<Tasks>,
    /// None: conflicts are not looked for.
    pub conflicts: Option<Conflicts>,
    /// None: agents start no runs.
    pub runs: Option<TeamRuns>,
    /// None: there are none with a scope.
    pub scoped_tokens: Option<ScopedTokens>,
    /// The other teams of a hub; None: the team is in none.
    pub elsewhere: Option<Arc<dyn RemoteTeams>>,
    /// The agent of another host that decides accesses.
    pub lead_elsewhere: Option<AgentId>,
    pub tool_uses: ToolUses,
    pub waits: Waits,
    /// Whether the registry's active session is the default target, if live.
    pub follows_active: bool,
    /// Reads the command line of a process.
    pub command_line: fn(u32) -> Option<String>,
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

    fn program(&self, pid: u32) -> Option<String> {
        (self.command_line)(pid)
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

    fn zones(&self) -> BoxFuture<'_, HashMap<AgentId, Arc<Zone>>> {
        Box::pin(self.routing.zones())
    }

    fn workspace(&self) -> Option<PathBuf> {
        self.capture.as_ref().map(|capture| capture.workspace().to_owned())
    }

    fn scoped_tokens(&self) -> Option<ScopedTokens> {
        self.scoped_tokens.clone()
    }

    fn elsewhere(&self) -> Option<&dyn RemoteTeams> {
        self.elsewhere.as_deref()
    }

    fn lead_elsewhere(&self) -> Option<AgentId> {
        self.lead_elsewhere.clone()
    }

    fn explain_by(&self, explain: Box<dyn Explain>) {
        self.routing.explain_by(explain);
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

    fn default_agent(&self) -> Option<AgentId> {
        self.default_agent.clone()
    }

    fn lead(&self) -> Option<AgentId> {
        self.lead.clone()
    }

    fn tasks(&self) -> Option<Tasks> {
        self.tasks.clone()
    }

    fn runs(&self) -> Option<TeamRuns> {
        self.runs.clone()
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

    fn show_conflict(
        &self,
        id: ConflictId,
    ) -> BoxFuture<'_, Result<ShownConflict, conflicts::ResolveError>> {
        Box::pin(async move {
            let conflicts = self.conflicts.as_ref().ok_or(conflicts::ResolveError::Off)?;
            let zone = match conflicts.writer(&id) {
                Some(writer) => self.routing.zone_of(&writer).await,
                None => None,
            };
            conflicts.show(&id, zone).await
        })
    }

    fn resolve_conflict(
        &self,
        id: ConflictId,
        decision: HeldDecision,
        by: DecidedBy,
        version: Option<String>,
    ) -> BoxFuture<'_, Result<Conflict, conflicts::ResolveError>> {
        Box::pin(async move {
            let conflicts = self.conflicts.as_ref().ok_or(conflicts::ResolveError::Off)?;
            let resolved = match version {
                Some(version) => {
                    let zone = match conflicts.writer(&id) {
                        Some(writer) => self.routing.zone_of(&writer).await,
                        None => None,
                    };
                    conflicts.resolve_shown(&id, decision, by, &version, zone).await?
                }
                None => conflicts.resolve(&id, decision, by)?,
            };
            self.committed().await;
            Ok(resolved)
        })
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

    fn grants(&self) -> BoxFuture<'_, Vec<TeamGrant>> {
        Box::pin(self.routing.grants())
    }

    fn revoke_grant(&self, id: String) -> BoxFuture<'_, Result<TeamGrant, ResolveError>> {
        Box::pin(self.routing.revoke(id))
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
            self.tracker.settled().await;
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
