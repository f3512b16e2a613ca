//! Applies decisions: settles the blocked access and its equals, and adds the grants.

use std::sync::Arc;

use tokio::time::Instant;

use super::queue::is_for_person;
use super::{BoardEntry, Task};
use crate::bus::Bus;
use crate::model::{
    AccessRule, AgentId, BlockedAccess, BlockedId, BlockedStatus, Decided, DecidedBy, Event,
    GrantSpan, Record, SessionId, Via, now_ms, quoted,
};
use crate::preview::SeenContent;
use crate::routing::board::Waiter;
use crate::routing::grants::Allowed;
use crate::routing::{Decider, Decision, ResolveError, Settlement};
use crate::zone::GrantPattern;

/// Messages kept for an agent until its next prompt; when full, the oldest is dropped.
const MOST_NOTES: usize = 20;
const LONGEST_NOTE: usize = 4096;

/// Bytes of a message to an agent that are kept with the access.
const LONGEST_MESSAGE: usize = 400;

impl Task {
    pub(super) fn resolve(
        &mut self,
        id: &BlockedId,
        decision: &Decision,
        by: &Decider,
        seen: Option<SeenContent>,
    ) -> Result<BlockedAccess, ResolveError> {
        // An agent that gave up is told with its next prompt.
        let (decision, tells) = match decision.clone() {
            Decision::Tell { scope, ttl, pattern } => {
                (Decision::Allow { scope, ttl, pattern }, true)
            }
            decision => (decision, false),
        };
        let access = self.decidable(id, &decision, by, tells)?;
        if !self.is_as_seen(id, seen) {
            return Err(ResolveError::Changed(id.clone()));
        }
        let pattern = self.widen(&access, &decision, by)?;
        if tells {
            self.reopen(id);
        }
        let waiting = match (&pattern, decision.opening()) {
            (Some(pattern), Some((span, ..))) => self.waits_for(pattern, &access, span, by),
            _ => Vec::new(),
        };
        self.settle_alike(&access, &decision, by, seen, pattern, tells);
        let (scope, pattern) = (GrantSpan::Once, None);
        let ttl = decision.opening().and_then(|(_, ttl, _)| ttl);
        let once = Decision::Allow { scope, ttl, pattern };
        for other in waiting {
            if let Ok(access) = self.decidable(&other, &once, by, false) {
                self.settle_alike(&access, &once, by, None, None, false);
            }
        }
        Ok(self.board.get(id).map_or(access, |entry| entry.access.clone()))
    }

    /// Settles an access and its equals.
    fn settle_alike(
        &mut self,
        access: &BlockedAccess,
        decision: &Decision,
        by: &Decider,
        seen: Option<SeenContent>,
        pattern: Option<Arc<GrantPattern>>,
        tells: bool,
    ) {
        let by_person = !matches!(by, Decider::Agent(_));
        // Only `fs/read_text_file` can be answered with content.
        let concerns = |entry: &&BoardEntry| {
            (!matches!(decision, Decision::Answer { .. }) || entry.access.is_answerable())
                && (entry.access.denied_by.is_none() || opens_denied(decision, by))
                && (by_person || self.persons_rule(entry).is_none())
                && self.is_as_seen(&entry.access.id, seen)
                && (access.owner_answer.is_none() || entry.access.rule == access.rule)
        };
        let alike: Vec<_> = self
            .board
            .alike(access)
            .filter(concerns)
            .map(|entry| entry.access.id.clone())
            .collect();
        let (mut used, mut is_undelivered) = (false, false);
        let mut sessions = Vec::new();
        for id in &alike {
            let bus = &self.bus;
            let is_recorded = self.records.is_there();
            let record = |access: &BlockedAccess| {
                if is_recorded {
                    bus.publish(decided(access, decision));
                }
            };
            let settled = self.board.change(id, |entry| {
                let waiters = settle(entry, decision, by.into(), &record, bus);
                (waiters, entry.access.clone(), std::mem::take(&mut entry.sessions))
            });
            let Some((waiters, settled, asked_in)) = settled else { continue };
            is_undelivered |= waiters.is_empty();
            for SettledWaiter { via, caller, is_for_folder } in waiters {
                let allowed = Allowed::of(&settled, via, by_person);
                if matches!(decision, Decision::Deny { .. }) && via == Via::Kernel {
                    self.stopped.refused(&settled, caller);
                }
                // Whoever asked has the decision, but did not use it yet.
                let is_to_come = via == Via::Request && matches!(decision, Decision::Allow { .. });
                used |= !is_to_come;
                // A failed system call carries no message.
                is_undelivered |= via == Via::Kernel;
                if !is_to_come {
                    self.grant_repeats(&allowed, decision, caller.filter(|_| !is_for_folder));
                }
            }
            sessions.push(settled.key.session);
            sessions.extend(asked_in);
        }
        if let Decision::Deny { message: Some(message) } = decision
            && is_undelivered
        {
            self.note(access, message);
        }
        if let Decision::Allow { scope, ttl, .. } = decision
            && (is_for_person(access) || tells)
            && !used
        {
            if *scope == GrantSpan::Session {
                // The agent may be in another session by now.
                let expires = ttl.map(|ttl| Instant::now() + ttl);
                let allowed = Allowed::of(access, access.via, by_person);
                self.grants.add(&allowed, None, Settlement::Allowed, expires);
            }
            self.note_permit(access.key.agent.clone(), access.action, &access.path);
        }
        let allowed = Allowed::of(access, access.via, by_person).widened(pattern);
        self.grant(&allowed, decision, used, sessions);
        if is_for_person(access) {
            self.publish_queue();
        }
    }

