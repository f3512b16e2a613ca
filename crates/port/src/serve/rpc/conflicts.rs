//! Owns the methods of conflicts: lists and decides them, and claims and releases locks of files.

use std::sync::Arc;
use std::time::Duration;

use super::{MethodCall, Reply, questions, reply};
use crate::conflicts::{
    ClaimError, Conflicts, HeldDecision, HolderProcess, Lock, LockClaim, ResolveError,
    is_locked_ever,
};
use crate::model::{ConflictId, SessionId, SessionKey};
use crate::serve::shared::Shared;
use crate::serve::{Caller, Refused, rights};
use crate::wire::{
    AskedDecision, Claim, ClaimParams, Claimed, ClaimedLock, ConflictLine, ConflictList,
    ListConflicts, ListConflictsParams, LockRow, Release, ReleaseParams, Released, ResolveConflict,
    ResolveConflictParams,
};

/// Paths of one claim or release.
const MOST_PATHS: usize = 100;

/// Seconds that a claim lasts at most.
const LONGEST_CLAIM: f64 = 3600.0;

pub(super) async fn list_conflicts(
    call: MethodCall<'_>,
    params: ListConflictsParams,
) -> Result<Reply<ListConflicts>, Refused> {
    let shared = call.shared;
    let Some(conflicts) = shared.sources.conflicts() else {
        return reply(&ConflictList { strategy: None, conflicts: Vec::new(), locks: Vec::new() });
    };
    conflicts.caught_up().await;
    let found = conflicts.list(params.status.map(|status| status.0));
    reply(&ConflictList {
        strategy: conflicts.looks().then(|| conflicts.strategy().into()),
        conflicts: found.iter().map(ConflictLine::from).collect(),
        locks: conflicts.locks().into_iter().map(lock_row).collect(),
    })
}

pub(super) async fn resolve_conflict(
    call: MethodCall<'_>,
    params: ResolveConflictParams,
) -> Result<Reply<ResolveConflict>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let decision = match (params.decision, params.message) {
        (AskedDecision::Deny, message) => HeldDecision::Deny { message },
        (AskedDecision::Allow, None) => HeldDecision::Allow,
        (AskedDecision::Allow, Some(_)) => {
            return Err(Refused::wrong("`message` goes with `deny` only"));
        }
    };
    let by = rights::decided_by(caller);
    let id = ConflictId::new(params.id);
    let resolved = shared.sources.resolve_conflict(id, decision, by, params.version).await?;
    reply(&ConflictLine::from(&resolved))
}

impl From<ResolveError> for Refused {
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
    call: MethodCall<'_>,
    params: ClaimParams,
) -> Result<Reply<Claim>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let agent = questions::agent(caller)?;
    let conflicts = team(shared)?;
    let ClaimParams { mut paths, symbols, ttl_s } = params;
    paths.extend(symbols.iter().map(|symbol| {
        symbol.split_once("::").map_or(symbol.as_str(), |(path, _)| path).to_owned()
    }));
    if paths.is_empty() {
        return Err(Refused::wrong("name `paths` or `symbols` to claim"));
    }
    if ttl_s.is_some_and(|ttl| !(ttl > 0.0 && ttl <= LONGEST_CLAIM)) {
        return Err(Refused::wrong(format!(
            "`ttl_s` must be above 0, and at most {LONGEST_CLAIM}"
        )));
    }
    let paths = named(shared, caller, paths, true).await?;
    let by = key(shared, agent.clone()).await;
    let ttl = ttl_s.map(Duration::from_secs_f64);
    let claimed =
        conflicts.claim(&by, LockClaim { paths, ttl }).map_err(|error| refused(&error))?;
    let lock = |(path, fence): (Arc<str>, u64)| ClaimedLock { path: path.to_string(), fence };
    reply(&Claimed {
        locks: claimed.locks.into_iter().map(lock).collect(),
        ttl_s: claimed.ttl.as_secs_f64(),
    })
}

pub(super) async fn release(
    call: MethodCall<'_>,
    params: ReleaseParams,
) -> Result<Reply<Release>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let agent = questions::agent(caller)?;
    let conflicts = team(shared)?;
    let paths = named(shared, caller, params.paths, false).await?;
    let by = SessionKey::new(agent.clone(), SessionId::new(""));
    let released = conflicts.release(&by, &paths, params.fence).map_err(|error| refused(&error))?;
    reply(&Released { released: released.iter().map(ToString::to_string).collect() })
}

/// The names of paths on the wire, which the caller may write if `writes`.
async fn named(
    shared: &Shared,
    caller: Option<&Caller>,
    paths: Vec<String>,
    writes: bool,
) -> Result<Vec<Arc<str>>, Refused> {
    if paths.len() > MOST_PATHS {
        return Err(Refused::wrong(format!("at most {MOST_PATHS} paths at once")));
    }
    let agent = questions::agent(caller)?;
    let mut named = Vec::new();
    for path in paths {
        questions::bounded("paths", &path, questions::LONGEST_PATH)?;
        let found = shared.sources.whose(agent, path).await.ok_or_else(questions::no_zone)?;
        let path: Arc<str> = found.path.trim_end_matches('/').into();
        if writes && !(found.may_write && is_locked_ever(&path)) {
            let message = format!("`{path}` is not yours to write, so that you can't claim it");
            return Err(Refused::new(403, message));
        }
        named.push(path);
    }
    Ok(named)
}

/// The session in which an agent claims; none if several turns of it run.
async fn key(shared: &Shared, agent: crate::model::AgentId) -> SessionKey {
    let mut sessions = questions::running_sessions(shared, &agent).await;
    let only = sessions.pop().filter(|_| sessions.is_empty());
    SessionKey::new(agent, only.unwrap_or_else(|| SessionId::new("")))
}

fn team(shared: &Shared) -> Result<Conflicts, Refused> {
    shared.sources.conflicts().ok_or_else(|| ResolveError::Off.into())
}

fn refused(error: &ClaimError) -> Refused {
    Refused::new(409, error.to_string())
}

pub(super) fn lock_row(lock: Lock) -> LockRow {
    let Lock { path, holder, fence, is_claim, since_ms } = lock;
    let process = holder.process;
    LockRow {
        path: path.to_string(),
        agent_id: holder.agent.to_string().into(),
        session_id: holder.session.to_string(),
        fence,
        claimed: is_claim,
        since_ms,
        pid: process.map(|HolderProcess { pid, .. }| pid),
        started: process.map(|process| process.started),
    }
}
