//! The fate of an access as it comes: a grant or a rule opens it, or it is denied, or held.

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::{BoardEntry, HeldAccess, Task};
use crate::model::{
    AccessRule, AgentId, BlockedId, BlockedStatus, Decide, DecidedBy, SessionId, TimestampMs, Via,
    now_ms,
};
use crate::routing::board::Waiter;
use crate::routing::grants::Allowed;
use crate::routing::judged::Judged;
use crate::routing::wait::waiting;
use crate::routing::{AccessScope, Making, Orchestrator, Request, Rules, Settlement};
use crate::tasks::{Circle, WaitGuard, WaitKind};

impl Task {
    pub(super) fn request(&mut self, request: Request, reply: oneshot::Sender<Settlement>) {
        let rule = self.rule(&request);
        if let Some(settlement) = self.take_grant(&request, rule) {
            let _ = reply.send(settlement);
            return;
        }
        if opens(rule) {
            self.grants.grant_system_calls(&Allowed::request(&request, false));
            let _ = reply.send(Settlement::Allowed);
            return;
        }
        if let Some(id) = self.stopped.was_refused(&request) {
            let _ = reply.send(self.denial(&id, None));
            return;
        }
        // An earlier denial without a decision does not settle an access that can be held.
        if !self.holds(&request, rule) {
            let id = self.tried_before(&request).unwrap_or_else(|| self.deny(request));
            let _ = reply.send(self.denial(&id, rule.and_then(why_denied)));
            return;
        }
        let wait = match self.begin_wait(&request.key.agent, rule) {
            Ok(wait) => wait,
            Err(circle) => {
                let id = self.tried_before(&request).unwrap_or_else(|| self.deny(request));
                let _ = reply.send(self.denial(&id, Some(format!("It is not held: {circle}."))));
                return;
            }
        };
        if !self.rates.take(&request.key.agent) {
            let id = self.deny_unlisted(request);
            let _ = reply.send(self.denial(&id, None));
            return;
        }
        if request.via == Via::Kernel {
            self.stopped.note(&request, None);
        }
        self.hold(request, Vec::new(), wait, reply);
    }

    /// Has an agent wait for the orchestrator agent, if that is to decide.
    pub(super) fn begin_wait(
        &self,
        agent: &AgentId,
        rule: Option<AccessRule>,
    ) -> Result<Option<WaitGuard>, Circle> {
        let Orchestrator::Agent(lead) = &self.settings.orchestrator else { return Ok(None) };
        if !asks_orchestrator(rule) {
            return Ok(None);
        }
        let lead = std::slice::from_ref(lead);
        self.settings.waits.begin(agent, lead, WaitKind::Decision).map(Some)
    }

    /// Lists an access that waits for a decision. Its agent may have asked for it in any of
    /// `sessions`.
    pub(super) fn hold(
        &mut self,
        request: Request,
        sessions: Vec<SessionId>,
        wait: Option<WaitGuard>,
        reply: oneshot::Sender<Settlement>,
    ) -> BlockedId {
        let (settle, decision) = oneshot::channel();
        self.last_waiter += 1;
        let number = self.last_waiter;
        let waiter = Waiter {
            number,
            via: request.via,
            caller: request.caller,
            call: request.call.clone(),
            is_for_folder: request.making == Making::Parent,
            settle,
        };
        let rule = self.rule(&request);
        let id = match self.unattended(&request).or_else(|| self.joined(&request, rule)) {
            Some(id) => {
                if request.wanted.is_some() {
                    self.board.want(&id, request.wanted);
                }
                self.add_to_story(&request.key, &id);
                self.board.change(&id, |entry| {
                    entry.over = None;
                    entry.sessions.push(request.key.session);
                    entry.waiters.push(waiter);
                });
                id
            }
            None => self.block(request, BlockedStatus::Pending, Some(waiter)),
        };
        self.board.change(&id, |entry| entry.sessions.extend(sessions));
        let timed_out = self.denial(&id, Some("Nobody decided in time.".to_owned()));
        if let Some(held) = self.held.get(&id) {
            let deadline = held.deadline.subscribe();
            self.pending.push(Box::pin(waiting(
                (id.clone(), number),
                decision,
                reply,
                deadline,
                timed_out,
            )));
            return id;
        }
        let rule = self.board.get(&id).and_then(|entry| entry.access.rule);
        let deadline = watch::Sender::new(self.deadline(rule));
        let waiting =
            waiting((id.clone(), number), decision, reply, deadline.subscribe(), timed_out);
        self.pending.push(Box::pin(waiting));
        self.held.insert(id.clone(), HeldAccess { deadline, question: None, wait });
        if rule.is_some_and(|rule| rule.decide == Decide::Owner) {
            self.ask_owner(&id);
        }
        self.route(&id);
        id
    }

    /// Until when an access is held from now on.
    pub(super) fn deadline(&self, rule: Option<AccessRule>) -> Option<Instant> {
        // A person may sleep.
        let is_timed = rule.is_none_or(|rule| rule.decide != Decide::Person);
        let most = self.settings.rules.hold_timeout.filter(|_| is_timed)?;
        Some(Instant::now() + most)
    }

