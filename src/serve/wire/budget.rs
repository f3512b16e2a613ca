//! The `budget` line.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Message, line};
use crate::model::{AgentId, BudgetReport, BudgetState, OnExceed};

/// A budget that has limits, as it stands.
#[derive(Serialize, JsonSchema)]
pub(in crate::serve) struct Budget<'a> {
    /// Null: the team's.
    agent_id: Option<&'a str>,
    #[schemars(extend("enum" = BudgetState::ALL.map(BudgetState::as_str)))]
    state: &'a str,
    tokens: BudgetTokens,
    cost: BudgetCost<'a>,
    turns: BudgetTurns,
    minutes: BudgetMinutes,
    /// Turns that run, or are about to.
    running: u64,
    /// Null: it is for the run.
    window_s: Option<u64>,
    #[schemars(extend("enum" = OnExceed::ALL.map(OnExceed::as_str)))]
    on_exceed: &'a str,
    /// Why prompts are refused; null while they are not.
    reason: Option<&'a str>,
    timestamp_ms: u64,
}

pub(in crate::serve) fn budget(report: &BudgetReport) -> Bytes {
    line(&Message::Budget(report.into()))
}

#[derive(Serialize, JsonSchema)]
struct BudgetTokens {
    /// Null if nothing is known.
    used: Option<u64>,
    /// Null: there is none.
    limit: Option<u64>,
    /// What turns that run are expected to use yet.
    reserved: u64,
    /// The largest single report: by so much each turn that runs may pass the limit.
    largest: u64,
    /// A part of `used` is estimated.
    estimated: bool,
    /// Reports that are not in `used`, since they did not say it.
    unknown: u64,
}

#[derive(Serialize, JsonSchema)]
struct BudgetCost<'a> {
    /// Null if nothing is known.
    used: Option<f64>,
    limit: Option<f64>,
    currency: &'a str,
    reserved: f64,
    largest: f64,
    /// Reports without a cost, or with one in another currency.
    unknown: u64,
}

#[derive(Serialize, JsonSchema)]
struct BudgetTurns {
    used: u64,
    limit: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct BudgetMinutes {
    used: f64,
    limit: Option<u64>,
}

impl<'a> From<&'a BudgetReport> for Budget<'a> {
    fn from(report: &'a BudgetReport) -> Self {
        let limits = report.limits;
        Self {
            agent_id: report.agent.as_ref().map(AgentId::as_str),
            state: report.state.as_str(),
            tokens: BudgetTokens {
                used: report.tokens.known,
                limit: limits.tokens,
                reserved: report.reserved_tokens,
                largest: report.largest_tokens,
                estimated: report.tokens.is_estimated,
                unknown: report.tokens.unknown,
            },
            cost: BudgetCost {
                used: report.cost,
                limit: limits.cost,
                currency: &report.currency,
                reserved: report.reserved_cost,
                largest: report.largest_cost,
                unknown: report.cost_unknown,
            },
            turns: BudgetTurns { used: report.turns, limit: limits.turns },
            minutes: BudgetMinutes {
                used: (report.minutes * 100.0).round() / 100.0,
                limit: limits.minutes,
            },
            running: report.running,
            window_s: report.window_s,
            on_exceed: report.on_exceed.as_str(),
            reason: report.reason.as_deref(),
            timestamp_ms: report.timestamp_ms,
        }
    }
}
