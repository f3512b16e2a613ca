//! The open grants: the later accesses that each decision allows, and for how long.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::judged::Judged;
use super::team_grants::TeamGrants;
use super::{AccessScope, Allowance, Making, Queued, Request, Settlement};
use crate::model::{Action, AgentId, BlockedAccess, Decide, SessionId, SessionKey, Via, within};
use crate::zone::GrantPattern;

/// How long a tool call may repeat an access that was allowed once.
const SAME_CALL: Duration = Duration::from_secs(10);

/// A permission for later accesses: one path and action of one agent.
#[derive(PartialEq, Debug)]
struct Grant {
    agent: AgentId,
    path: Arc<str>,
    action: Action,
    /// The paths that are opened beside it; a write opens reads, too.
    pattern: Option<Arc<GrantPattern>>,
    validity: Validity,
    settlement: Settlement,
    /// A person granted it in spite of a matching pattern of `denied`.
    even_denied: bool,
    /// A person granted it, and no agent.
    by_person: bool,
    /// The access waited for a person by a rule, and its grant outlasts the team.
    outlasts: bool,
    expires: Option<Instant>,
}

#[derive(PartialEq, Eq, Debug)]
enum Validity {
    Once,
    /// Any number of times in this session.
    Session(SessionId),
    /// For the rest of the tool call: once in each way other than these, and any number of times
    /// for system calls of one process. Until that process is known, the next one is taken for it.
    Call(SessionId, Vec<Via>, Option<u32>),
    /// For system calls, any number of times, until a turn of this session ends.
    Turn(SessionId),
}

/// An access that was allowed.
pub(super) struct Allowed {
    key: SessionKey,
    path: Arc<str>,
    action: Action,
    via: Via,
    even_denied: bool,
    by_person: bool,
    outlasts: bool,
    pattern: Option<Arc<GrantPattern>>,
}

impl Allowed {
    /// An access that a decision allowed, as it was made by one of its ways.
    pub(super) fn of(access: &BlockedAccess, via: Via, by_person: bool) -> Self {
        Self {
            key: access.key.clone(),
            path: Arc::clone(&access.path),
            action: access.action,
            via,
            even_denied: access.denied_by.is_some(),
            by_person,
            outlasts: access.rule.is_some_and(|rule| rule.decide == Decide::Person),
            pattern: None,
        }
    }

    /// A request that needs no decision.
    pub(super) fn request(request: &Request, by_person: bool) -> Self {
        Self {
            key: request.key.clone(),
            path: Arc::clone(&request.path),
            action: request.action,
            via: request.via,
            even_denied: request.denied_by.is_some(),
            by_person,
            outlasts: false,
            pattern: None,
        }
    }

    /// With all that a pattern opens.
    pub(super) fn widened(self, pattern: Option<Arc<GrantPattern>>) -> Self {
        Self { pattern, ..self }
    }

    /// An access that a person allowed in an earlier run, for the next try.
    pub(super) fn earlier(request: &Request, permit: Allowance) -> Self {
        let even_denied = permit.even_denied;
        Self { even_denied, outlasts: true, ..Self::request(request, true) }
    }
}

/// The open grants. Beyond `CAPACITY` the oldest is dropped, and its access blocked again.
#[derive(Debug, Default)]
pub(super) struct Grants {
    open: Vec<Grant>,
    pub(super) team: TeamGrants,
}

const CAPACITY: usize = 10_000;

impl Grants {
    /// Grants accesses equal to `access`: any number in `session`, or those of one call.
    pub(super) fn add(
        &mut self,
        access: &Allowed,
        session: Option<SessionId>,
        settlement: Settlement,
        expires: Option<Instant>,
    ) {
        self.push(Grant {
            agent: access.key.agent.clone(),
            path: access.path.clone(),
            action: access.action,
            pattern: access.pattern.clone(),
            validity: session.map_or(Validity::Once, Validity::Session),
            settlement,
            even_denied: access.even_denied,
            by_person: access.by_person,
            outlasts: access.outlasts,
            expires,
        });
    }

