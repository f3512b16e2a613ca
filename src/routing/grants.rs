use std::sync::Arc;

use tokio::time::Instant;

use super::{Request, Settlement};
use crate::model::{Action, AgentId, BlockedAccess, SessionId, SessionKey, Via};

/// What the orchestrator allowed ahead: exactly one path and action of one agent.
#[derive(PartialEq, Debug)]
struct Grant {
    agent: AgentId,
    path: Arc<str>,
    action: Action,
    good: Good,
    settlement: Settlement,
    expires: Option<Instant>,
}

#[derive(PartialEq, Eq, Debug)]
enum Good {
    Once,
    /// For any number, in this session.
    Session(SessionId),
    /// For what the kernel stops, any number, until a turn of this session ends.
    Turn(SessionId),
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
        self.push(Grant {
            agent: access.key.agent.clone(),
            path: access.path.clone(),
            action: access.action,
            good: session.map_or(Good::Once, Good::Session),
            settlement,
            expires,
        });
    }

    /// Lets what was allowed to be asked for also be done: a terminal or a tool call that was let
    /// through opens the file itself, and the kernel stops it at that.
    pub(super) fn follow(&mut self, key: &SessionKey, path: &Arc<str>, action: Action, via: Via) {
        if !matches!(via, Via::Terminal | Via::Permission) || path.is_empty() {
            return;
        }
        let grant = Grant {
            agent: key.agent.clone(),
            path: Arc::clone(path),
            action,
            good: Good::Turn(key.session.clone()),
            settlement: Settlement::Allowed,
            expires: None,
        };
        if !self.0.contains(&grant) {
            self.push(grant);
        }
    }

    /// Ends what was granted for the turn that ended.
    pub(super) fn turn_over(&mut self, key: &SessionKey) {
        self.0.retain(|grant| {
            grant.agent != key.agent
                || !matches!(&grant.good, Good::Turn(session) if *session == key.session)
        });
    }

    fn push(&mut self, grant: Grant) {
        self.0.retain(|grant| !grant.is_over());
        if self.0.len() == CAPACITY {
            self.0.remove(0);
        }
        self.0.push(grant);
    }

    pub(super) fn forget(&mut self, agent: &AgentId) {
        self.0.retain(|grant| grant.agent != *agent);
    }

    /// Returns what was granted for `request`; a grant that is good once is used up by it.
    pub(super) fn take(&mut self, request: &Request) -> Option<Settlement> {
        let covers = |grant: &Grant| grant.covers(request);
        // What is good for more comes first: it is not used up.
        let lasting = self.0.iter().position(|it| it.good != Good::Once && covers(it));
        let at = lasting.or_else(|| self.0.iter().position(covers))?;
        if self.0[at].good == Good::Once {
            return Some(self.0.remove(at).settlement);
        }
        Some(self.0[at].settlement.clone())
    }
}

impl Grant {
    fn covers(&self, request: &Request) -> bool {
        self.agent == request.key.agent
            && self.path == request.path
            && self.action == request.action
            && self.is_good_for(request)
            && !self.is_over()
            // Content can only stand for what `fs/read_text_file` returns.
            && (request.via == Via::Fs || self.settlement == Settlement::Allowed)
    }

    fn is_good_for(&self, request: &Request) -> bool {
        let session = &request.key.session;
        match &self.good {
            Good::Once => true,
            Good::Session(own) => own == session,
            // Where several turns run, what the kernel stops belongs to none of them.
            Good::Turn(own) => {
                request.via == Via::Kernel && (own == session || session.as_str().is_empty())
            }
        }
    }

    fn is_over(&self) -> bool {
        self.expires.is_some_and(|expires| expires <= Instant::now())
    }
}
