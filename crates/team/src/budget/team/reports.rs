//! The reports of the budgets, and the next time when one stands differently without a report.

use tokio::time::Instant;

use super::TeamBudgets;
use crate::model::{AgentId, BudgetReport};

impl TeamBudgets {
    /// The budgets that changed since they were last reported.
    pub(in crate::budget) fn dirty(&mut self, now: Instant) -> Vec<BudgetReport> {
        let agents = self.agents.iter().filter(|(_, it)| it.ledger.is_dirty);
        let agents: Vec<_> = agents.map(|(agent, _)| agent.clone()).collect();
        let team = self.team.is_dirty.then(|| self.report(now, None)).flatten();
        let agents = agents.iter().filter_map(|agent| self.report(now, Some(agent)));
        let agents: Vec<_> = agents.collect();
        team.into_iter().chain(agents).collect()
    }

    pub(in crate::budget) fn is_dirty(&self) -> bool {
        self.team.is_dirty && self.team.is_limited()
            || self.agents.values().any(|it| it.ledger.is_dirty && it.ledger.is_limited())
    }

    /// All budgets that have limits, the team's first.
    pub(in crate::budget) fn reports(&mut self, now: Instant) -> Vec<BudgetReport> {
        self.count_time(now);
        let mut agents: Vec<_> = self.agents.keys().cloned().collect();
        agents.sort();
        let agents = agents.iter().map(Some);
        std::iter::once(None).chain(agents).filter_map(|of| self.report(now, of)).collect()
    }

    /// When a budget stands differently without another report.
    pub(in crate::budget) fn next(&mut self, now: Instant) -> Option<Instant> {
        if !self.is_limited {
            return None;
        }
        let running = |budgets: &Self, of: Option<&AgentId>| {
            u32::try_from(budgets.running(of)).unwrap_or(u32::MAX)
        };
        let all = running(self, None);
        let mut next = self.team.next(now, all);
        let agents: Vec<_> = self.agents.keys().cloned().collect();
        for agent in agents {
            let own = running(self, Some(&agent));
            next = [next, self.agent(&agent).ledger.next(now, own)].into_iter().flatten().min();
        }
        next
    }

    /// None for a budget without limits.
    pub(super) fn report(&mut self, now: Instant, of: Option<&AgentId>) -> Option<BudgetReport> {
        let underway = self.underway(of, &[]);
        let ledger = match of {
            Some(agent) => &mut self.agents.get_mut(agent)?.ledger,
            None => &mut self.team,
        };
        ledger.is_dirty = false;
        ledger.is_limited().then(|| ledger.report(now, underway))
    }
}
