//! Puts accesses before the owners of their paths, where a rule says so, and gives the answers.

use tokio_util::sync::CancellationToken;

use super::Task;
use super::queue::is_for_person;
use super::requesting::asks_orchestrator;
use crate::model::{BlockedId, BlockedStatus, Decide, Event, OwnerAnswer};
use crate::routing::owners::OwnerQuestion;
use crate::routing::{Decider, Decision, RuledAccess, Settlement};

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
            Ok(()) => drop(self.questions.insert(id.clone(), withdrawn.drop_guard())),
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
        let decided = self.resolve(id, &decision, &Decider::Agent(owner));
        if let Err(error) = decided {
            tracing::debug!(%error, %id, "an owner's answer came to nothing");
        }
    }

    /// Has an access whose owner does not answer go on by the next rule, or as without rules.
    fn goes_on_without_owner(&mut self, id: &BlockedId, why: &str) {
        self.questions.remove(id);
        let Some(entry) = self.board.get(id) else { return };
        let (access, agent) = (&entry.access, &entry.access.key.agent);
        if entry.decided || access.status != BlockedStatus::Pending {
            return;
        }
        let rule = self.settings.rules.routing.first(&RuledAccess::from(access), || false);
        let holds = match rule.map(|rule| rule.decide) {
            Some(Decide::Orchestrator | Decide::Person) => true,
            Some(_) => false,
            None => self.settings.rules.holds(agent),
        };
        if holds && !(asks_orchestrator(rule) && self.would_deadlock(agent)) {
            let orchestrator = self.orchestrator().filter(|_| asks_orchestrator(rule));
            let changed = self.board.change(id, |entry| {
                entry.access.rule = rule;
                entry.access.orchestrator = orchestrator;
                entry.access.clone()
            });
            let Some(access) = changed else { return };
            if is_for_person(&access) {
                self.publish_queue();
            }
            self.bus.publish(Event::Blocked(access));
            return self.route(id);
        }
        let message = format!("Its owner could not be asked: {why}.");
        let (status, settlement) = match rule.map(|rule| rule.decide) {
            Some(Decide::Allow) => (BlockedStatus::Allowed, Settlement::Allowed),
            _ => (BlockedStatus::Denied, self.denial(id, Some(message.clone()))),
        };
        let changed = self.board.change(id, |entry| {
            entry.access.rule = rule;
            entry.access.status = status;
            if let Some(settle) = entry.settle.take() {
                let _ = settle.send(settlement);
            }
            entry.access.clone()
        });
        let Some(access) = changed else { return };
        if status == BlockedStatus::Denied {
            self.note(&access, &message);
        }
        self.bus.publish(Event::Blocked(access));
    }
}
