//! The meter of a session: turns what its agent reports, by call, by turn or up to now, into
//! reports that add up. Pure.

use std::sync::Arc;

use super::count::Count;
use crate::model::{Charge, Cost, Figure, Spending, Tokens, Usage, UsageScope};

/// Tool calls of a turn that run at once.
const MOST_RUNNING: usize = 64;

/// The highest cost that is believed.
const MOST_COST: f64 = 1e12;

#[derive(Default, Debug)]
pub(crate) struct Meter {
    /// The session's model, as its agent names it.
    model: Option<Arc<str>>,
    /// The session's counts up to now; None: from before this run, and not known.
    counted: Option<Count>,
    /// The session's cost up to now; None as above.
    cost: Option<f64>,
    /// Its agent says what it costs.
    says_cost: bool,
    /// Tokens in context, as last reported.
    used: u64,
    turn: TurnMeter,
}

/// Of the running turn.
#[derive(Default, Debug)]
struct TurnMeter {
    /// Its tokens, or some of them, were reported.
    is_reported: bool,
    /// Rounds of tool calls.
    rounds: u64,
    /// Tool calls that run, by id; one over [`MOST_RUNNING`] begins no round.
    running_calls: Vec<String>,
    /// The sum of the contexts that its calls report.
    contexts: u64,
}

impl Meter {
    /// The session is new: it has used nothing.
    pub(crate) fn opened(&mut self) {
        self.counted = Some(Count::default());
        self.cost = Some(0.0);
    }

    pub(crate) fn runs_on(&mut self, model: Arc<str>) {
        self.model = Some(model);
    }

    pub(crate) fn tool_call_began(&mut self, id: &str) {
        if self.turn.running_calls.is_empty() {
            self.turn.rounds += 1;
        }
        if self.turn.running_calls.len() < MOST_RUNNING {
            self.turn.running_calls.push(id.to_owned());
        }
    }

    pub(crate) fn tool_call_ended(&mut self, id: &str) {
        self.turn.running_calls.retain(|running| running != id);
    }

    /// A `usage_update`, with the session's counts if it has them.
    pub(super) fn updated(
        &mut self,
        usage: &Usage,
        counted: Option<Count>,
        running: bool,
    ) -> Vec<Spending> {
        if running && usage.used != self.used {
            self.turn.contexts = self.turn.contexts.saturating_add(usage.used);
        }
        self.used = usage.used;
        let mut spent = Vec::new();
        if let Some(cost) = usage.cost.as_ref().and_then(|cost| self.charge(cost, running)) {
            spent.push(Spending { model: self.model.clone(), tokens: None, cost: Some(cost) });
        }
        if let Some(counted) = counted {
            let before = self.counted.replace(counted);
            // What a session that is loaded again reports first is from before.
            if before.is_some() || running {
                let is_known = before.is_some();
                let added = counted.since(&before.unwrap_or_default());
                if added.all() > 0 {
                    self.turn.is_reported = true;
                    let tokens = added.figures(known_as(is_known));
                    spent.push(self.report(None, tokens));
                } else if running && is_known {
                    self.turn.is_reported = true;
                }
            }
        }
        spent
    }

    /// What the running turn used by an estimate, if that is more than was reported.
    pub(super) fn foreseen(&self) -> Option<u64> {
        (self.turn.contexts > 0 && !self.turn.is_reported).then_some(self.turn.contexts)
    }

    /// One model call.
    pub(super) fn called(&mut self, count: &Count) -> Spending {
        self.turn.is_reported = true;
        self.report(None, count.figures(Figure::Measured))
    }

    /// The turn ended, with the counts of its answer.
    pub(super) fn turn_ended(
        &mut self,
        scope: UsageScope,
        usage: Option<Count>,
        by_model: Option<Vec<(Option<String>, Count)>>,
    ) -> Vec<Spending> {
        let turn = std::mem::take(&mut self.turn);
        match (scope, usage) {
            (UsageScope::Session, Some(counted)) => {
                let before = self.counted.replace(counted);
                let added = counted.since(&before.unwrap_or_default());
                if added.all() == 0 && turn.is_reported {
                    return Vec::new();
                }
                vec![self.report(None, added.figures(known_as(before.is_some())))]
            }
            // The calls were reported one by one.
            _ if turn.is_reported => Vec::new(),
            // A call that was cut off has no counts.
            (UsageScope::Call, Some(count)) if count.all() > 0 => {
                let calls = turn.rounds + 1;
                let tokens = count.times(calls).figures(known_as(calls == 1));
                vec![self.report(None, tokens)]
            }
            (UsageScope::Turn, Some(count)) => {
                // The rows may have calls that the sum leaves out.
                let rows = by_model.filter(|rows| {
                    let all = rows.iter().fold(0_u64, |sum, row| sum.saturating_add(row.1.all()));
                    all > 0 && all >= count.all()
                });
                let report = |(model, count): (Option<String>, Count)| {
                    self.report(model.map(Into::into), count.figures(Figure::Measured))
                };
                rows.unwrap_or_else(|| vec![(None, count)]).into_iter().map(report).collect()
            }
            _ => {
                let mut tokens = Tokens::default();
                if turn.contexts > 0 {
                    // Each call reads the context, and what it writes is in the next.
                    let total = Figure::Estimated(turn.contexts);
                    tokens.set(crate::model::TokenKind::Total, total);
                }
                vec![self.report(None, tokens)]
            }
        }
    }

    fn report(&self, model: Option<Arc<str>>, tokens: Tokens) -> Spending {
        let cost = (!self.says_cost).then_some(Charge::Unknown);
        Spending { model: model.or_else(|| self.model.clone()), tokens: Some(tokens), cost }
    }

    /// What the session's cost grew by.
    fn charge(&mut self, now: &Cost, running: bool) -> Option<Charge> {
        let is_currency = now.currency.len() == 3
            && now.currency.bytes().all(|letter| letter.is_ascii_uppercase());
        if !is_currency || !(0.0..=MOST_COST).contains(&now.amount) {
            return None;
        }
        let before = self.cost.replace(now.amount);
        self.says_cost |= now.amount > 0.0 && (before.is_some() || !running);
        let before = before?;
        // A lower cost began anew.
        let added = if now.amount >= before { now.amount - before } else { now.amount };
        let cost = Cost { amount: added, currency: Arc::clone(&now.currency) };
        (added > 0.0).then_some(Charge::Measured(cost))
    }
}

fn known_as(is_measured: bool) -> fn(u64) -> Figure {
    if is_measured { Figure::Measured } else { Figure::Estimated }
}
