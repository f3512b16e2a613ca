//! The conflicts of a run, each with its state. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{
    AgentId, Conflict, ConflictId, ConflictKind, ConflictStatus, DecidedBy, SessionKey, now_ms,
};

/// Conflicts that are kept; past that the oldest settled one is forgotten here. The journal has
/// them all.
const REMEMBERED: usize = 10_000;

#[derive(Default, Debug)]
pub(super) struct ConflictBoard {
    /// By the number in their ids.
    all: BTreeMap<u64, Conflict>,
    last: u64,
}

impl ConflictBoard {
    pub(super) fn add(
        &mut self,
        kind: ConflictKind,
        status: ConflictStatus,
        writer: &SessionKey,
        others: Vec<AgentId>,
        path: &Arc<str>,
        message: String,
    ) -> Conflict {
        if self.all.len() >= REMEMBERED
            && let Some(oldest) = self.all.iter().find(|(_, it)| !it.waits()).map(|(at, _)| *at)
        {
            self.all.remove(&oldest);
        }
        self.last += 1;
        let mut agents = vec![writer.agent.clone()];
        agents.extend(others);
        let conflict = Conflict {
            id: ConflictId::new(format!("c{}", self.last)),
            path: Arc::clone(path),
            kind,
            status,
            agents,
            session: writer.session.clone(),
            message: message.into(),
            decided_by: None,
            timestamp_ms: now_ms(),
        };
        self.all.insert(self.last, conflict.clone());
        conflict
    }

    /// Replaces the state of a conflict that does not wait.
    pub(super) fn observe(&mut self, id: &ConflictId, message: &str) -> Option<Conflict> {
        let conflict = self.all.get_mut(&number(id)?).filter(|it| it.id == *id)?;
        conflict.status = ConflictStatus::Observed;
        conflict.message = message.into();
        Some(conflict.clone())
    }

    /// Settles a conflict that waits; None if it does not. `by`: who decided it, if somebody did.
    pub(super) fn settle(
        &mut self,
        id: &ConflictId,
        status: ConflictStatus,
        message: Option<&str>,
        by: Option<DecidedBy>,
    ) -> Option<Conflict> {
        let conflict = self.all.get_mut(&number(id)?).filter(|it| it.id == *id && it.waits())?;
        conflict.status = status;
        conflict.decided_by = by;
        conflict.timestamp_ms = now_ms();
        if let Some(message) = message {
            conflict.message = message.into();
        }
        Some(conflict.clone())
    }

    pub(super) fn get(&self, id: &ConflictId) -> Option<&Conflict> {
        self.all.get(&number(id)?).filter(|conflict| conflict.id == *id)
    }

    pub(super) fn pending(&self) -> usize {
        self.all.values().filter(|conflict| conflict.waits()).count()
    }

    /// All of a status, oldest first.
    pub(super) fn list(&self, status: Option<ConflictStatus>) -> Vec<Conflict> {
        let of = |conflict: &&Conflict| status.is_none_or(|status| conflict.status == status);
        self.all.values().filter(of).cloned().collect()
    }
}

fn number(id: &ConflictId) -> Option<u64> {
    id.as_str().strip_prefix('c')?.parse().ok()
}
