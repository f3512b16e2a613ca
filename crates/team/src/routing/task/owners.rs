//! Puts accesses before the owners of their paths, where a rule says so, and gives the answers.

use tokio_util::sync::CancellationToken;

use super::Task;
use super::queue::is_for_person;
use super::requests::{asks_orchestrator, decided_by_rule, until_ms};
use crate::model::{AccessRule, BlockedId, BlockedStatus, Decide, DecidedBy, Event, OwnerAnswer};
use crate::routing::grants::Allowed;
use crate::routing::owners::OwnerQuestion;
use crate::routing::{Decider, Decision, Settlement};
use crate::tasks::WaitGuard;

impl Task {
    /// Asks the owner of an access that is held for it.
    pub(super) fn ask_owner(&mut self, id: &BlockedId) {
        let Some(access) = self.board.get(id).map(|entry| entry.access.clone()) else { return };
        let asker = access.key.agent;
        let Some(zone) = self.settings.rules.zones.get(&asker) else {
            return self.goes_on_without_owner(id, "the agent has no zone here");
        };
        let withdrawn = CancellationToken::new();
        let question = OwnerQuestion {
            id: id.clone(),
            owners: access.owners.into_iter().filter(|owner| *owner != asker).collect(),
            asker,
            file: zone.workspace().join(&*access.path),
            path: access.path,
            reason: access.reason,
            withdrawn: withdrawn.clone(),
        };
        match self.asked.try_send(question) {
            Ok(()) => {
                if let Some(held) = self.held.get_mut(id) {
                    held.question = Some(withdrawn.drop_guard());
                }
            }
            Err(_) => self.goes_on_without_owner(id, "too many questions wait for owners"),
        }
    }

    /// Gives an owner's answer to the asker, unless the access was decided meanwhile.
    pub(super) fn owner_answered(
        &mut self,
        id: &BlockedId,
        answer: Result<(OwnerAnswer, String), String>,
    ) {
        let Some(entry) = self.board.get(id).filter(|entry| !entry.decided) else { return };
        let (answer, text) = match answer {
            Ok(answer) => answer,
            Err(why) => return self.goes_on_without_owner(id, &why),
        };
        let owner = answer.owner.clone();
        let decision = if entry.access.is_answerable() {
            Decision::Answer { content: text }
        } else {
            // A program can't be given an answer: it comes with the denial.
            Decision::Deny { message: Some(format!("its owner, `{owner}`, answers: {text}")) }
        };
        self.board.change(id, |entry| entry.access.owner_answer = Some(answer));
        let decided = self.resolve(id, &decision, &Decider::Agent(owner), None);
        if let Err(error) = decided {
            tracing::debug!(%error, %id, "an owner's answer came to nothing");
        }
    }

    /// Has an access whose owner does not answer go on by the next rule, or as without rules.
    fn goes_on_without_owner(&mut self, id: &BlockedId, why: &str) {
        let Some(entry) = self.board.get(id) else { return };
        let access = entry.access.clone();
        if entry.decided || access.status != BlockedStatus::Pending {
            return;
        }
        let rule = self.rule_now(entry, || false);
        let agent = &access.key.agent;
        let holds = match rule.map(|rule| rule.decide) {
            Some(Decide::Orchestrator | Decide::Person) => true,
            Some(_) => false,
            None => self.settings.rules.holds(agent),
        };
        if rule.is_some_and(|rule| rule.decide == Decide::Allow) {
            self.grants.grant_system_calls(&Allowed::of(&access, access.via, false));
            return self.settle_now(id, rule, BlockedStatus::Allowed, &Settlement::Allowed);
        }
        let mut message = format!("Its owner could not be asked: {why}.");
        if holds
            && !self.is_for_nobody(rule)
            && !(asks_orchestrator(rule) && self.would_deadlock(agent))
        {
            match self.begin_wait(agent, rule) {
                Ok(wait) => return self.hold_on(id, rule, wait),
                Err(circle) => message = format!("It is not held: {circle}."),
            }
        }
        self.note(&access, &message);
        let denial = self.denial(id, Some(message));
        self.settle_now(id, rule, BlockedStatus::Denied, &denial);
    }

    /// Holds an access for another decider than the owner, from now on.
    fn hold_on(&mut self, id: &BlockedId, rule: Option<AccessRule>, wait: Option<WaitGuard>) {
        let deadline = self.deadline(rule);
        if let Some(held) = self.held.get_mut(id) {
            (held.question, held.wait) = (None, wait);
            held.deadline.send_replace(deadline);
        }
        let orchestrator = self.orchestrator().filter(|_| asks_orchestrator(rule));
        let changed = self.board.change(id, |entry| {
            entry.access.rule = rule;
            entry.access.until_ms = until_ms(deadline, entry.gives_up);
            entry.access.orchestrator = orchestrator;
            entry.access.clone()
        });
        let Some(access) = changed else { return };
        if is_for_person(&access) {
            self.publish_queue();
        }
        self.bus.publish(Event::Blocked(access));
        self.route(id);
    }

    /// Settles an access by a rule, or for want of one. A denied one may still be allowed for the
    /// next try.
    fn settle_now(
        &mut self,
        id: &BlockedId,
        rule: Option<AccessRule>,
        status: BlockedStatus,
        settlement: &Settlement,
    ) {
        let changed = self.board.change(id, |entry| {
            entry.access.rule = rule;
            entry.access.status = status;
            entry.access.decided_by = match status {
                BlockedStatus::Allowed => Some(DecidedBy::Rule),
                _ => decided_by_rule(rule),
            };
            entry.decided = status == BlockedStatus::Allowed;
            for waiter in entry.waiters.drain(..) {
                let _ = waiter.settle.send(settlement.clone());
            }
            entry.access.clone()
        });
        if let Some(access) = changed {
            self.bus.publish(Event::Blocked(access));
        }
    }
}
