use std::sync::Arc;

use tokio::time::Instant;

use super::{Request, Settlement};
use crate::model::{Action, AgentId, BlockedAccess, SessionId};

/// What the orchestrator allowed ahead: exactly one path and action of one agent.
#[derive(Debug)]
struct Grant {
    agent: AgentId,
    path: Arc<str>,
    action: Action,
    /// A session that may come again; None: good once.
    session: Option<SessionId>,
    settlement: Settlement,
    expires: Option<Instant>,
}

/// The grants that are open. A grant is added by a decision, so there are never more than were
/// decided; past `CAPACITY` the oldest is forgotten, and its access blocked again.
#[derive(Debug, Default)]
pub(super) struct Grants(Vec<Grant>);

const CAPACITY: usize = 10_000;

impl Grants {
    /// Grants the next access like `access`; in its `session` any number, else one.
    pub(super) fn add(
        &mut self,
        access: &BlockedAccess,
        session: Option<SessionId>,
        settlement: Settlement,
        expires: Option<Instant>,
    ) {
        self.0.retain(|grant| !grant.is_over());
        if self.0.len() == CAPACITY {
            self.0.remove(0);
        }
        self.0.push(Grant {
            agent: access.key.agent.clone(),
            path: access.path.clone(),
            action: access.action,
            session,
            settlement,
            expires,
        });
    }

    pub(super) fn forget(&mut self, agent: &AgentId) {
        self.0.retain(|grant| grant.agent != *agent);
    }

    /// Returns what was granted for `request`; a grant that is good once is used up by it.
    pub(super) fn take(&mut self, request: &Request) -> Option<Settlement> {
        let at = self.0.iter().position(|grant| grant.covers(request))?;
        let grant = &self.0[at];
        let settlement = grant.settlement.clone();
        if grant.session.is_none() {
            self.0.remove(at);
        }
        Some(settlement)
    }
}

impl Grant {
    fn covers(&self, request: &Request) -> bool {
        self.agent == request.key.agent
            && self.path == request.path
            && self.action == request.action
            && self.session.as_ref().is_none_or(|session| *session == request.key.session)
            && !self.is_over()
            // Content can only stand for what `fs/read_text_file` returns.
            && (request.via == crate::model::Via::Fs || self.settlement == Settlement::Allowed)
    }

    fn is_over(&self) -> bool {
        self.expires.is_some_and(|expires| expires <= Instant::now())
    }
}
