//! `[budget]` and `[agents.budget]`: what a team, or an agent, may spend.

use std::sync::Arc;
use std::time::Duration;

use super::prices::currency;
use super::read::Table;
use crate::model::{BudgetLimits, OnExceed};

/// Longest window: a year.
const YEAR: u64 = 366 * 24 * 60 * 60;

/// The highest total of tokens and turns.
const MOST: u64 = 1_000_000_000_000_000;

/// The highest total of a cost.
const MOST_COST: f64 = 1e12;

#[derive(Clone, PartialEq, Debug)]
pub struct Budget {
    pub limits: BudgetLimits,
    pub currency: Arc<str>,
    /// None: for the run.
    pub window: Option<Duration>,
    /// The share after which it warns.
    pub warn_at: f64,
    pub on_exceed: OnExceed,
}

/// The keys that bound what is used.
pub(super) fn limits(table: &Table<'_>) -> BudgetLimits {
    let valid = |cost: f64| cost > 0.0 && cost <= MOST_COST;
    let cost = table.number("cost", valid, "more than 0 and at most 10^12", 0.0);
    BudgetLimits {
        tokens: table.count_if_set("tokens", 1..=MOST),
        cost: Some(cost).filter(|cost| *cost > 0.0),
        turns: table.count_if_set("turns", 1..=MOST),
        minutes: table.count_if_set("minutes", 1..=YEAR / 60),
    }
}

pub(super) fn budget(table: &Table<'_>) -> Budget {
    Budget {
        limits: limits(table),
        currency: currency(table),
        window: table.count_if_set("window_s", 1..=YEAR).map(Duration::from_secs),
        warn_at: table.number(
            "warn_at",
            |share| share > 0.0 && share <= 1.0,
            "more than 0 and at most 1",
            0.8,
        ),
        on_exceed: table.choice("on_exceed"),
    }
}
