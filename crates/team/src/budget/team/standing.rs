//! How agents stand with their budgets, found anew after each report and as time passes.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::time::Instant;

use super::super::underway::Underway;
use super::TeamBudgets;
use crate::model::{AgentId, BudgetReport, OnExceed};

/// How an agent stands with its budget and the team's.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BudgetStanding {
    /// Why its prompts are refused.
    pub refusal: Option<Arc<str>>,
    /// The order to its running turns, if any.
    pub cut: Option<OnExceed>,
}

impl TeamBudgets {
    /// Looks at all budgets after time has passed.
    pub(in crate::budget) fn settle(&mut self, now: Instant) -> Vec<BudgetReport> {
        self.count_time(now);
        let mut changed = Vec::new();
        if !self.is_limited {
            return changed;
        }
        let underway = self.underway(None, &[]);
        let is_new = self.team.update(now, underway);
        if is_new {
            changed.extend(self.report(now, None));
        }
        let team = self.team.is_limited().then(|| self.team.reason().cloned()).flatten();
        let team_cuts = self.team.cuts(now, underway).then(|| self.team.on_exceed());
        let mut by_agent: HashMap<AgentId, Underway> = HashMap::new();
        for turn in self.turns.values() {
            for (place, of) in std::iter::once(&turn.agent).chain(&turn.above).enumerate() {
                by_agent.entry(of.clone()).or_default().add(turn, place + 1, false);
            }
        }
        let agents: Vec<_> = self.agents.keys().cloned().collect();
        let mut own = HashMap::new();
        for agent in &agents {
            let underway = by_agent.get(agent).copied().unwrap_or_default();
            let ledger = &mut self.agent(agent).ledger;
            let is_new = ledger.update(now, underway);
            let cut = ledger.cuts(now, underway).then(|| ledger.on_exceed());
            own.insert(agent.clone(), BudgetStanding { refusal: ledger.reason().cloned(), cut });
            if is_new {
                changed.extend(self.report(now, Some(agent)));
            }
        }
        for agent in agents {
            // The nearest budget that is used up is the reason.
            let chain = self.chain(&agent);
            let of: Vec<_> = chain.iter().filter_map(|of| own.get(of)).collect();
            let refusal = of.iter().find_map(|of| of.refusal.as_ref()).or(team.as_ref()).cloned();
            let cut = of.iter().map(|of| of.cut).max().flatten().max(team_cuts);
            let standing = BudgetStanding { refusal, cut };
            self.agent(&agent).standing.send_if_modified(|known| {
                let is_new = *known != standing;
                *known = standing;
                is_new
            });
        }
        changed
    }
}
