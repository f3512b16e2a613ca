//! The orchestrator's merged view: a session on the wire with the nodes and tokens of the whole
//! team. Applies the sessions' changes; does not know when sessions open or close.

use std::sync::Arc;

use super::heat::Changes;
use super::merge::Merge;
use super::session::{LastShown, delta};
use crate::bus::Rendered;
use crate::model::{
    AgentId, Delta, SessionId, SessionKey, SessionMode, Snapshot, Spent, Usage, UsageReport,
};

#[derive(Debug)]
pub(super) struct View {
    /// The session that shows it.
    key: SessionKey,
    /// The agent whose sessions may show it; None if it has its own session.
    designated: Option<AgentId>,
    /// Number of the last delta of `key`.
    seq: u64,
    pub(super) merge: Merge,
    /// Accesses dropped because an agent's maps were full.
    pub(super) omitted: u64,
    usage: Option<Usage>,
    spent: Spent,
    shown: LastShown,
}

impl View {
    /// In a session of its own.
    pub(super) fn external(key: SessionKey) -> Self {
        Self {
            key,
            designated: None,
            seq: 0,
            merge: Merge::default(),
            omitted: 0,
            usage: None,
            spent: Spent::default(),
            shown: LastShown::default(),
        }
    }

    /// In a session of `agent`, once it is open.
    pub(super) fn designated(agent: AgentId) -> Self {
        let key = unopened(&agent);
        Self { designated: Some(agent), ..Self::external(key) }
    }

    pub(super) fn key(&self) -> &SessionKey {
        &self.key
    }

    pub(super) fn seq(&self) -> u64 {
        self.seq
    }

    /// The session to move to when the current one ends; None if the view stays.
    pub(super) fn fallback(&self) -> Option<SessionKey> {
        self.designated.as_ref().map(unopened)
    }

    /// Whether the view may move to `key`.
    pub(super) fn may_move_to(&self, key: &SessionKey) -> bool {
        self.designated.as_ref() == Some(&key.agent) && self.key != *key
    }

    /// Whether `key` is the session that the view waits for.
    pub(super) fn waits_for(&self, key: &SessionKey) -> bool {
        self.may_move_to(key) && self.key == unopened(&key.agent)
    }

    /// Moves to another session with its last delta number. Call [`Self::withdraw`] first.
    pub(super) fn move_to(&mut self, key: SessionKey, seq: u64) {
        self.key = key;
        self.seq = seq;
        self.shown = LastShown::default();
    }

    /// Returns the delta of the sessions' changes.
    pub(super) fn flush(&mut self) -> Option<Delta> {
        let changes = self.merge.flush();
        self.delta(changes)
    }

    /// Removes all published nodes.
    pub(super) fn withdraw(&mut self) -> Option<Delta> {
        let changes = self.merge.withdraw();
        self.delta(changes)
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            key: self.key.clone(),
            mode: SessionMode::Orchestrator,
            seq: self.seq,
            nodes: self.merge.nodes(),
            omitted: self.omitted,
        }
    }

    pub(super) fn shared_snapshot(&mut self) -> Arc<Rendered<Snapshot>> {
        let mut shown = std::mem::take(&mut self.shown);
        let snapshot = shown.at(self.seq, || self.snapshot());
        self.shown = shown;
        snapshot
    }

    pub(super) fn usage(&self) -> Option<UsageReport> {
        if self.usage.is_none() && !self.spent.is_known() {
            return None;
        }
        let (usage, spent) = (self.usage.clone(), self.spent.clone());
        Some(UsageReport { key: self.key.clone(), mode: SessionMode::Orchestrator, usage, spent })
    }

    /// Sums the sessions' usages, beside what the team spent; None if neither changed.
    pub(super) fn sum<'a>(
        &mut self,
        usages: impl Iterator<Item = &'a Usage>,
        spent: &Spent,
    ) -> Option<UsageReport> {
        // After the last session with a usage closed, publish a sum of zero.
        let gone = || self.usage.as_ref().map(|_| Usage { used: 0, size: 0, cost: None });
        let total = total(usages).or_else(gone);
        if total == self.usage && *spent == self.spent {
            return None;
        }
        (self.usage, self.spent) = (total, spent.clone());
        self.usage()
    }

    fn delta(&mut self, changes: Changes) -> Option<Delta> {
        if changes.is_empty() {
            return None;
        }
        self.seq += 1;
        Some(delta(&self.key, SessionMode::Orchestrator, self.seq, changes))
    }
}

/// The placeholder for the session that `agent` has not opened yet.
fn unopened(agent: &AgentId) -> SessionKey {
    SessionKey::new(agent.clone(), SessionId::new(""))
}

/// None without usages. Costs in several currencies have no sum.
fn total<'a>(usages: impl Iterator<Item = &'a Usage>) -> Option<Usage> {
    let mut total = None;
    let mut currencies_differ = false;
    for usage in usages {
        let total = total.get_or_insert(Usage { used: 0, size: 0, cost: None });
        total.used = total.used.saturating_add(usage.used);
        total.size = total.size.saturating_add(usage.size);
        match (&mut total.cost, &usage.cost) {
            (Some(sum), Some(cost)) if sum.currency == cost.currency => sum.amount += cost.amount,
            (Some(_), Some(_)) => currencies_differ = true,
            (None, Some(cost)) => total.cost = Some(cost.clone()),
            (_, None) => {}
        }
    }
    total.map(|total| Usage { cost: total.cost.filter(|_| !currencies_differ), ..total })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Cost;

    #[test]
    fn tokens_add_up_and_so_does_money_of_one_currency() {
        let in_currency = |currency: &str, amount| Cost { amount, currency: currency.into() };
        let (usd, eur) = (|amount| in_currency("USD", amount), |amount| in_currency("EUR", amount));
        for (costs, sum) in [
            (vec![None, None], None),
            (vec![None, Some(usd(0.5))], Some(usd(0.5))),
            (vec![Some(usd(0.5)), Some(usd(0.25))], Some(usd(0.75))),
            (vec![Some(usd(0.5)), Some(eur(0.5))], None),
            (vec![Some(usd(0.5)), Some(eur(0.5)), Some(usd(0.5))], None),
        ] {
            let usages: Vec<_> =
                costs.into_iter().map(|cost| Usage { used: 1, size: 10, cost }).collect();
            let count = usages.len() as u64;
            let expected = Usage { used: count, size: count * 10, cost: sum };
            assert_eq!(total(usages.iter()), Some(expected), "{usages:?}");
        }
        assert_eq!(total([].iter()), None);
        let huge = Usage { used: u64::MAX, size: u64::MAX, cost: None };
        assert_eq!(total([&huge, &huge].into_iter()), Some(huge.clone()));
    }
}
