//! A person's decisions about writes that wait.

use super::{Conflicts, HeldDecision};
use crate::model::{Conflict, ConflictId, ConflictStatus};

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ResolveError {
    #[error("no conflict has the id {0}")]
    Unknown(ConflictId),
    #[error("{id} does not wait for a decision: it is {}", .status.as_str())]
    Settled { id: ConflictId, status: ConflictStatus },
}

impl Conflicts {
    /// Decides a write that waits; returns the conflict. The write goes on soon after.
    pub fn resolve(
        &self,
        id: &ConflictId,
        decision: HeldDecision,
    ) -> Result<Conflict, ResolveError> {
        let conflict = {
            let mut state = self.state();
            let found = state.board.get(id).cloned();
            let conflict = found.ok_or_else(|| ResolveError::Unknown(id.clone()))?;
            if !conflict.waits() || state.decided.contains_key(id) {
                return Err(ResolveError::Settled { id: id.clone(), status: conflict.status });
            }
            let status = match decision {
                HeldDecision::Allow => ConflictStatus::Allowed,
                HeldDecision::Deny { .. } => ConflictStatus::Denied,
            };
            state.decided.insert(id.clone(), decision);
            Conflict { status, ..conflict }
        };
        self.wake();
        Ok(conflict)
    }
}
