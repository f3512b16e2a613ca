//! Owns the interface by which the port reads the team's state and decides accesses.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::conflicts::{self, Conflicts, HeldDecision, ShownConflict};
use crate::journal::Journal;
use crate::mcp::ToolUses;
use crate::model::{
    AccessRule, Action, AgentId, BlockedAccess, BlockedId, BlockedStatus, Conflict, ConflictId,
    DecidedBy, Overlap, OwnerAnswer, SessionId, TeamGrant, UsageReport,
};
use crate::routing::{
    AccessAnswer, Decider, Decision, Explain, OwnerQuestion, ResolveError, ShownAccess, Whose,
};
use crate::runs::TeamRuns;
use crate::serve::{BoxFuture, RemoteTeams};
use crate::session::{Answer, RegistryError, RegistryRequest};
use crate::tasks::{Tasks, Waits};
use crate::tokens::ScopedTokens;
use crate::tracker::{SessionReport, Settings, Snapshots};
use crate::watch::GraphState;
use crate::zone::Zone;

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

    /// The patterns of each agent's own zone.
    fn own_patterns(&self) -> BoxFuture<'_, HashMap<AgentId, Vec<String>>> {
        Box::pin(async {
            let zones = self.zones().await.into_iter();
            zones.map(|(agent, zone)| (agent, zone.own_patterns().to_vec())).collect()
        })
    }

    /// The zones of all agents that have one.
    fn zones(&self) -> BoxFuture<'_, HashMap<AgentId, Arc<Zone>>> {
        Box::pin(async { HashMap::new() })
    }

    /// The team's workspace; None: it is not known.
    fn workspace(&self) -> Option<PathBuf> {
        None
    }

    /// The command line of a process; None: it is gone, or not known here.
    fn program(&self, _pid: u32) -> Option<String> {
        None
    }

    /// The agent that decides accesses; None: a program or a person does.
    fn lead(&self) -> Option<AgentId> {
        None
    }

    /// The agent at which sessions of the gateway begin, if one is configured.
    fn default_agent(&self) -> Option<AgentId> {
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

    /// Shows a write in conflict that waits to a person.
    fn show_conflict(
        &self,
        _id: ConflictId,
    ) -> BoxFuture<'_, Result<ShownConflict, conflicts::ResolveError>> {
        Box::pin(async { Err(conflicts::ResolveError::Off) })
    }

    /// Decides a write in conflict that waits, and returns the conflict; with a version only if it still
    /// is as [`Self::show_conflict`] showed it.
    fn resolve_conflict(
        &self,
        _id: ConflictId,
        _decision: HeldDecision,
        _by: DecidedBy,
        _version: Option<String>,
    ) -> BoxFuture<'_, Result<Conflict, conflicts::ResolveError>> {
        Box::pin(async { Err(conflicts::ResolveError::Off) })
    }

    /// Decides a blocked access, and returns it.
    fn resolve(
        &self,
        id: BlockedId,
        decision: Decision,
        by: Decider,
    ) -> BoxFuture<'_, Result<BlockedAccess, ResolveError>>;

    /// The grants for the team.
    fn grants(&self) -> BoxFuture<'_, Vec<TeamGrant>> {
        Box::pin(async { Vec::new() })
    }

    /// Ends what a person opened for the team; returns it.
    fn revoke_grant(&self, id: String) -> BoxFuture<'_, Result<TeamGrant, ResolveError>> {
        Box::pin(async { Err(ResolveError::UnknownGrant(id)) })
    }

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

    /// Has the reasons of accesses explained so, to whoever decides them.
    fn explain_by(&self, _explain: Box<dyn Explain>) {}

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

    /// The runs that agents start; None: they start none.
    fn runs(&self) -> Option<TeamRuns> {
        None
    }

    /// The tokens with a scope; None: there are none.
    fn scoped_tokens(&self) -> Option<ScopedTokens> {
        None
    }

    /// The teams elsewhere that this port stands for; None: it is a team's own.
    fn elsewhere(&self) -> Option<&dyn RemoteTeams> {
        None
    }

    /// The agent of another host that decides accesses.
    fn lead_elsewhere(&self) -> Option<AgentId> {
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
