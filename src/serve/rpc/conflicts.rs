//! Owns the methods of conflicts: lists and decides them, and claims and releases locks of files.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{asking, json, wrong};
use crate::conflicts::{
    ClaimError, Conflicts, HeldDecision, HolderProcess, Lock, LockClaim, ResolveError,
    is_locked_ever,
};
use crate::model::{ConflictId, ConflictStatus, ConflictStrategy, SessionId, SessionKey};
use crate::serve::shared::Shared;
use crate::serve::wire::{ConflictLine, RpcError};
use crate::serve::{Caller, rights};

/// Paths of one claim or release.
const MOST_PATHS: usize = 100;

/// Seconds that a claim lasts at most.
const LONGEST_CLAIM: f64 = 3600.0;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ListConflictsParams")]
pub(in crate::serve) struct ListConflicts {
    /// Only conflicts with this status; all if left out.
    status: Option<Status>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    Allowed,
    Denied,
    Expired,
    Observed,
}

/// The conflicts of a run, and the locks that are held.
#[derive(Serialize, JsonSchema)]
pub(in crate::serve) struct ConflictList<'a> {
    /// Null: the team looks for none, as it has no `[conflicts]`.
    #[schemars(extend("enum" = STRATEGIES))]
    strategy: Option<&'static str>,
    /// Oldest first, 10,000 at most.
    conflicts: Vec<ConflictLine<'a>>,
    /// Ordered by path.
    locks: Vec<LockRow>,
}

