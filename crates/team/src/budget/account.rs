//! The account of one agent: where its relay reports what its model calls take, and where its
//! prompts get their share of a budget.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use super::team::{BudgetStanding, TurnNumber};
use super::{Budgets, ledger::NoRoom};
use crate::model::{AgentId, Charge, Figure, SessionId, Spending, TokenKind, Tokens};

/// Cheap to clone.
#[derive(Clone)]
pub struct Account {
    budgets: Budgets,
    agent: AgentId,
    /// The model of reports that name none.
    model: Option<Arc<str>>,
}

/// A share of the budgets for one prompt, given back when it is dropped before the prompt is sent;
/// after that with the turn.
#[must_use]
pub struct Reservation {
    account: Account,
    turn: TurnNumber,
}

impl Account {
    pub(super) fn new(budgets: Budgets, agent: AgentId, model: Option<Arc<str>>) -> Self {
        Self { budgets, agent, model }
    }

    /// The account of an agent without a team: nothing limits it, and nothing is priced.
    pub fn unlimited(agent: AgentId) -> Self {
        Self::new(Budgets::default(), agent, None)
    }

    /// Counts a report, and adds the cost where its agent does not say it.
    pub fn spend(&self, session: &SessionId, report: &mut Spending) {
        if report.model.is_none() {
            report.model.clone_from(&self.model);
        }
        if let (Some(tokens), Some(Charge::Unknown)) = (&report.tokens, &report.cost) {
            let model = report.model.as_deref().unwrap_or_default();
            if let Some(cost) = self.budgets.prices().cost(model, tokens) {
                report.cost = Some(Charge::Estimated(cost));
            }
        }
        self.budgets.change(|team, now| team.spend(now, &self.agent, session, report));
    }

    /// Notes what the session's running turn used by an estimate, before it is reported.
    pub fn foresee(&self, session: &SessionId, (least, most): (u64, u64), model: Option<&str>) {
        let mut tokens = Tokens::default();
        tokens.set(TokenKind::Total, Figure::Estimated { least, most });
        let model = model.or(self.model.as_deref()).unwrap_or_default();
        let cost =
            self.budgets.prices().cost(model, &tokens).map_or(Charge::Unknown, Charge::Estimated);
        let report = Spending { model: None, tokens: Some(tokens), cost: Some(cost) };
        self.budgets.change(|team, now| team.foresee(now, &self.agent, session, &report));
    }

    pub fn turn_began(&self, session: &SessionId) {
        self.budgets.change(|team, now| team.turn_began(now, &self.agent, session));
    }

    pub fn turn_ended(&self, session: &SessionId) {
        self.budgets.change(|team, now| team.turn_ended(now, &self.agent, session));
        self.budgets.made_room();
    }

    /// Why its prompts are refused now.
    pub fn refusal(&self) -> Option<Arc<str>> {
        self.budgets.with(|team, _| team.refusal(&self.agent))
    }

    /// How it stands with the budgets.
    pub fn standing(&self) -> watch::Receiver<BudgetStanding> {
        self.budgets.with(|team, _| team.standing(&self.agent))
    }

    /// Waits until the budgets have room for one more turn; an error is why they have none. A turn of
    /// the orchestrator may wait for a prompt that is made `by_lead`.
    pub async fn reserve(&self, by_lead: bool) -> Result<Reservation, Arc<str>> {
        loop {
            let room = self.budgets.room();
            tokio::pin!(room);
            // From here on no change is missed.
            room.as_mut().enable();
            match self.budgets.with(|team, now| team.reserve(now, &self.agent, by_lead)) {
                Ok(turn) => return Ok(Reservation { account: self.clone(), turn }),
                Err(NoRoom::Exceeded(reason)) => return Err(reason),
                Err(NoRoom::Wait) => room.await,
            }
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.account.budgets.with(|team, _| team.withdraw(self.turn));
        self.account.budgets.made_room();
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("agent", &self.agent).finish_non_exhaustive()
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("turn", &self.turn).finish_non_exhaustive()
    }
}
