//! Owns a conflict of writes: its line, and the methods about it and about locks of files.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::method::method;
use super::names::{AgentName, Decider, TeamId};
use super::tools::tool;
use super::{Exact, NameOf};
use crate::model::{ConflictKind, ConflictStatus, ConflictStrategy};

method! {
    ListConflicts = "list_conflicts": ListConflictsParams => ConflictList<'a>;
    port: Anyone, web: Read, token: Read(Team), waits: false, lasts: false, hub: All(Joined)
}

method! {
    ResolveConflict = "resolve_conflict": ResolveConflictParams => ConflictLine<'a>;
    port: Person, web: Decide, token: Decide(Team), waits: false, lasts: false, hub: One
}

method! {
    Claim = "claim": ClaimParams => Claimed;
    port: Reader, web: Control, token: Control(Team), waits: false, lasts: false, hub: One
}

method! {
    Release = "release": ReleaseParams => Released;
    port: Reader, web: Control, token: Control(Team), waits: false, lasts: false, hub: One
}

/// A write in conflict with another agent's; each change of its status is another line.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Conflict")]
pub struct ConflictLine<'a> {
    pub id: TeamId<'a>,
    /// Relative to the workspace, with forward slashes.
    pub path: Cow<'a, str>,
    pub kind: NameOf<ConflictKind>,
    /// The writer, then the others.
    pub agents: Vec<AgentName<'a>>,
    /// The writer's session; empty if it is not known.
    #[serde(default)]
    pub session_id: Cow<'a, str>,
    pub status: NameOf<ConflictStatus>,
    /// A sentence that says what happened.
    pub message: Cow<'a, str>,
    /// Only once somebody decided it: `person` at a terminal, or `program`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<Decider<'a>>,
    #[serde(default)]
    pub timestamp_ms: u64,
}

impl ConflictLine<'_> {
    /// The agent that writes; empty in a line without agents.
    pub fn writer(&self) -> &str {
        self.agents.first().map_or("", |agent| agent)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListConflictsParams {
    /// Only conflicts with this status; all if left out.
    #[schemars(extend("x-tool" = tool("Only conflicts with this status; all if left out")))]
    pub status: Option<Exact<ConflictStatus>>,
}

/// The conflicts of a run, and the locks that are held.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ConflictList<'a> {
    /// Null: the team looks for none, as it has no `[conflicts]`.
    #[schemars(with = "Option<String>", extend("enum" = STRATEGIES))]
    pub strategy: Option<NameOf<ConflictStrategy>>,
    /// Oldest first, 10,000 at most.
    pub conflicts: Vec<ConflictLine<'a>>,
    /// Ordered by path.
    #[serde(default)]
    pub locks: Vec<LockRow>,
}

const STRATEGIES: [Option<&str>; 5] =
    [Some("fww"), Some("lww"), Some("merge"), Some("person"), None];

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LockRow {
    pub path: String,
    pub agent_id: AgentName<'static>,
    /// The session that wrote or claimed it; empty if it is not known.
    #[serde(default)]
    pub session_id: String,
    /// Grows with each new lock.
    pub fence: u64,
    /// Whether it was claimed.
    #[serde(default)]
    pub claimed: bool,
    /// When its holder got it, in milliseconds since 1970 UTC.
    #[serde(default)]
    pub since_ms: u64,
    /// The holder's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// When that started, in ticks of the system's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ResolveConflictParams {
    pub id: TeamId<'static>,
    pub decision: AskedDecision,
    /// With `deny`: what the agent is told.
    pub message: Option<String>,
    /// Only if the write still is as `show_conflict` showed it with this `version`.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub version: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskedDecision {
    Allow,
    Deny,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClaimParams {
    /// Files or folders, relative to the workspace.
    #[serde(default)]
    #[schemars(extend("x-tool" = tool("Files or folders of your zone, relative to the workspace").most(100)))]
    pub paths: Vec<String>,
    /// Ids of symbols, such as `src/cart.rs::total`: their files are claimed.
    #[serde(default)]
    #[schemars(extend("x-tool" = tool("Ids of symbols (`src/cart.rs::total`): their files are claimed").most(100)))]
    pub symbols: Vec<String>,
    /// At most 3600; `lock_s` of the configuration if left out.
    #[schemars(extend("x-tool" = tool("Seconds that the claim lasts, at most 3600")))]
    pub ttl_s: Option<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Claimed {
    pub locks: Vec<ClaimedLock>,
    pub ttl_s: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClaimedLock {
    pub path: String,
    /// For `release`: names this lock and no later one.
    pub fence: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseParams {
    /// All that the caller has locked if left out.
    #[serde(default)]
    #[schemars(extend("x-tool" = tool("The paths; all that you have locked if left out").most(100)))]
    pub paths: Vec<String>,
    /// Only the lock that has this number.
    #[schemars(extend("x-tool" = tool("Only the lock with this number, as claim returned it")))]
    pub fence: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Released {
    pub released: Vec<String>,
}