const STRATEGIES: [Option<&str>; 5] =
    [Some("fww"), Some("lww"), Some("merge"), Some("person"), None];

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LockRow {
    path: String,
    agent_id: String,
    /// The session that wrote or claimed it; empty if it is not known.
    session_id: String,
    /// Grows with each new lock.
    fence: u64,
    /// Whether it was claimed.
    claimed: bool,
    /// When its holder got it, in milliseconds since 1970 UTC.
    since_ms: u64,
    /// The holder's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// When that started, in ticks of the system's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ResolveConflictParams")]
pub(in crate::serve) struct ResolveConflict {
    id: String,
    decision: AskedDecision,
    /// With `deny`: what the agent is told.
    message: Option<String>,
    /// Only if the write still is as `show_conflict` showed it with this `version`.
    #[serde(default, deserialize_with = "super::name")]
    version: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AskedDecision {
    Allow,
    Deny,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ClaimParams")]
pub(in crate::serve) struct ClaimParams {
    /// Files or folders, relative to the workspace.
    #[serde(default)]
    paths: Vec<String>,
    /// Ids of symbols, such as `src/cart.rs::total`: their files are claimed.
    #[serde(default)]
    symbols: Vec<String>,
    /// At most 3600; `lock_s` of the configuration if left out.
    ttl_s: Option<f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct Claimed {
    locks: Vec<ClaimedLock>,
    ttl_s: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ClaimedLock {
    path: String,
    /// For `release`: names this lock and no later one.
    fence: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ReleaseParams")]
pub(in crate::serve) struct ReleaseParams {
    /// All that the caller has locked if left out.
    #[serde(default)]
    paths: Vec<String>,
    /// Only the lock that has this number.
    fence: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct Released {
    released: Vec<String>,
}

pub(super) async fn list_conflicts(
    shared: &Shared,
    params: ListConflicts,
) -> Result<Value, RpcError> {
    let Some(conflicts) = shared.sources.conflicts() else {
        return json(&ConflictList { strategy: None, conflicts: Vec::new(), locks: Vec::new() });
    };
    conflicts.caught_up().await;
    let found = conflicts.list(params.status.map(ConflictStatus::from));
    json(&ConflictList {
        strategy: Some(ConflictStrategy::as_str(conflicts.strategy())),
        conflicts: found.iter().map(ConflictLine::from).collect(),
        locks: conflicts.locks().into_iter().map(LockRow::from).collect(),
    })
}

pub(super) async fn resolve_conflict(
    shared: &Shared,
    caller: Option<&Caller>,
    params: ResolveConflict,
) -> Result<Value, RpcError> {
    let decision = match (params.decision, params.message) {
        (AskedDecision::Deny, message) => HeldDecision::Deny { message },
        (AskedDecision::Allow, None) => HeldDecision::Allow,
        (AskedDecision::Allow, Some(_)) => {
            return Err(wrong("`message` goes with `deny` only"));
        }
    };
    let by = rights::decided_by(caller);
    let id = ConflictId::new(params.id);
    let resolved = shared.sources.resolve_conflict(id, decision, by, params.version).await?;
    json(&ConflictLine::from(&resolved))
}

impl From<ResolveError> for RpcError {
    fn from(error: ResolveError) -> Self {
        let code = match error {
            ResolveError::Unknown(_) => 404,
            ResolveError::Off
            | ResolveError::Settled { .. }
            | ResolveError::Changed(_)
            | ResolveError::Stopping => 409,
        };
        Self::new(code, error.to_string())
    }
}

pub(super) async fn claim(
    shared: &Shared,
    caller: Option<&Caller>,
    params: ClaimParams,
) -> Result<Value, RpcError> {
    let agent = asking::agent(caller)?;
    let conflicts = team(shared)?;
    let ClaimParams { mut paths, symbols, ttl_s } = params;
    paths.extend(symbols.iter().map(|symbol| {
        symbol.split_once("::").map_or(symbol.as_str(), |(path, _)| path).to_owned()
    }));
    if paths.is_empty() {
        return Err(wrong("name `paths` or `symbols` to claim"));
    }
    if ttl_s.is_some_and(|ttl| !(ttl > 0.0 && ttl <= LONGEST_CLAIM)) {
        return Err(wrong(format!("`ttl_s` must be above 0, and at most {LONGEST_CLAIM}")));
    }
    let paths = named(shared, caller, paths, true).await?;
    let by = key(shared, agent.clone()).await;
    let ttl = ttl_s.map(Duration::from_secs_f64);
    let claimed =
        conflicts.claim(&by, LockClaim { paths, ttl }).map_err(|error| refused(&error))?;
    let lock = |(path, fence): (Arc<str>, u64)| ClaimedLock { path: path.to_string(), fence };
    json(&Claimed {
        locks: claimed.locks.into_iter().map(lock).collect(),
        ttl_s: claimed.ttl.as_secs_f64(),
    })
}

pub(super) async fn release(
    shared: &Shared,
    caller: Option<&Caller>,
    params: ReleaseParams,
) -> Result<Value, RpcError> {
    let agent = asking::agent(caller)?;
    let conflicts = team(shared)?;
    let paths = named(shared, caller, params.paths, false).await?;
    let by = SessionKey::new(agent.clone(), SessionId::new(""));
    let released = conflicts.release(&by, &paths, params.fence).map_err(|error| refused(&error))?;
    json(&Released { released: released.iter().map(ToString::to_string).collect() })
}

/// The names of paths on the wire, which the caller may write if `writes`.
async fn named(
    shared: &Shared,
    caller: Option<&Caller>,
    paths: Vec<String>,
    writes: bool,
) -> Result<Vec<Arc<str>>, RpcError> {
    if paths.len() > MOST_PATHS {
        return Err(wrong(format!("at most {MOST_PATHS} paths at once")));
    }
    let agent = asking::agent(caller)?;
    let mut named = Vec::new();
    for path in paths {
        asking::bounded("paths", &path, asking::LONGEST_PATH)?;
        let found = shared.sources.whose(agent, path).await.ok_or_else(asking::no_zone)?;
        let path: Arc<str> = found.path.trim_end_matches('/').into();
        if writes && !(found.may_write && is_locked_ever(&path)) {
            let message = format!("`{path}` is not yours to write, so that you can't claim it");
            return Err(RpcError::new(403, message));
        }
        named.push(path);
    }
    Ok(named)
}

/// The session in which an agent claims; none if several turns of it run.
async fn key(shared: &Shared, agent: crate::model::AgentId) -> SessionKey {
    let mut sessions = asking::running_sessions(shared, &agent).await;
    let only = sessions.pop().filter(|_| sessions.is_empty());
    SessionKey::new(agent, only.unwrap_or_else(|| SessionId::new("")))
}

fn team(shared: &Shared) -> Result<Conflicts, RpcError> {
    shared.sources.conflicts().ok_or_else(|| ResolveError::Off.into())
}

fn refused(error: &ClaimError) -> RpcError {
    RpcError::new(409, error.to_string())
}

impl From<Lock> for LockRow {
    fn from(lock: Lock) -> Self {
        let Lock { path, holder, fence, is_claim, since_ms } = lock;
        let process = holder.process;
        Self {
            path: path.to_string(),
            agent_id: holder.agent.to_string(),
            session_id: holder.session.to_string(),
            fence,
            claimed: is_claim,
            since_ms,
            pid: process.map(|HolderProcess { pid, .. }| pid),
            started: process.map(|process| process.started),
        }
    }
}

impl From<Status> for ConflictStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::Allowed => Self::Allowed,
            Status::Denied => Self::Denied,
            Status::Expired => Self::Expired,
            Status::Observed => Self::Observed,
        }
    }
}