    /// Grants what follows from an access that a waiting request was allowed.
    fn grant_repeats(&mut self, allowed: &Allowed, decision: &Decision, caller: Option<u32>) {
        let Decision::Allow { scope, ttl, .. } = decision else { return };
        if *scope == GrantSpan::Team {
            // The team's grant covers its system calls as long as it is not revoked.
            return;
        }
        self.grants.grant_system_calls(allowed);
        if *scope == GrantSpan::Once {
            let expires = ttl.map(|ttl| Instant::now() + ttl);
            self.grants.grant_repeats(allowed, caller, expires);
        }
    }

    /// Makes an access decidable for which its agent waited in vain.
    fn reopen(&mut self, id: &BlockedId) {
        self.board.change(id, |entry| {
            entry.decided &= !is_too_late(entry);
        });
    }

    /// Returns an access that this decider may still decide; one that is too late if it `tells` the agent.
    pub(super) fn undecided(
        &self,
        id: &BlockedId,
        by: &Decider,
        tells: bool,
    ) -> Result<&BoardEntry, ResolveError> {
        let entry = self.board.get(id).ok_or_else(|| ResolveError::Unknown(id.clone()))?;
        if let Decider::Agent(agent) = by
            && *agent == entry.access.key.agent
        {
            return Err(ResolveError::Own { id: id.clone(), agent: agent.clone() });
        }
        if entry.decided && !(tells && is_too_late(entry)) {
            let BlockedAccess { status, decided_by, ended, .. } = &entry.access;
            if let (BlockedStatus::Expired, Some(ended)) = (status, ended) {
                return Err(ResolveError::TooLate { id: id.clone(), ended: Arc::clone(ended) });
            }
            let (status, by) = (*status, decided_by.clone());
            return Err(ResolveError::Settled { id: id.clone(), status, by });
        }
        if entry.access.sweep.is_some() {
            return Err(ResolveError::Sweep(id.clone()));
        }
        Ok(entry)
    }

    /// Returns an access, if this decision about it can be made by this decider.
    fn decidable(
        &self,
        id: &BlockedId,
        decision: &Decision,
        by: &Decider,
        tells: bool,
    ) -> Result<BlockedAccess, ResolveError> {
        let entry = self.undecided(id, by, tells)?;
        let access = entry.access.clone();
        if matches!(decision, Decision::Answer { .. }) && !access.is_answerable() {
            return Err(ResolveError::NotAnswerable);
        }
        if !entry.grantable && !matches!(decision, Decision::Deny { .. }) {
            return Err(ResolveError::NotGrantable(access.path));
        }
        if let Some(rule) = self.persons_rule(entry)
            && matches!(by, Decider::Agent(_))
        {
            return Err(ResolveError::ForPerson { id: id.clone(), rule: rule.number });
        }
        if let Some(denied_by) = &access.denied_by
            && !opens_denied(decision, by)
        {
            let (id, path) = (id.clone(), Arc::clone(&access.path));
            return Err(ResolveError::DeniedBy { id, path, by: Arc::clone(denied_by) });
        }
        Ok(access)
    }

    /// The rule by which no agent decides an access: of those that were when it came, or are now.
    pub(super) fn persons_rule(&self, entry: &BoardEntry) -> Option<AccessRule> {
        let of = entry.access.rule.filter(|rule| rule.excludes_agents());
        of.or_else(|| self.rule_now(entry, || true).filter(|rule| rule.excludes_agents()))
    }

