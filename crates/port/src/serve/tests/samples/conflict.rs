//! A write in conflict, what is shown of it, and what becomes of decisions.

use super::{NOW, VERSION};
use crate::conflicts::{
    HeldDecision, HolderProcess, Lock, LockHolder, ResolveError, ShownConflict,
};
use crate::model::{
    AgentId, Conflict, ConflictId, ConflictKind, ConflictStatus, DecidedBy, SessionId,
};
use crate::preview::{FoundFile, Wanted};

pub(super) fn conflict() -> Conflict {
    let (kind, status) = (ConflictKind::Held, ConflictStatus::Pending);
    let agents = ["ui", "api"].map(AgentId::new).to_vec();
    let message = "`api` has `src/ui/app.ts` locked, and `ui` waits to write it".into();
    let (id, session) = (ConflictId::new("c1"), SessionId::new("s-ui"));
    let (path, decided_by) = ("src/ui/app.ts".into(), None);
    Conflict { id, path, kind, status, agents, session, message, decided_by, timestamp_ms: NOW }
}

pub(super) fn decided_conflict() -> Conflict {
    let (status, by) = (ConflictStatus::Allowed, Some(DecidedBy::Person));
    Conflict { status, decided_by: by, ..conflict() }
}

fn over(id: ConflictId) -> ResolveError {
    let Conflict { status, decided_by: by, .. } = decided_conflict();
    ResolveError::Settled { id, status, by }
}

/// The details that are shown of each conflict.
pub(in crate::serve) fn show_conflict(id: ConflictId) -> Result<ShownConflict, ResolveError> {
    match id.as_str() {
        "c1" => Ok(ShownConflict {
            conflict: conflict(),
            file: FoundFile::There { content: b"let total = 1;\n".into(), is_whole: true },
            wanted: Some(Wanted::new("let total = 2;\n")),
            lock: Some(Lock {
                path: "src/ui/app.ts".into(),
                holder: LockHolder {
                    agent: AgentId::new("api"),
                    session: SessionId::new("s-api"),
                    process: Some(HolderProcess { pid: 4712, started: 90_210 }),
                },
                fence: 7,
                is_claim: false,
                since_ms: NOW - 5_000,
            }),
            version: VERSION.to_owned(),
        }),
        "c2" => Err(over(id)),
        _ => Err(ResolveError::Unknown(id)),
    }
}

/// The outcome of a decision.
pub(in crate::serve) fn resolved_conflict(
    id: ConflictId,
    decision: &HeldDecision,
    by: DecidedBy,
    version: Option<&str>,
) -> Result<Conflict, ResolveError> {
    match id.as_str() {
        "c1" if version.is_some_and(|version| version != VERSION) => Err(ResolveError::Changed(id)),
        "c1" => {
            let status = match decision {
                HeldDecision::Allow => ConflictStatus::Allowed,
                HeldDecision::Deny { .. } => ConflictStatus::Denied,
            };
            Ok(Conflict { status, decided_by: Some(by), ..conflict() })
        }
        "c2" => Err(over(id)),
        _ => Err(ResolveError::Unknown(id)),
    }
}
