//! A person's decisions about writes that wait: shows what each is about, and decides it only while it
//! is still as it was shown.

use std::sync::Arc;

use super::locks::Lock;
use super::state::ConflictState;
use super::{Conflicts, HeldDecision};
use crate::model::{AgentId, Conflict, ConflictId, ConflictStatus, DecidedBy, Event};
use crate::preview::{FoundFile, LookedAtFile, SeenContent, Wanted};
use crate::zone::Zone;
use eisen_base::task;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ResolveError {
    #[error("the team looks for no conflicts: its configuration has no `[conflicts]`")]
    Off,
    #[error("no conflict has the id {0}")]
    Unknown(ConflictId),
    #[error(
        "{id} does not wait for a decision: it is {}{}",
        .status.as_str(),
        DecidedBy::behind(.by.as_ref())
    )]
    Settled { id: ConflictId, status: ConflictStatus, by: Option<DecidedBy> },
    #[error("what was shown of {0} has changed since: look at it again")]
    Changed(ConflictId),
    #[error("the team is stopping")]
    Stopping,
}

/// A write that waits, as it is shown to whoever decides it.
#[derive(Clone, Debug)]
pub struct ShownConflict {
    pub conflict: Conflict,
    pub file: FoundFile,
    /// The content that the agent wants to write, if it is known.
    pub wanted: Option<Wanted>,
    /// The lock that the write meets; None: it has ended.
    pub lock: Option<Lock>,
    /// Stands for all that is shown.
    pub version: String,
}

/// The parts of a write that were shown, other than the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SeenWrite {
    wanted: SeenContent,
    /// The number of the lock.
    fence: Option<u64>,
}

impl SeenWrite {
    fn of(wanted: Option<&Wanted>, lock: Option<&Lock>) -> Self {
        Self { wanted: SeenContent::of(wanted), fence: lock.map(|lock| lock.fence) }
    }
}

impl Conflicts {
    /// The agent that wants to write.
    pub fn writer(&self, id: &ConflictId) -> Option<AgentId> {
        self.state().board.get(id).and_then(|conflict| conflict.agents.first().cloned())
    }

    /// Shows a write that waits to a person. `zone`: the writer's. Reads the disk.
    pub async fn show(
        &self,
        id: &ConflictId,
        zone: Option<Arc<Zone>>,
    ) -> Result<ShownConflict, ResolveError> {
        let (conflict, wanted, lock) = {
            let state = self.state();
            let conflict = waiting(&state, id)?.clone();
            let lock = lock_before(&state, &conflict);
            (conflict, state.wanted(id).cloned(), lock)
        };
        let looking = task::spawn_blocking(move || {
            let found = LookedAtFile::look(zone.as_deref(), &conflict.path, None);
            let fence = lock.as_ref().map(|lock| lock.fence.to_le_bytes());
            let lock_bytes = fence.as_ref().map(<[u8; 8]>::as_slice).unwrap_or_default();
            let (id, path) = (conflict.id.as_str().as_bytes(), conflict.path.as_bytes());
            let version = found.version(wanted.as_ref(), &[id, path, lock_bytes]);
            ShownConflict { conflict, file: found.file, wanted, lock, version }
        });
        looking.await.map_err(|_| ResolveError::Stopping)
    }

    /// Decides a write that waits if it still is as it was shown with this version.
    pub async fn resolve_shown(
        &self,
        id: &ConflictId,
        decision: HeldDecision,
        by: DecidedBy,
        version: &str,
        zone: Option<Arc<Zone>>,
    ) -> Result<Conflict, ResolveError> {
        let shown = self.show(id, zone).await?;
        if shown.version != version {
            return Err(ResolveError::Changed(id.clone()));
        }
        let seen = SeenWrite::of(shown.wanted.as_ref(), shown.lock.as_ref());
        self.decide(id, decision, by, Some(seen))
    }

    /// Decides a write that waits; returns the conflict. The write goes on soon after.
    pub fn resolve(
        &self,
        id: &ConflictId,
        decision: HeldDecision,
        by: DecidedBy,
    ) -> Result<Conflict, ResolveError> {
        self.decide(id, decision, by, None)
    }

    /// The first decision wins: it settles the conflict.
    fn decide(
        &self,
        id: &ConflictId,
        decision: HeldDecision,
        by: DecidedBy,
        seen: Option<SeenWrite>,
    ) -> Result<Conflict, ResolveError> {
        let settled = {
            let mut state = self.state();
            let conflict = waiting(&state, id)?;
            let lock = lock_before(&state, conflict);
            let now = SeenWrite::of(state.wanted(id), lock.as_ref());
            if seen.is_some_and(|seen| seen != now) {
                return Err(ResolveError::Changed(id.clone()));
            }
            let refusal = decision.refusal();
            let status = match &decision {
                HeldDecision::Allow => ConflictStatus::Allowed,
                HeldDecision::Deny { .. } => ConflictStatus::Denied,
            };
            let settled = state.board.settle(id, status, refusal.as_deref(), Some(by));
            let settled = settled.ok_or_else(|| ResolveError::Unknown(id.clone()))?;
            state.decided.insert(id.clone(), decision);
            self.0.bus.publish(Event::Conflict(settled.clone()));
            settled
        };
        self.wake();
        Ok(settled)
    }
}

/// A conflict whose write waits.
fn waiting<'a>(state: &'a ConflictState, id: &ConflictId) -> Result<&'a Conflict, ResolveError> {
    let conflict = state.board.get(id).ok_or_else(|| ResolveError::Unknown(id.clone()))?;
    if conflict.waits() {
        return Ok(conflict);
    }
    let Conflict { status, decided_by: by, .. } = conflict.clone();
    Err(ResolveError::Settled { id: id.clone(), status, by })
}

/// The lock that the write of a conflict meets now.
fn lock_before(state: &ConflictState, conflict: &Conflict) -> Option<Lock> {
    conflict.agents.first().and_then(|writer| state.against(writer, &conflict.path))
}
