//! Owns a budget: its line, and the methods about it.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::method::method;
use super::names::AgentName;
use super::{Empty, NameOf};
use crate::model::{BudgetState, OnExceed};

method! {
    ListBudgets = "list_budgets": Empty => Vec<Budget<'a>>;
    port: Anyone, web: Read, token: Read(Answer), waits: false, lasts: false, hub: All(Joined)
}

method! {
    RaiseBudget = "raise_budget": RaiseBudgetParams => Budget<'a>;
    port: Person, web: Control, token: Control(Named("agent_id")), waits: false, lasts: false, hub: One
}

/// A budget that has limits, as it stands.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Budget<'a> {
    /// Null: the team's.
    pub agent_id: Option<AgentName<'a>>,
    pub state: NameOf<BudgetState>,
    #[serde(default)]
    pub tokens: BudgetTokens,
    #[serde(default)]
    pub cost: BudgetCost<'a>,
    #[serde(default)]
    pub turns: BudgetTurns,
    #[serde(default)]
    pub minutes: BudgetMinutes,
    /// Turns that run, or are about to.
    #[serde(default)]
    pub running: u64,
    /// Null: it is for the run.
    pub window_s: Option<u64>,
    #[serde(default)]
    pub on_exceed: NameOf<OnExceed>,
    /// Why prompts are refused; null while they are not.
    pub reason: Option<Cow<'a, str>>,
    #[serde(default)]
    pub timestamp_ms: u64,
}

#[derive(Clone, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BudgetTokens {
    /// Null if nothing is known.
    pub used: Option<u64>,
    /// Null: there is none.
    pub limit: Option<u64>,
    /// The tokens that running turns are expected to use yet.
    #[serde(default)]
    pub reserved: u64,
    /// The largest single report: by so much each turn that runs may pass the limit.
    #[serde(default)]
    pub largest: u64,
    /// A part of `used` is estimated.
    #[serde(default)]
    pub estimated: bool,
    /// Reports that are not in `used`, since they did not say it.
    #[serde(default)]
    pub unknown: u64,
}

#[derive(Clone, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BudgetCost<'a> {
    /// Null if nothing is known.
    pub used: Option<f64>,
    pub limit: Option<f64>,
    #[serde(default)]
    pub currency: Cow<'a, str>,
    #[serde(default)]
    pub reserved: f64,
    #[serde(default)]
    pub largest: f64,
    /// Reports without a cost, or with one in another currency.
    #[serde(default)]
    pub unknown: u64,
}

#[derive(Clone, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BudgetTurns {
    #[serde(default)]
    pub used: u64,
    pub limit: Option<u64>,
}

#[derive(Clone, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BudgetMinutes {
    #[serde(default)]
    pub used: f64,
    pub limit: Option<u64>,
}

#[derive(Clone, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RaiseBudgetParams {
    /// The team's budget if left out.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub agent_id: Option<AgentName<'static>>,
    /// The new totals; what is left out stays.
    pub tokens: Option<u64>,
    pub cost: Option<f64>,
    pub turns: Option<u64>,
    pub minutes: Option<u64>,
}
