//! Budgets: their limits, and how they stand.

use std::sync::Arc;
use std::time::Duration;

use super::named::named;
use super::{AgentId, FigureSum, Spending, TimestampMs};

named! {
    /// The reaction to a budget that is used up.
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
    /// Tokens that models read, cached or not, and wrote.
    pub tokens: Option<u64>,
    /// Money, in the budget's currency.
    pub cost: Option<f64>,
    /// Prompts that were sent.
    pub turns: Option<u64>,
    /// In which turns ran, summed over them.
    pub minutes: Option<u64>,
}

impl BudgetLimits {
    /// Whether there is at least one limit.
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
    /// How far the budget is used.
    pub state: BudgetState,
    /// The totals that are in effect.
    pub limits: BudgetLimits,
    /// The totals of the configuration; `limits` differ once they were raised.
    pub configured: BudgetLimits,
    /// The currency of the cost.
    pub currency: Arc<str>,
    /// None: it is for the run.
    pub window_s: Option<u64>,
    /// The reaction to a total that is reached.
    pub on_exceed: OnExceed,
    /// Tokens used, in the window.
    pub tokens: FigureSum,
    /// None if no report had a cost.
    pub cost: Option<f64>,
    /// Reports without a cost in this currency.
    pub cost_unknown: u64,
    /// Turns that began, in the window.
    pub turns: u64,
    /// Minutes in which turns ran, in the window, summed over them.
    pub minutes: f64,
    /// Turns that run, or are about to.
    pub running: u64,
    /// The tokens that the running turns are expected to use yet.
    pub reserved_tokens: u64,
    /// The cost that the running turns are expected to have yet, in the budget's currency.
    pub reserved_cost: f64,
    /// The largest single report: by so much each turn that runs may pass the limit.
    pub largest_tokens: u64,
    /// The largest cost of a single report, in the budget's currency.
    pub largest_cost: f64,
    /// Why prompts are refused.
    pub reason: Option<Arc<str>>,
    /// The time of this report.
    pub timestamp_ms: TimestampMs,
}

/// A use that counted against budgets before this process was started.
#[derive(Clone, PartialEq, Debug)]
pub struct EarlierUse {
    /// None: of the team.
    pub agent: Option<AgentId>,
    /// The time of the use, by the journal.
    pub timestamp_ms: TimestampMs,
    /// The use is of the run that goes on.
    pub is_of_run: bool,
    /// The kind and the amount of the use.
    pub used: Used,
}

/// One use of a budget, or a change of its totals.
#[derive(Clone, PartialEq, Debug)]
pub enum Used {
    /// Model calls were made.
    Spent(Spending),
    /// A turn began.
    Turn,
    /// A turn ran for so long.
    Time(Duration),
    /// The agent started this helper.
    Helper(AgentId),
    /// A budget got these totals, while the configuration had `configured`.
    Totals {
        /// The totals that the budget got.
        limits: BudgetLimits,
        /// The totals of the configuration at that time.
        configured: BudgetLimits,
    },
}
