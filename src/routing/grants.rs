use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Request, Settlement};
use crate::model::{Action, AgentId, BlockedAccess, SessionId, SessionKey, Via};

/// How long a tool call that got what it asked for may ask for it again.
const SAME_CALL: Duration = Duration::from_secs(10);

/// What the orchestrator allowed ahead: exactly one path and action of one agent.
#[derive(PartialEq, Debug)]
struct Grant {
    agent: AgentId,
    path: Arc<str>,
    action: Action,
    good: Good,
    settlement: Settlement,
    /// Also where a pattern of `denied` matches: a person said so.
    even_denied: bool,
    expires: Option<Instant>,
}

#[derive(PartialEq, Eq, Debug)]
enum Good {
    Once,
    /// For any number, in this session.
    Session(SessionId),
    /// For the rest of the tool call that got it in one of these ways: once each other way, and
    /// what the kernel stops of one process, any number. Until that is known, it is the next.
    Call(SessionId, Vec<Via>, Option<u32>),
    /// For what the kernel stops, any number, until a turn of this session ends.
    Turn(SessionId),
}

/// An access that was let through.
pub(super) struct Allowed {
    key: SessionKey,
    path: Arc<str>,
    action: Action,
    via: Via,
    even_denied: bool,
}

impl Allowed {
    pub(super) fn via(&self) -> Via {
        self.via
    }
}

impl From<&Request> for Allowed {
    fn from(request: &Request) -> Self {
        Self {
            key: request.key.clone(),
            path: Arc::clone(&request.path),
            action: request.action,
            via: request.via,
            even_denied: request.denied_by.is_some(),
        }
    }
}

impl From<&BlockedAccess> for Allowed {
    fn from(access: &BlockedAccess) -> Self {
        Self {
            key: access.key.clone(),
            path: Arc::clone(&access.path),
            action: access.action,
            via: access.via,
            even_denied: access.denied_by.is_some(),
        }
    }
}

/// The grants that are open. A grant is added by a decision, so there are never more than were
/// decided; past `CAPACITY` the oldest is forgotten, and its access blocked again.
#[derive(Debug, Default)]
pub(super) struct Grants(Vec<Grant>);

const CAPACITY: usize = 10_000;

impl Grants {
    /// Grants the next access like `access`; in its `session` any number, else those of one call.
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
            even_denied: access.denied_by.is_some(),
            expires,
        });
    }

    /// Lets a tool call go on with what it was just allowed once: agents open a file twice to read
    /// it, and ask for permission before they open it. `expires`: at the latest.
    pub(super) fn go_on(&mut self, of: &Allowed, caller: Option<u32>, expires: Option<Instant>) {
        let until = Instant::now() + SAME_CALL;
        self.push(Grant {
            agent: of.key.agent.clone(),
            path: Arc::clone(&of.path),
            action: of.action,
            good: Good::Call(of.key.session.clone(), vec![of.via], caller),
            settlement: Settlement::Allowed,
            even_denied: of.even_denied,
            expires: Some(expires.map_or(until, |expires| expires.min(until))),
        });
    }

    /// Lets what was allowed to be asked for also be done: a terminal or a tool call that was let
    /// through opens the file itself, and the kernel stops it at that.
    pub(super) fn follow(&mut self, of: &Allowed) {
        if !matches!(of.via, Via::Terminal | Via::Permission) || of.path.is_empty() {
            return;
        }
        let grant = Grant {
            agent: of.key.agent.clone(),
            path: Arc::clone(&of.path),
            action: of.action,
            good: Good::Turn(of.key.session.clone()),
            settlement: Settlement::Allowed,
            even_denied: of.even_denied,
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
                || match &grant.good {
                    Good::Turn(session) => *session != key.session,
                    Good::Call(session, ..) => *session != key.session && !has_no_session(session),
                    Good::Once | Good::Session(_) => true,
                }
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

    /// Whether an access like it would be let through now.
    pub(super) fn cover(&self, request: &Request) -> bool {
        self.0.iter().any(|grant| grant.covers(request))
    }

    /// Returns what was granted for `request`; a grant that is good once is used up by its call.
    pub(super) fn take(&mut self, request: &Request) -> Option<Settlement> {
        let covers = |grant: &Grant| grant.covers(request);
        // What is good for more comes first: it is not used up.
        let lasting = self.0.iter().position(|it| it.good != Good::Once && covers(it));
        let at = lasting.or_else(|| self.0.iter().position(covers))?;
        if self.0[at].good == Good::Once {
            let Grant { settlement, expires, .. } = self.0.remove(at);
            if settlement == Settlement::Allowed {
                self.go_on(&request.into(), request.caller, expires);
            }
            return Some(settlement);
        }
        let grant = &mut self.0[at];
        if let Good::Call(_, by, caller) = &mut grant.good {
            match request.via {
                Via::Kernel => *caller = request.caller,
                other => by.push(other),
            }
        }
        Some(grant.settlement.clone())
    }
}

impl Grant {
    fn covers(&self, request: &Request) -> bool {
        self.agent == request.key.agent
            && self.path == request.path
            && self.action == request.action
            && (self.even_denied || request.denied_by.is_none())
            && self.applies_to(request)
            && !self.is_over()
            // Content can only stand for what `fs/read_text_file` returns.
            && (request.via == Via::Fs || self.settlement == Settlement::Allowed)
    }

    fn applies_to(&self, request: &Request) -> bool {
        let session = &request.key.session;
        match &self.good {
            Good::Once => true,
            Good::Session(own) => own == session,
            // Where several turns run, what the kernel stops belongs to none of them.
            Good::Turn(own) => {
                request.via == Via::Kernel && (own == session || has_no_session(session))
            }
            Good::Call(own, _, caller) if request.via == Via::Kernel => {
                (own == session || has_no_session(own) || has_no_session(session))
                    && (caller.is_none() || *caller == request.caller)
            }
            Good::Call(own, by, _) => {
                (own == session || has_no_session(own)) && !by.contains(&request.via)
            }
        }
    }

    fn is_over(&self) -> bool {
        self.expires.is_some_and(|expires| expires <= Instant::now())
    }
}

fn has_no_session(session: &SessionId) -> bool {
    session.as_str().is_empty()
}
