//! `budget`: what agents may spend, and new totals.

use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use super::output::{plain, print};
use super::team::{AtHost, Which, failed};
use super::{Global, format};
use crate::program::Failure;
use crate::serve::client::ClientError;
use crate::wire::{Budget, Empty, ListBudgets, RaiseBudget, RaiseBudgetParams};

/// Show the budgets of a running team, or set new totals
///
/// A budget limits what an agent, or the whole team, may spend; `[budget]` and `[agents.budget]` of the
/// configuration set it. Once it is used up, prompts are refused. New totals count from the start of
/// the run, as the old ones, and are not kept over it. While turns run, a line says by how much they
/// may pass the total: by one report of what model calls took each, the largest so far.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core team budget                        all budgets, and what is used of them
  eisen-core team budget ui --tokens 8000000    a new total for an agent
  eisen-core team budget --team-wide --cost 50  for the whole team
  eisen-core team budget --team hub --host a --team-wide --cost 50
                                                at a hub, for the team of one host

Exit codes: 0 done, 1 no such team or agent, or not permitted, 2 wrong usage.")]
pub(super) struct BudgetArgs {
    /// Only this agent's budget
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    /// The budget of the whole team
    #[arg(long, conflicts_with = "agent")]
    team_wide: bool,
    /// New total of tokens
    #[arg(long, value_name = "N")]
    tokens: Option<u64>,
    /// New total of money, in the budget's currency
    #[arg(long, value_name = "AMOUNT")]
    cost: Option<f64>,
    /// New total of turns
    #[arg(long, value_name = "N")]
    turns: Option<u64>,
    /// New total of minutes in which turns run
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Print the budgets as JSON, on one line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    at: AtHost,
}

impl BudgetArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let mut team = self.which.connect(global).await?;
        let totals = self.totals();
        let answers = if let Some(totals) = &totals {
            if self.agent.is_none() && !self.team_wide {
                let why = "say whose total it is: name an agent, or give --team-wide";
                return Err(Failure::Usage(anyhow::anyhow!(why)));
            }
            let budget = self.at.ask::<RaiseBudget>(&mut team, totals).await;
            vec![self.at.with_host(budget.map_err(failed)?.json)]
        } else {
            let all = self.at.ask::<ListBudgets>(&mut team, &Empty {}).await.map_err(failed)?;
            all.json.as_array().cloned().unwrap_or_default()
        };
        let mut budgets = Vec::new();
        for answer in answers {
            let budget = ListedBudget::deserialize(&answer);
            let budget = budget.map_err(|error| failed(ClientError::Answer(error)))?;
            if totals.is_some() || self.means(&budget) {
                budgets.push((answer, budget));
            }
        }
        if self.json {
            return print(Value::Array(budgets.into_iter().map(|(answer, _)| answer).collect()));
        }
        for (_, budget) in &budgets {
            let state = plain(budget.of.state.as_str());
            print(format_args!("{}: {state}, {}", budget.whose(), budget.used()))?;
            if let Some(reason) = &budget.of.reason {
                print(format_args!("    {}", plain(reason)))?;
            } else if let Some(past) = budget.may_pass() {
                print(format_args!("    {past}"))?;
            }
        }
        if budgets.is_empty() {
            print("no budget has a limit")?;
        }
        Ok(())
    }

    /// The new totals; None if there are none.
    fn totals(&self) -> Option<RaiseBudgetParams> {
        let Self { tokens, cost, turns, minutes, .. } = *self;
        let is_none = tokens.is_none() && cost.is_none() && turns.is_none() && minutes.is_none();
        let agent_id = self.agent.clone();
        (!is_none).then_some(RaiseBudgetParams {
            agent_id: agent_id.map(Into::into),
            tokens,
            cost,
            turns,
            minutes,
        })
    }

    fn means(&self, budget: &ListedBudget) -> bool {
        match &self.agent {
            Some(name) => budget.of.agent_id.as_ref().is_some_and(|agent| agent == name),
            None => !self.team_wide || budget.of.agent_id.is_none(),
        }
    }
}

