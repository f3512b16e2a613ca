//! Owns the methods of budgets.

use super::{MethodCall, Reply, reply};
use crate::model::{AgentId, BudgetLimits};
use crate::serve::Refused;
use crate::wire::{self, Empty, ListBudgets, RaiseBudget, RaiseBudgetParams};

/// The highest totals: of tokens and turns, of a cost, and of minutes.
const MOST: u64 = 1_000_000_000_000_000;
const MOST_COST: f64 = 1e12;
const MOST_MINUTES: u64 = 366 * 24 * 60;

pub(super) async fn list_budgets(
    call: MethodCall<'_>,
    _: Empty,
) -> Result<Reply<ListBudgets>, Refused> {
    let shared = call.shared;
    reply(&shared.team.budgets().iter().map(wire::Budget::from).collect::<Vec<_>>())
}

pub(super) async fn raise_budget(
    call: MethodCall<'_>,
    params: RaiseBudgetParams,
) -> Result<Reply<RaiseBudget>, Refused> {
    let shared = call.shared;
    let params = &params;
    let RaiseBudgetParams { agent_id, tokens, cost, turns, minutes } = params;
    let totals = BudgetLimits { tokens: *tokens, cost: *cost, turns: *turns, minutes: *minutes };
    if !totals.are_set() {
        return Err(Refused::wrong("one of `tokens`, `cost`, `turns` and `minutes` must be given"));
    }
    let counts =
        [("tokens", tokens, MOST), ("turns", turns, MOST), ("minutes", minutes, MOST_MINUTES)];
    for (name, total, most) in counts {
        if total.is_some_and(|total| total == 0 || total > most) {
            return Err(Refused::wrong(format!("`{name}` must be from 1 to {most}")));
        }
    }
    if cost.is_some_and(|cost| !(cost > 0.0 && cost <= MOST_COST)) {
        return Err(Refused::wrong("`cost` must be more than 0 and at most 10^12"));
    }
    let agent = agent_id.as_deref().map(AgentId::new);
    let report = shared.team.raise_budget(agent.as_ref(), totals)?;
    reply(&wire::Budget::from(&report))
}
