//! `budget`: what agents may spend, and new totals.

use clap::Args;
use serde_json::{Map, Value, json};

use super::output::{plain, print};
use super::team::{AtHost, Which, failed};
use super::{Global, format};
use crate::app::Failure;

/// Show the budgets of a running team, or set new totals
///
/// A budget limits what an agent, or the whole team, may spend; `[budget]` and `[agents.budget]` of the
/// configuration set it. Once it is used up, prompts are refused. New totals count from the start of
/// the run, as the old ones, and are not kept over it. While turns run, a line says by how much they
/// may pass the total: by one report of what model calls took each, the largest so far.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core budget                        all budgets, and what is used of them
  eisen-core budget ui --tokens 8000000    a new total for an agent
  eisen-core budget --team-wide --cost 50  for the whole team
  eisen-core budget --team hub --host a --team-wide --cost 50
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
        let budgets = if totals.is_empty() {
            let all =
                team.call("list_budgets", &self.at.params(json!({}))).await.map_err(failed)?;
            let all = all.as_array().cloned().unwrap_or_default();
            all.into_iter().filter(|budget| self.means(&budget["agent_id"])).collect()
        } else {
            if self.agent.is_none() && !self.team_wide {
                let why = "say whose total it is: name an agent, or give --team-wide";
                return Err(Failure::Usage(anyhow::anyhow!(why)));
            }
            let mut params = self.at.params(Value::Object(totals));
            if let Some(agent) = &self.agent {
                params["agent_id"] = json!(agent);
            }
            let budget = team.call("raise_budget", &params).await.map_err(failed)?;
            vec![self.at.params(budget)]
        };
        if self.json {
            return print(Value::Array(budgets));
        }
        for budget in &budgets {
            let whose = whose(budget);
            let state = plain(budget["state"].as_str().unwrap_or_default());
            print(format_args!("{whose}: {state}, {}", used(budget)))?;
            if let Some(reason) = budget["reason"].as_str() {
                print(format_args!("    {}", plain(reason)))?;
            } else if let Some(past) = may_pass(budget) {
                print(format_args!("    {past}"))?;
            }
        }
        if budgets.is_empty() {
            print("no budget has a limit")?;
        }
        Ok(())
    }

    fn totals(&self) -> Map<String, Value> {
        let all = [
            ("tokens", self.tokens.map(Value::from)),
            ("cost", self.cost.map(Value::from)),
            ("turns", self.turns.map(Value::from)),
            ("minutes", self.minutes.map(Value::from)),
        ];
        all.into_iter().filter_map(|(name, total)| Some((name.to_owned(), total?))).collect()
    }

    fn means(&self, agent: &Value) -> bool {
        match &self.agent {
            Some(name) => agent.as_str() == Some(name),
            None => !self.team_wide || agent.is_null(),
        }
    }
}

/// By how much the turns that run may pass the totals, as far as is known.
fn may_pass(budget: &Value) -> Option<String> {
    let running = budget["running"].as_u64().filter(|running| *running > 0)?;
    let (tokens, cost) = (&budget["tokens"], &budget["cost"]);
    let mut most = Vec::new();
    let largest = tokens["largest"].as_u64().filter(|_| tokens["limit"].is_u64());
    if let Some(largest) = largest.filter(|largest| *largest > 0) {
        most.push(format!("{} tokens", format::tokens(running.saturating_mul(largest))));
    }
    let largest = cost["largest"].as_f64().filter(|_| cost["limit"].is_f64());
    if let Some(largest) = largest.filter(|largest| *largest > 0.0) {
        let currency = plain(cost["currency"].as_str().unwrap_or_default());
        // At most a thousand or so run.
        #[expect(clippy::cast_precision_loss, reason = "a number of turns")]
        most.push(format::money(running as f64 * largest, &currency));
    }
    let turns = if running == 1 { "turn runs" } else { "turns run" };
    (!most.is_empty()).then(|| format!("{running} {turns}: past it by {} at most", most.join(", ")))
}

/// The agent of a budget; the team, or at a hub its host.
pub(super) fn whose(budget: &Value) -> String {
    match (budget["agent_id"].as_str(), budget["host"].as_str()) {
        (Some(agent), _) => plain(agent),
        (None, Some(host)) => format!("host {}", plain(host)),
        (None, None) => "team".to_owned(),
    }
}

/// What is used of each total of a budget, as `list_budgets` has it.
pub(super) fn used(budget: &Value) -> String {
    let mut parts = Vec::new();
    let tokens = &budget["tokens"];
    if let Some(limit) = tokens["limit"].as_u64() {
        let used = tokens["used"].as_u64().map_or("-".to_owned(), format::tokens);
        let about = if tokens["estimated"] == true { "~" } else { "" };
        let more = if tokens["unknown"].as_u64().unwrap_or(0) > 0 { "+" } else { "" };
        parts.push(format!("{about}{used}{more} of {} tokens", format::tokens(limit)));
    }
    let cost = &budget["cost"];
    if let Some(limit) = cost["limit"].as_f64() {
        let currency = plain(cost["currency"].as_str().unwrap_or_default());
        let used = cost["used"].as_f64().map_or("-".to_owned(), |used| format!("{used:.2}"));
        let more = if cost["unknown"].as_u64().unwrap_or(0) > 0 { "+" } else { "" };
        parts.push(format!("{used}{more} of {}", format::money(limit, &currency)));
    }
    if let Some(limit) = budget["turns"]["limit"].as_u64() {
        parts.push(format!("{} of {limit} turns", budget["turns"]["used"]));
    }
    if let Some(limit) = budget["minutes"]["limit"].as_u64() {
        let used = budget["minutes"]["used"].as_f64().unwrap_or_default();
        parts.push(format!("{used:.1} of {limit} minutes"));
    }
    let within = budget["window_s"].as_u64().map(|window| format!(" within {window} s"));
    format!("{}{}", parts.join(", "), within.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_running_turns_pass_a_total_by_is_said() {
        let budget = |running, tokens, cost| {
            json!({
                "running": running,
                "tokens": { "limit": 100, "largest": tokens },
                "cost": { "limit": 1.0, "largest": cost, "currency": "EUR" },
            })
        };
        let said = may_pass(&budget(3, 900, 0.5)).unwrap_or_default();
        assert_eq!(said, "3 turns run: past it by 2.7k tokens, 1.50 EUR at most");
        let said = may_pass(&budget(1, 900, 0.0)).unwrap_or_default();
        assert_eq!(said, "1 turn runs: past it by 900 tokens at most");
        // Nothing runs, or nothing is known.
        assert_eq!(may_pass(&budget(0, 900, 0.5)), None);
        assert_eq!(may_pass(&budget(2, 0, 0.0)), None);
    }
}
