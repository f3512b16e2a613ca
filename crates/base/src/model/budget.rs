//! Budgets: their limits, and how they stand.

use std::sync::Arc;
use std::time::Duration;

use super::named::named;
use super::{AgentId, FigureSum, Spending, TimestampMs};

named! {
    /// What follows when a budget is used up.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum OnExceed {
        /// Running turns end at their next tool call, and prompts are refused.
        Pause = "pause",
        /// Running turns end at once, and prompts are refused.
        Cancel = "cancel",
        /// The agent is stopped.
        Stop = "stop",
    }
}

/// The totals of a budget; None: no limit.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct BudgetLimits {
    pub tokens: Option<u64>,
    pub cost: Option<f64>,
    pub turns: Option<u64>,
    /// In which turns ran, summed over them.
    pub minutes: Option<u64>,
}

impl BudgetLimits {
    pub fn are_set(&self) -> bool {
        *self != Self::default()
    }
}

named! {
    /// How far a budget is used.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub enum BudgetState {
        #[default]
        Open = "open",
        /// More than its `warn_at` is used.
        Warned = "warned",
        /// All of it is used.
        Exceeded = "exceeded",
    }
}

/// A budget as it stands.
#[derive(Clone, PartialEq, Debug)]
pub struct BudgetReport {
    /// None: the team's.
    pub agent: Option<AgentId>,
    pub state: BudgetState,
    pub limits: BudgetLimits,
    /// The totals of the configuration; `limits` differ once they were raised.
    pub configured: BudgetLimits,
    /// Of the cost.
    pub currency: Arc<str>,
    /// None: it is for the run.
    pub window_s: Option<u64>,
    pub on_exceed: OnExceed,
    /// Tokens used, in the window.
    pub tokens: FigureSum,
    /// None if no report had a cost.
    pub cost: Option<f64>,
    /// Reports without a cost in this currency.
    pub cost_unknown: u64,
    pub turns: u64,
    pub minutes: f64,
    /// Turns that run, or are about to.
    pub running: u64,
    /// What these are expected to use yet.
    pub reserved_tokens: u64,
    pub reserved_cost: f64,
    /// The largest single report: by so much each turn that runs may pass the limit.
    pub largest_tokens: u64,
    pub largest_cost: f64,
    /// Why prompts are refused.
    pub reason: Option<Arc<str>>,
    pub timestamp_ms: TimestampMs,
}

/// What counted against budgets before this process was started.
#[derive(Clone, PartialEq, Debug)]
pub struct EarlierUse {
    /// None: of the team.
    pub agent: Option<AgentId>,
    pub timestamp_ms: TimestampMs,
    /// It is of the run that goes on.
    pub is_of_run: bool,
    pub used: Used,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Used {
    Spent(Spending),
    /// A turn began.
    Turn,
    /// A turn ran for so long.
    Time(Duration),
    /// It started this helper.
    Helper(AgentId),
    /// A budget got these totals, while the configuration had `configured`.
    Totals {
        limits: BudgetLimits,
        configured: BudgetLimits,
    },
}