    /// Whether an access is held for a decision.
    pub(super) fn holds(&self, request: &Request, rule: Option<AccessRule>) -> bool {
        let agent = &request.key.agent;
        let asked = match rule.map(|rule| rule.decide) {
            Some(Decide::Orchestrator | Decide::Owner | Decide::Person) => true,
            Some(Decide::Allow | Decide::Deny) => false,
            None => request.hold || self.settings.rules.holds(agent),
        };
        let deadlocks = asks_orchestrator(rule) && self.would_deadlock(agent);
        asked && request.may_wait && request.grantable && !deadlocks && !self.is_for_nobody(rule)
    }

    /// Whether a person would decide, and none can be asked.
    pub(super) fn is_for_nobody(&self, rule: Option<AccessRule>) -> bool {
        let is_led = matches!(
            self.settings.orchestrator,
            Orchestrator::Agent(_) | Orchestrator::Elsewhere { .. }
        );
        let by_agent = match rule.map(|rule| rule.decide) {
            Some(Decide::Owner) => true,
            Some(Decide::Person) => false,
            _ => is_led,
        };
        self.settings.rules.unattended && !by_agent
    }

    /// Whether the orchestrator waits for an agent, so that it must not hold the agent's accesses.
    pub(super) fn would_deadlock(&self, agent: &AgentId) -> bool {
        self.is_orchestrator(agent) || self.orchestrated.contains_key(agent)
    }

    /// Denies an access at once.
    pub(super) fn deny(&mut self, request: Request) -> BlockedId {
        let agent = request.key.agent.clone();
        if !self.rates.take(&agent) {
            return self.deny_unlisted(request);
        }
        let stopped = (request.via == Via::Kernel).then(|| request.clone());
        let id = self.block(request, BlockedStatus::Denied, None);
        if let Some(stopped) = stopped {
            self.stopped.note(&stopped, Some(id.clone()));
        }
        if let Some((_, ids)) = self.orchestrated.get_mut(&agent) {
            ids.push(id.clone());
        } else {
            self.route(&id);
        }
        id
    }

    /// The rule of `[[routing]]` that matches an access.
    pub(super) fn rule(&self, request: &Request) -> Option<AccessRule> {
        if request.scope == AccessScope::Inside {
            return None;
        }
        let agent = &request.key.agent;
        let is_owned = || self.owners(&request.path).iter().any(|owner| owner != agent);
        self.settings.rules.routing.first(&request.into(), is_owned)
    }

    /// The rule that matches a listed access by now.
    pub(super) fn rule_now(
        &self,
        entry: &BoardEntry,
        is_owned: impl FnOnce() -> bool,
    ) -> Option<AccessRule> {
        if entry.scope == AccessScope::Inside {
            return None;
        }
        self.settings.rules.routing.first(&entry.into(), is_owned)
    }

    /// Whether a grant or the rule allows an access.
    pub(super) fn is_open(&self, request: &Request, rule: Option<AccessRule>) -> bool {
        self.grants.cover(request, &self.judged(request, rule)) || opens(rule)
    }

    /// The verdicts by which grants of an access count.
    pub(super) fn judged(&self, request: &Request, rule: Option<AccessRule>) -> Judged<'_> {
        judged(&self.settings.rules, request, rule)
    }
}

/// The end of a wait as others read it: the deadline, or the time at which the agent gives up.
pub(super) fn until_ms(
    deadline: Option<Instant>,
    gives_up: Option<Instant>,
) -> Option<TimestampMs> {
    let end = deadline.into_iter().chain(gives_up).min()?;
    let left = end.saturating_duration_since(Instant::now());
    Some(now_ms() + u64::try_from(left.as_millis()).unwrap_or(u64::MAX / 2))
}

pub(super) fn opens(rule: Option<AccessRule>) -> bool {
    rule.is_some_and(|rule| rule.decide == Decide::Allow)
}

/// As [`Task::judged`].
pub(super) fn judged<'a>(
    rules: &'a Rules,
    request: &Request,
    rule: Option<AccessRule>,
) -> Judged<'a> {
    Judged {
        needs_person: rule.is_some_and(AccessRule::excludes_agents),
        needs_path: rule.is_some_and(|rule| rule.decide == Decide::Deny),
        zone: rules.zones.get(&request.key.agent).map(|zone| &**zone),
    }
}

/// Whether the orchestrator decides.
pub(super) fn asks_orchestrator(rule: Option<AccessRule>) -> bool {
    rule.is_none_or(|rule| rule.decide == Decide::Orchestrator)
}

/// The decider of a denied access: the rule, if it says so.
pub(super) fn decided_by_rule(rule: Option<AccessRule>) -> Option<DecidedBy> {
    rule.filter(|rule| rule.decide == Decide::Deny).map(|_| DecidedBy::Rule)
}

/// The reason of a denial, for the agent; None where the rule is not the reason.
pub(super) fn why_denied(rule: AccessRule) -> Option<String> {
    let number = rule.number;
    (rule.decide == Decide::Deny).then(|| format!("Rule {number} of `[[routing]]` denies it."))
}