    /// Grants repetitions of an access that was allowed once, until `expires` at the latest: agents
    /// open a file twice, or ask for permission before they open it.
    pub(super) fn grant_repeats(
        &mut self,
        of: &Allowed,
        caller: Option<u32>,
        expires: Option<Instant>,
    ) {
        let until = Instant::now() + SAME_CALL;
        self.push(Grant {
            agent: of.key.agent.clone(),
            path: Arc::clone(&of.path),
            action: of.action,
            pattern: None,
            validity: Validity::Call(of.key.session.clone(), vec![of.via], caller),
            settlement: Settlement::Allowed,
            even_denied: of.even_denied,
            by_person: of.by_person,
            outlasts: false,
            expires: Some(expires.map_or(until, |expires| expires.min(until))),
        });
    }

    /// Grants the system calls that follow an allowed request: a terminal or permitted tool call
    /// opens the file itself, and the kernel would stop it.
    pub(super) fn grant_system_calls(&mut self, of: &Allowed) {
        if !matches!(of.via, Via::Terminal | Via::Permission) || of.path.is_empty() {
            return;
        }
        let grant = Grant {
            agent: of.key.agent.clone(),
            path: Arc::clone(&of.path),
            action: of.action,
            pattern: None,
            validity: Validity::Turn(of.key.session.clone()),
            settlement: Settlement::Allowed,
            even_denied: of.even_denied,
            by_person: of.by_person,
            outlasts: false,
            expires: None,
        };
        if !self.open.contains(&grant) {
            self.push(grant);
        }
    }

    /// Removes the grants for a turn.
    pub(super) fn turn_over(&mut self, key: &SessionKey) {
        self.open.retain(|grant| {
            grant.agent != key.agent
                || match &grant.validity {
                    Validity::Turn(session) => *session != key.session,
                    Validity::Call(session, ..) => {
                        *session != key.session && !has_no_session(session)
                    }
                    Validity::Once | Validity::Session(_) => true,
                }
        });
    }

    fn push(&mut self, grant: Grant) {
        self.open.retain(|grant| !grant.is_over());
        if self.open.len() == CAPACITY {
            self.open.remove(0);
        }
        self.open.push(grant);
    }

    /// The accesses of the queue that a person allowed and no agent has used, oldest first.
    pub(super) fn unused(&self) -> impl Iterator<Item = Queued> {
        self.open.iter().filter(|grant| grant.is_unused()).map(|grant| Queued {
            access: Request {
                // A grant of a read may be for a search.
                scope: match grant.action {
                    Action::Read => AccessScope::Below,
                    Action::Write => AccessScope::Path,
                },
                ..Request::again(
                    SessionKey::new(grant.agent.clone(), SessionId::new("")),
                    Arc::clone(&grant.path),
                    grant.action,
                    Via::Fs,
                )
            },
            permit: Some(Allowance {
                even_denied: grant.even_denied,
                expires: grant.expires.map(wall_clock),
            }),
        })
    }

    pub(super) fn forget(&mut self, agent: &AgentId) {
        self.team.forget(agent);
        self.open.retain(|grant| grant.agent != *agent);
    }

    /// Whether a grant covers the request.
    pub(super) fn cover(&self, request: &Request, judged: &Judged<'_>) -> bool {
        self.team.cover(request, judged) || self.open.iter().any(|it| it.covers(request, judged))
    }

