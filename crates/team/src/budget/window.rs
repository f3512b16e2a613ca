//! Sums over a span that ends now, or over the whole run. Pure.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::{Charge, Cost, Spending, TokenKind};

/// A span is kept in so many parts: what is a part older than it has gone.
const PARTS: u32 = 60;

/// The amounts that count against a budget.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Amounts {
    pub(super) tokens: u64,
    pub(super) cost: f64,
    /// The part of the tokens, and of the cost, that an estimate may have too many.
    pub(super) unsure_tokens: u64,
    pub(super) unsure_cost: f64,
    pub(super) turns: u64,
    pub(super) time: Duration,
}

impl Amounts {
    /// The tokens and the cost of a report, in a currency that counts.
    pub(super) fn of(report: &Spending, counts: impl Fn(&Cost) -> bool) -> Self {
        let total =
            report.tokens.as_ref().map(|tokens| tokens.get(TokenKind::Total)).unwrap_or_default();
        let tokens = total.known().unwrap_or(0);
        let unsure_tokens = tokens.saturating_sub(total.least());
        let charge = report.cost.as_ref();
        let cost =
            charge.and_then(Charge::known).filter(|cost| counts(cost)).map_or(0.0, |it| it.amount);
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let unsure_cost = match charge {
            Some(Charge::Estimated(_)) if tokens > 0 => cost * unsure_tokens as f64 / tokens as f64,
            _ => 0.0,
        };
        Self { tokens, cost, unsure_tokens, unsure_cost, ..Self::default() }
    }

    /// The tokens that are used for certain.
    pub(super) fn least(self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(self.unsure_tokens),
            cost: (self.cost - self.unsure_cost).max(0.0),
            unsure_tokens: 0,
            unsure_cost: 0.0,
            ..self
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            cost: self.cost + other.cost,
            unsure_tokens: self.unsure_tokens.saturating_add(other.unsure_tokens),
            unsure_cost: self.unsure_cost + other.unsure_cost,
            turns: self.turns + other.turns,
            time: self.time.saturating_add(other.time),
        }
    }
}

#[derive(Debug)]
pub(super) struct Window {
    /// None: the whole run.
    span: Option<Duration>,
    /// By the beginning of each part, oldest first; without a span there is one.
    parts: VecDeque<(Instant, Amounts)>,
}

impl Window {
    pub(super) fn new(span: Option<Duration>) -> Self {
        Self { span, parts: VecDeque::new() }
    }

    /// Takes another span; what was summed stays in it, as far as it is recent enough.
    pub(super) fn set_span(&mut self, span: Option<Duration>) {
        self.span = span;
    }

    pub(super) fn add(&mut self, now: Instant, amounts: Amounts) {
        let part = self.span.map_or(Duration::MAX, |span| span / PARTS);
        match self.parts.back_mut() {
            Some((begun, sum)) if now.duration_since(*begun) < part => *sum = sum.and(amounts),
            _ => self.parts.push_back((now, amounts)),
        }
    }

    pub(super) fn sum(&mut self, now: Instant) -> Amounts {
        if let Some(span) = self.span {
            while self.parts.front().is_some_and(|(begun, _)| now.duration_since(*begun) >= span) {
                self.parts.pop_front();
            }
        }
        self.parts.iter().fold(Amounts::default(), |sum, (_, part)| sum.and(*part))
    }

    /// When the sum gets smaller.
    pub(super) fn next(&self) -> Option<Instant> {
        Some(self.parts.front()?.0 + self.span?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(turns: u64) -> Amounts {
        Amounts { turns, ..Amounts::default() }
    }

    #[test]
    fn a_span_forgets_and_a_run_does_not() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut window = Window::new(Some(Duration::from_secs(60)));
        let mut run = Window::new(None);
        for second in 0..1_000 {
            window.add(at(second), turns(1));
            run.add(at(second), turns(1));
            let expected = if second < 60 { second + 1 } else { 60 };
            assert_eq!(window.sum(at(second)).turns, expected, "{second}");
            assert!(window.parts.len() <= 61 && run.parts.len() == 1);
        }
        assert_eq!(window.next(), Some(at(1_000)));
        assert_eq!(window.sum(at(1_030)).turns, 29);
        assert_eq!(window.sum(at(2_000)).turns, 0);
        assert_eq!((run.sum(at(2_000)).turns, run.next()), (1_000, None));
    }
}
