//! A budget, before and after it was raised, and a loop.

use super::{NOW, key};
use crate::model::{
    AgentId, BudgetLimits, BudgetReport, BudgetState, FigureSum, Loop, LoopKind, LoopReport,
    OnExceed, OnLoop, SessionMode,
};

/// A budget that is used up.
pub(in crate::serve) fn budget() -> BudgetReport {
    BudgetReport {
        agent: Some(AgentId::new("ui")),
        state: BudgetState::Exceeded,
        limits: BudgetLimits { tokens: Some(40_000), turns: Some(50), ..BudgetLimits::default() },
        configured: BudgetLimits::default(),
        currency: "USD".into(),
        window_s: None,
        on_exceed: OnExceed::Pause,
        tokens: FigureSum { known: Some(41_200), is_estimated: false, unknown: 0 },
        cost: Some(0.042),
        cost_unknown: 0,
        turns: 3,
        minutes: 2.5,
        running: 1,
        reserved_tokens: 0,
        reserved_cost: 0.0,
        largest_tokens: 9_000,
        largest_cost: 0.01,
        reason: Some(
            "the budget of `ui` is used up: 41200 of 40000 tokens are used; prompts are refused \
             until `raise_budget`"
                .into(),
        ),
        timestamp_ms: NOW,
    }
}

pub(in crate::serve) fn raised_budget() -> BudgetReport {
    let limits = BudgetLimits { tokens: Some(80_000), ..budget().limits };
    BudgetReport { state: BudgetState::Open, limits, reason: None, running: 0, ..budget() }
}

pub(in crate::serve) fn looped() -> LoopReport {
    let found = Loop {
        kind: LoopKind::Call,
        times: 5,
        calls: vec!["npm test".into()],
        action: Some(OnLoop::Cancel),
    };
    let mode = SessionMode::SingleAgent;
    LoopReport { key: key("ui", "s-ui"), mode, found, timestamp_ms: NOW }
}
