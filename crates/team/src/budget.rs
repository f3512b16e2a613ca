//! The cost of the agents' model calls, and its limits: the prices of models, the team's budget and each
//! agent's. Knows no sockets, and no protocol.
//!
//! A relay reports to its agent's [`Account`]; a prompt reserves its share there before it is sent,
//! which its turn's end settles. [`Budgets::run`] looks after what changes with time.

mod account;
mod ledger;
mod prices;
mod team;
mod underway;
mod window;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use self::team::TeamBudgets;
use crate::bus::Bus;
use crate::model::{AgentId, BudgetLimits, BudgetReport, EarlierUse, Event, now_ms};

pub use account::{Account, Reservation};
pub use ledger::Settings;
pub use prices::PriceList;
pub use team::{AgentSettings, BudgetStanding};

/// How often a budget is published at most while it only fills.
const PACE: Duration = Duration::from_secs(1);

/// The budgets of a team; cheap to clone.
#[derive(Clone)]
pub struct Budgets(Arc<Books>);

struct Books {
    prices: PriceList,
    /// None: nobody follows.
    bus: Option<Bus>,
    /// Locked only for short calculations.
    team: Mutex<TeamBudgets>,
    /// A turn ended, or a limit was raised.
    room: Notify,
    /// Something changed that time matters for.
    changed: Notify,
}

impl Budgets {
    pub fn new(prices: PriceList, bus: Bus) -> Self {
        Self::with_bus(prices, Some(bus))
    }

    fn with_bus(prices: PriceList, bus: Option<Bus>) -> Self {
        let (room, changed) = (Notify::new(), Notify::new());
        Self(Arc::new(Books { prices, bus, team: Mutex::new(TeamBudgets::new()), room, changed }))
    }

    /// Takes the budgets of a configuration; agents that are not in it are forgotten.
    pub fn configure(
        &self,
        lead: Option<AgentId>,
        team: Settings,
        agents: impl IntoIterator<Item = AgentSettings>,
    ) {
        self.change(|budgets, now| budgets.configure(now, lead, team, agents));
        self.made_room();
    }

    pub fn account(&self, agent: &AgentId, model: Option<Arc<str>>) -> Account {
        Account::new(self.clone(), agent.clone(), model)
    }

    /// Sets new totals of an agent's budget, or of the team's; those that are None stay. None if
    /// there is no such agent.
    pub fn raise(&self, agent: Option<&AgentId>, totals: BudgetLimits) -> Option<BudgetReport> {
        if agent.is_some_and(|agent| !self.with(|team, _| team.agent_is_known(agent))) {
            return None;
        }
        let mut raised = None;
        self.change(|team, now| {
            let changed = team.raise(now, agent, totals);
            raised = changed.iter().find(|report| report.agent.as_ref() == agent).cloned();
            changed
        });
        self.made_room();
        raised
    }

    /// Counts what was used before this process was started, oldest first, until [`Self::resumed`].
    pub fn count_earlier(&self, earlier: &EarlierUse) {
        let age = Duration::from_millis(now_ms().saturating_sub(earlier.timestamp_ms));
        self.with(|team, now| team.count_earlier(now, age, earlier));
    }

    /// All that was used before is counted.
    pub fn resumed(&self) {
        self.change(TeamBudgets::settle);
    }

    /// All budgets that have limits, the team's first.
    pub fn reports(&self) -> Vec<BudgetReport> {
        self.with(TeamBudgets::reports)
    }

    /// Whether an agent has a parent, out of whose budget it works.
    pub fn is_helper(&self, agent: &AgentId) -> bool {
        self.with(|team, _| team.is_helper(agent))
    }

    /// Looks after what changes with time, until `cancel`.
    pub async fn run(self, cancel: CancellationToken) {
        let mut last = Instant::now();
        loop {
            let next = self.with(|team, now| {
                let paced = team.is_dirty().then(|| last + PACE);
                [team.next(now), paced].into_iter().flatten().min()
            });
            tokio::select! {
                () = cancel.cancelled() => return,
                () = self.0.changed.notified() => continue,
                () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
            }
            self.change(TeamBudgets::settle);
            self.made_room();
            if last.elapsed() >= PACE {
                last = Instant::now();
                self.publish(self.with(TeamBudgets::dirty));
            }
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut TeamBudgets, Instant) -> T) -> T {
        work(&mut self.0.team.lock(), Instant::now())
    }

    /// Changes the budgets, and publishes those that stand differently now.
    fn change(&self, work: impl FnOnce(&mut TeamBudgets, Instant) -> Vec<BudgetReport>) {
        let changed = self.with(work);
        self.publish(changed);
        self.0.changed.notify_one();
    }

    fn publish(&self, reports: Vec<BudgetReport>) {
        let Some(bus) = &self.0.bus else { return };
        for report in reports {
            bus.publish(Event::Budget(report));
        }
    }

    fn made_room(&self) {
        self.0.room.notify_waiters();
    }

    fn room(&self) -> Notified<'_> {
        self.0.room.notified()
    }

    fn prices(&self) -> &PriceList {
        &self.0.prices
    }
}

/// Without prices, limits and followers.
impl Default for Budgets {
    fn default() -> Self {
        Self::with_bus(PriceList::default(), None)
    }
}

impl fmt::Debug for Budgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budgets").finish_non_exhaustive()
    }
}