    /// Keeps the message of a denial until the agent is prompted next.
    pub(super) fn note(&mut self, access: &BlockedAccess, message: &str) {
        let (action, path) = (access.action, quoted(&access.path));
        let line = format!("- {action} {path}: denied: {message}");
        self.add_note(access.key.agent.clone(), &line);
    }

    /// Keeps a line for an agent until its next prompt.
    pub(super) fn add_note(&mut self, agent: AgentId, line: &str) {
        let notes = self.notes.entry(agent).or_default();
        if notes.len() >= MOST_NOTES {
            notes.pop_front();
        }
        let end = line.floor_char_boundary(LONGEST_NOTE);
        let more = if end < line.len() { "…" } else { "" };
        notes.push_back(format!("{}{more}", &line[..end]));
    }

    /// Adds the grants of a decision; `used` if a held request already got it.
    fn grant(
        &mut self,
        access: &Allowed,
        decision: &Decision,
        used: bool,
        mut sessions: Vec<SessionId>,
    ) {
        match decision {
            Decision::Allow { scope: GrantSpan::Session, ttl, .. } => {
                let expires = ttl.map(|ttl| Instant::now() + ttl);
                sessions.sort();
                sessions.dedup();
                for session in sessions {
                    self.grants.add(access, Some(session), Settlement::Allowed, expires);
                }
            }
            Decision::Allow { scope: GrantSpan::Once, ttl, .. } if !used => {
                let expires = ttl.map(|ttl| Instant::now() + ttl);
                self.grants.add(access, None, Settlement::Allowed, expires);
            }
            Decision::Answer { content } if !used => {
                self.grants.add(access, None, Settlement::Answered(content.clone()), None);
            }
            _ => {}
        }
    }
}

/// Whether an agent waited for an access in vain, and is still there.
fn is_too_late(entry: &BoardEntry) -> bool {
    entry.access.status == BlockedStatus::Expired && entry.access.ended.is_some()
}

/// Whether a decision applies to accesses that a pattern of `denied` matches.
fn opens_denied(decision: &Decision, by: &Decider) -> bool {
    matches!(decision, Decision::Deny { .. }) || by.insists()
}

/// A request that waited, and got the decision.
struct SettledWaiter {
    via: Via,
    caller: Option<u32>,
    is_for_folder: bool,
}

/// Settles one undecided entry; returns the requests that waited and got the decision.
fn settle(
    entry: &mut BoardEntry,
    decision: &Decision,
    by: DecidedBy,
    record: &dyn Fn(&BlockedAccess),
    bus: &Bus,
) -> Vec<SettledWaiter> {
    entry.decided = true;
    let (status, settlement) = match decision {
        Decision::Allow { .. } | Decision::Tell { .. } => {
            (BlockedStatus::Allowed, Settlement::Allowed)
        }
        Decision::Answer { content } => {
            (BlockedStatus::Answered, Settlement::Answered(content.clone()))
        }
        Decision::Deny { message } => (
            BlockedStatus::Denied,
            Settlement::Denied {
                id: entry.access.id.clone(),
                owners: entry.access.owners.clone(),
                message: message.clone(),
            },
        ),
    };
    let got = entry.waiters.drain(..).filter_map(|waiter| {
        let Waiter { via, caller, is_for_folder, settle, .. } = waiter;
        settle.send(settlement.clone()).ok()?;
        Some(SettledWaiter { via, caller, is_for_folder })
    });
    let got = got.collect();
    entry.access.status = status;
    (entry.access.until_ms, entry.access.ended, entry.access.offered) = (None, None, None);
    entry.access.decided_by = Some(by);
    entry.access.message = match decision {
        Decision::Deny { message: Some(message) } => Some(beginning(message).into()),
        _ => None,
    };
    record(&entry.access);
    // Also where the status stays: others see that it is decided, and by whom.
    bus.publish(Event::Blocked(entry.access.clone()));
    got
}

/// The part of a message to an agent that the access keeps.
fn beginning(message: &str) -> String {
    let end = message.floor_char_boundary(LONGEST_MESSAGE);
    let more = if end < message.len() { "…" } else { "" };
    format!("{}{more}", &message[..end])
}

/// A decision for the journal.
fn decided(settled: &BlockedAccess, decision: &Decision) -> Event {
    let (scope, ttl, pattern) = decision.opening().unwrap_or((GrantSpan::Once, None, None));
    let pattern = pattern.cloned();
    let message = match decision {
        Decision::Deny { message } => message.clone(),
        _ => None,
    };
    let access = settled.clone();
    let key = access.key.clone();
    let record = Record::Decided(Box::new(Decided { access, message, scope, ttl, pattern }));
    Event::Record { key, record, turn: None, timestamp_ms: now_ms() }
}