/// A budget, as a team lists it or a hub.
#[derive(Deserialize)]
pub(super) struct ListedBudget {
    #[serde(flatten)]
    pub(super) of: Budget<'static>,
    /// At a hub.
    host: Option<String>,
}

impl ListedBudget {
    /// How far the turns that run may pass the limits.
    fn may_pass(&self) -> Option<String> {
        let Budget { running, tokens, cost, .. } = &self.of;
        let mut most = Vec::new();
        if *running == 0 {
            return None;
        }
        if tokens.limit.is_some() && tokens.largest > 0 {
            let largest = format::tokens(running.saturating_mul(tokens.largest));
            most.push(format!("{largest} tokens"));
        }
        if cost.limit.is_some() && cost.largest > 0.0 {
            // At most a thousand or so run.
            #[expect(clippy::cast_precision_loss, reason = "a number of turns")]
            most.push(format::money(*running as f64 * cost.largest, &plain(&cost.currency)));
        }
        let turns = if *running == 1 { "turn runs" } else { "turns run" };
        let most = (!most.is_empty()).then(|| most.join(", "))?;
        Some(format!("{running} {turns}: past it by {most} at most"))
    }

    /// The agent; `team`, or the host of a team at a hub.
    pub(super) fn whose(&self) -> String {
        match (&self.of.agent_id, &self.host) {
            (Some(agent), _) => plain(agent),
            (None, Some(host)) => format!("host {}", plain(host)),
            (None, None) => "team".to_owned(),
        }
    }

    pub(super) fn used(&self) -> String {
        used(&self.of)
    }
}

/// The used part of each limit.
pub(super) fn used(Budget { tokens, cost, turns, minutes, window_s, .. }: &Budget<'_>) -> String {
    let mut parts = Vec::new();
    if let Some(limit) = tokens.limit {
        let used = tokens.used.map_or("-".to_owned(), format::tokens);
        let about = if tokens.estimated { "~" } else { "" };
        let more = if tokens.unknown > 0 { "+" } else { "" };
        parts.push(format!("{about}{used}{more} of {} tokens", format::tokens(limit)));
    }
    if let Some(limit) = cost.limit {
        let used = cost.used.map_or("-".to_owned(), |used| format!("{used:.2}"));
        let more = if cost.unknown > 0 { "+" } else { "" };
        let limit = format::money(limit, &plain(&cost.currency));
        parts.push(format!("{used}{more} of {limit}"));
    }
    if let Some(limit) = turns.limit {
        parts.push(format!("{} of {limit} turns", turns.used));
    }
    if let Some(limit) = minutes.limit {
        parts.push(format!("{:.1} of {limit} minutes", minutes.used));
    }
    let within = window_s.map(|window| format!(" within {window} s"));
    format!("{}{}", parts.join(", "), within.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn the_most_that_running_turns_pass_a_total_by_is_said() {
        let may_pass = |running, tokens, cost| {
            let budget = json!({
                "agent_id": null, "state": "open", "running": running, "window_s": null,
                "on_exceed": "deny", "reason": null, "timestamp_ms": 0,
                "tokens": { "used": 0, "limit": 100, "reserved": 0, "largest": tokens,
                    "estimated": false, "unknown": 0 },
                "cost": { "used": 0.0, "limit": 1.0, "currency": "EUR", "reserved": 0.0,
                    "largest": cost, "unknown": 0 },
                "turns": { "used": 0, "limit": null },
                "minutes": { "used": 0.0, "limit": null },
            });
            ListedBudget::deserialize(budget).unwrap().may_pass()
        };
        let said = may_pass(3, 900, 0.5).unwrap_or_default();
        assert_eq!(said, "3 turns run: past it by 2.7k tokens, 1.50 EUR at most");
        let said = may_pass(1, 900, 0.0).unwrap_or_default();
        assert_eq!(said, "1 turn runs: past it by 900 tokens at most");
        // Nothing runs, or nothing is known.
        assert_eq!(may_pass(0, 900, 0.5), None);
        assert_eq!(may_pass(2, 0, 0.0), None);
    }
}