    /// Returns the settlement that was granted for `request`; a grant for one call is turned into
    /// that call's.
    pub(super) fn take(&mut self, request: &Request, judged: &Judged<'_>) -> Option<Settlement> {
        let covers = |grant: &Grant| grant.covers(request, judged);
        if self.team.cover(request, judged) {
            // Its system calls are covered as long as it is not revoked.
            self.open.retain(|it| !(it.is_unused() && covers(it)));
            return Some(Settlement::Allowed);
        }
        // A folder that is made for a file is no use of the grant.
        if let Some(of) = self.open.iter().find(|it| it.is_for_folder_of(request) && covers(it)) {
            return Some(of.settlement.clone());
        }
        if self.open.iter().any(|it| matches!(it.validity, Validity::Session(_)) && covers(it)) {
            // It was given with a permit for the next try, which this is.
            self.open.retain(|it| !(it.is_unused() && covers(it)));
        }
        // Lasting grants come first, since they are not consumed.
        let lasting = self.open.iter().position(|it| it.validity != Validity::Once && covers(it));
        let at = lasting.or_else(|| self.open.iter().position(covers))?;
        let allowed = Allowed::request(request, self.open[at].by_person);
        if self.open[at].validity == Validity::Once {
            let Grant { settlement, expires, .. } = self.open.remove(at);
            if settlement == Settlement::Allowed {
                self.grant_repeats(&allowed, request.caller, expires);
            }
            self.grant_system_calls(&allowed);
            return Some(settlement);
        }
        let grant = &mut self.open[at];
        if let Validity::Call(_, by, caller) = &mut grant.validity {
            match request.via {
                Via::Kernel => *caller = request.caller,
                other => by.push(other),
            }
        }
        let settlement = grant.settlement.clone();
        self.grant_system_calls(&allowed);
        Some(settlement)
    }
}

impl Grant {
    fn covers(&self, request: &Request, judged: &Judged<'_>) -> bool {
        let is_it = (self.path == request.path || self.is_for_folder_of(request))
            && self.action == request.action
            && (self.even_denied || request.denied_by.is_none());
        let widens = |pattern: &Arc<GrantPattern>| judged.widened(pattern, self.action, request);
        self.agent == request.key.agent
            && (is_it || self.pattern.as_ref().is_some_and(widens))
            && (self.by_person || !judged.needs_person)
            && self.applies_to(request)
            && !self.is_over()
            // Only `fs/read_text_file` can be answered with content.
            && (request.via == Via::Fs || self.settlement == Settlement::Allowed)
    }

    /// Whether a request makes a missing folder for what is granted.
    fn is_for_folder_of(&self, request: &Request) -> bool {
        self.action == Action::Write
            && match request.making {
                Making::Nothing => false,
                Making::Parent => self.path == request.path,
                Making::Folder => {
                    self.path != request.path
                        && within(Path::new(&*request.path), Path::new(&*self.path)).is_some()
                }
            }
    }

    fn applies_to(&self, request: &Request) -> bool {
        let session = &request.key.session;
        match &self.validity {
            Validity::Once => true,
            Validity::Session(own) => own == session,
            // With several running turns a system call belongs to none of them.
            Validity::Turn(own) => {
                request.via == Via::Kernel && (own == session || has_no_session(session))
            }
            Validity::Call(own, _, caller) if request.via == Via::Kernel => {
                (own == session || has_no_session(own) || has_no_session(session))
                    && (caller.is_none()
                        || *caller == request.caller
                        || self.is_for_folder_of(request))
            }
            Validity::Call(own, by, _) => {
                (own == session || has_no_session(own)) && !by.contains(&request.via)
            }
        }
    }

    fn is_unused(&self) -> bool {
        self.outlasts
            && self.by_person
            && self.validity == Validity::Once
            && self.settlement == Settlement::Allowed
            && !self.is_over()
    }

    fn is_over(&self) -> bool {
        self.expires.is_some_and(|expires| expires <= Instant::now())
    }
}

fn wall_clock(at: Instant) -> SystemTime {
    SystemTime::now() + at.saturating_duration_since(Instant::now())
}

fn has_no_session(session: &SessionId) -> bool {
    session.as_str().is_empty()
}
