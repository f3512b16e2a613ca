//! The meter of a session: turns what its agent reports, by call, by turn or up to now, into
//! reports that add up. Pure.

use std::sync::Arc;

use super::count::Count;
use crate::model::{Charge, Cost, Figure, Spending, TokenKind, Tokens, UsageScope};

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
    /// Its agent's answers have counts.
    has_counts: bool,
    turn: TurnMeter,
}

/// The meter of the running turn.
#[derive(Default, Debug)]
struct TurnMeter {
    /// Its tokens, or some of them, were reported.
    is_reported: bool,
    /// The turn had a tool call, or a model call that was reported.
    has_worked: bool,
    /// Rounds of tool calls.
    rounds: u64,
    /// Ids of running tool calls. Calls past [`MOST_RUNNING`] start no round.
    running_calls: Vec<String>,
    /// The sum of the contexts that its calls report, and the largest of them.
    contexts: u64,
    largest_context: u64,
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
        self.turn.has_worked = true;
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

    /// How full the session's context is, which repeats its history.
    pub(super) fn learn_context(&mut self, used: u64) {
        self.used = used;
    }

    /// Cost and counts that repeat the session's history: later ones are counted from them on.
    pub(super) fn learn(&mut self, cost: Option<&Cost>, counted: Option<Count>) {
        self.counted = counted.or(self.counted);
        let cost = cost.filter(|cost| is_cost(cost)).map(|cost| cost.amount);
        self.says_cost |= cost.is_some_and(|amount| amount > 0.0);
        self.cost = cost.or(self.cost);
    }

    /// How full the session's context is, after a model call of the running turn. It tells of a model call
    /// only where nothing else does: Hermes adds its own error text to it.
    pub(super) fn read_context(&mut self, used: u64, scope: UsageScope) {
        if used != self.used {
            self.turn.has_worked |= scope == UsageScope::Context;
            self.turn.contexts = self.turn.contexts.saturating_add(used);
            self.turn.largest_context = self.turn.largest_context.max(used);
        }
        self.used = used;
    }

    /// The cost and the counts of the session up to now, as far as its agent has them.
    pub(super) fn updated(
        &mut self,
        cost: Option<&Cost>,
        counted: Option<Count>,
        running: bool,
    ) -> Vec<Spending> {
        let mut spent = Vec::new();
        if let Some(cost) = cost.and_then(|cost| self.charge(cost, running)) {
            spent.push(Spending { model: self.model.clone(), tokens: None, cost: Some(cost) });
        }
        if let Some(counted) = counted {
            let tokens = self.added(counted);
            let grew = tokens.is_some_and(|tokens| has_total(&tokens));
            self.turn.is_reported |= grew || running;
            self.turn.has_worked |= grew;
            if grew || (running && tokens.is_none()) {
                spent.push(self.report(None, tokens.unwrap_or_default()));
            }
        }
        spent
    }

    /// Returns the tokens that the running turn used at least and at most, by the contexts of its calls, if
    /// nothing else reports them.
    pub(super) fn foreseen(&self) -> Option<(u64, u64)> {
        let is_known = self.turn.contexts == 0 || self.turn.is_reported || self.has_counts;
        (!is_known).then(|| self.turn.by_contexts())
    }

    pub(super) fn has_called_tools(&self) -> bool {
        self.turn.rounds > 0
    }

    /// Whether the running turn had a tool call, or a model call that was reported.
    pub(super) fn has_worked(&self) -> bool {
        self.turn.has_worked
    }

    /// One model call.
    pub(super) fn called(&mut self, count: &Count) -> Spending {
        self.turn.is_reported = true;
        self.turn.has_worked |= count.all() > 0;
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
        self.has_counts |= usage.is_some();
        match (scope, usage) {
            (UsageScope::Session, Some(counted)) => {
                let tokens = self.added(counted);
                let tokens = tokens.unwrap_or_default();
                if turn.is_reported && !has_total(&tokens) {
                    return Vec::new();
                }
                vec![self.report(None, tokens)]
            }
            // The calls were reported one by one.
            _ if turn.is_reported => Vec::new(),
            // A call that was cut off has no counts.
            (UsageScope::Call, Some(count)) if count.all() > 0 => {
                let calls = turn.rounds + 1;
                // Contexts grow: no earlier call took more than the last one.
                let tokens = Tokens::of(|kind| match count.get(kind) {
                    Some(number) if calls > 1 => {
                        Figure::Estimated { least: number, most: number.saturating_mul(calls) }
                    }
                    Some(number) => Figure::Measured(number),
                    None => Figure::Unknown,
                });
                vec![self.report(None, tokens)]
            }
            (UsageScope::Turn | UsageScope::Context, Some(count)) => {
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
                if scope == UsageScope::Context && turn.contexts > 0 {
                    let (least, most) = turn.by_contexts();
                    tokens.set(TokenKind::Total, Figure::Estimated { least, most });
                }
                vec![self.report(None, tokens)]
            }
        }
    }

    /// Returns the growth of the session's counts. None: a part of them is from before this run, nobody knows
    /// which, and nothing is counted again.
    fn added(&mut self, counted: Count) -> Option<Tokens> {
        let before = self.counted.replace(counted)?;
        Some(counted.since(&before).figures(Figure::Measured))
    }

    fn report(&self, model: Option<Arc<str>>, tokens: Tokens) -> Spending {
        let cost = (!self.says_cost).then_some(Charge::Unknown);
        Spending { model: model.or_else(|| self.model.clone()), tokens: Some(tokens), cost }
    }

    /// Returns the growth of the session's cost.
    fn charge(&mut self, now: &Cost, running: bool) -> Option<Charge> {
        if !is_cost(now) {
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

pub(super) fn has_total(tokens: &Tokens) -> bool {
    tokens.get(TokenKind::Total).known().is_some_and(|total| total > 0)
}

fn is_cost(cost: &Cost) -> bool {
    cost.currency.len() == 3
        && cost.currency.bytes().all(|letter| letter.is_ascii_uppercase())
        && (0.0..=MOST_COST).contains(&cost.amount)
}

impl TurnMeter {
    /// The tokens at least and at most. Each context that was reported is a call that read it, and what a
    /// call writes is in the next one; no round of tool calls took more than the largest.
    fn by_contexts(&self) -> (u64, u64) {
        let rounds = self.rounds.saturating_add(1);
        (self.contexts, self.contexts.max(self.largest_context.saturating_mul(rounds)))
    }
}
