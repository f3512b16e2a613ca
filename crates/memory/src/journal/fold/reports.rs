//! Events beside the turns: reports of agents, loops, budgets, conflicts.

use serde_json::json;

use super::{Fold, Row, place_of};
use crate::journal::event::{EventType, NewEvent, Place};
use crate::journal::payload::{BudgetPayload, CostUsed, TotalsPayload, UsedOf};
use crate::model::{
    AgentId, AgentReport, BudgetReport, Conflict, DecidedBy, LoopReport, OnLoop, SessionKey,
};

impl Fold {
    pub(super) fn report(&mut self, report: &AgentReport) {
        let kept = if self.keeps_texts() { &*report.text } else { "" };
        let payload = json!({ "text": kept, "bytes": report.text.len() });
        let place = Place::Agent(report.agent.clone());
        let event = NewEvent::new(place, EventType::REPORT, &payload).at(report.timestamp_ms);
        self.rows.push(Row::Event(event.found_by(kept)));
    }

    pub(super) fn looped(&mut self, report: &LoopReport) {
        let found = &report.found;
        // A title may be a command line, with all that is in it.
        let calls: Vec<_> =
            found.calls.iter().filter(|_| self.keeps_texts()).map(|it| &**it).collect();
        let payload = json!({
            "kind": found.kind.as_str(),
            "times": found.times,
            "calls": calls,
            "action": found.action.map(OnLoop::as_str),
        });
        let text = calls.join(" ");
        self.push_found(&report.key, EventType::LOOP, &payload, report.timestamp_ms, text);
    }

    /// Keeps a budget that stands differently, or has other limits; what fills it is in the sessions.
    pub(super) fn budget(&mut self, report: &BudgetReport) {
        let now = (report.state, report.limits);
        if self.budgets.insert(report.agent.clone(), now) == Some(now) {
            return;
        }
        let limits = report.limits;
        let configured = report.configured;
        let payload = BudgetPayload {
            state: report.state.as_str().to_owned(),
            reason: report.reason.as_deref().map(str::to_owned),
            tokens: UsedOf { used: report.tokens.known, limit: limits.tokens },
            cost: CostUsed {
                used: report.cost,
                limit: limits.cost,
                currency: report.currency.to_string(),
            },
            turns: UsedOf { used: report.turns, limit: limits.turns },
            minutes: UsedOf { used: report.minutes, limit: limits.minutes },
            window_s: report.window_s,
            on_exceed: report.on_exceed.as_str().to_owned(),
            configured: (configured != limits).then_some(TotalsPayload {
                tokens: configured.tokens,
                cost: configured.cost,
                turns: configured.turns,
                minutes: configured.minutes,
            }),
        };
        let place = report.agent.clone().map_or(Place::Team, Place::Agent);
        let event = NewEvent::new(place, EventType::BUDGET, &payload).at(report.timestamp_ms);
        let event = event.found_by(report.reason.as_deref().unwrap_or_default());
        self.rows.push(Row::Event(event));
    }

    pub(super) fn conflict(&mut self, conflict: &Conflict) {
        let agents: Vec<_> = conflict.agents.iter().map(AgentId::as_str).collect();
        let payload = json!({
            "id": conflict.id.as_str(),
            "path": &*conflict.path,
            "kind": conflict.kind.as_str(),
            "status": conflict.status.as_str(),
            "agents": agents,
            "message": &*conflict.message,
            "decided_by": conflict.decided_by.as_ref().map(DecidedBy::to_string),
        });
        let Some(writer) = conflict.agents.first() else { return };
        let key = SessionKey::new(writer.clone(), conflict.session.clone());
        let event = NewEvent::new(place_of(&key), EventType::CONFLICT, &payload);
        let event = event.at(conflict.timestamp_ms).found_by(&*conflict.path);
        self.rows.push(Row::Event(event));
    }
}
