//! The use of model calls: tokens and money, alike for all vendors. A figure that nobody reported is unknown,
//! and never zero.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Cost;
use super::named::named;

/// Currencies of one sum; a cost in a further one counts as unknown.
const MOST_CURRENCIES: usize = 8;

/// How an agent counts in the `usage` of its answer to a prompt.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum UsageScope {
    /// The turn, as the protocol has it.
    #[default]
    Turn,
    /// The session up to now.
    Session,
    /// The turn's last model call.
    Call,
    /// The turn, where they have any: else nothing but the size of its context says what it takes.
    Context,
    /// Its agent never reports what it uses.
    Nothing,
}

/// A number of tokens in one report.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Figure {
    /// The agent does not say it, and nothing that it reports tells it.
    #[default]
    Unknown,
    /// Between these; `most` is what it counts as.
    Estimated {
        /// The lower bound in tokens.
        least: u64,
        /// The upper bound in tokens.
        most: u64,
    },
    /// The agent reports the number.
    Measured(u64),
}

impl Figure {
    /// The number that counts: the upper bound of an estimate. None: it is unknown.
    pub fn known(self) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::Estimated { most: number, .. } | Self::Measured(number) => Some(number),
        }
    }

    /// Returns the least number that it can be.
    pub fn least(self) -> u64 {
        match self {
            Self::Unknown => 0,
            Self::Estimated { least: number, .. } | Self::Measured(number) => number,
        }
    }

    /// Whether the number is an estimate; an unknown one is none.
    pub fn is_estimated(self) -> bool {
        matches!(self, Self::Estimated { .. })
    }
}

named! {
    /// A kind of tokens.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum TokenKind {
        /// Read by the model, and neither from nor into a cache.
        Input = "input",
        CachedRead = "cached_read",
        CachedWrite = "cached_write",
        /// Reasoning included.
        Output = "output",
        /// A part of the output.
        Reasoning = "reasoning",
        /// All but the reasoning, which is output.
        Total = "total",
    }
}

/// A value for each [`TokenKind`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PerKind<T>([T; 6]);

/// The tokens of one report.
pub type Tokens = PerKind<Figure>;

impl<T: Copy> PerKind<T> {
    /// Calls `value` for each kind, in the order of their declaration.
    pub fn of(value: impl FnMut(TokenKind) -> T) -> Self {
        Self(TokenKind::ALL.map(value))
    }

    /// The value of a kind.
    pub fn get(&self, kind: TokenKind) -> T {
        self.0[kind as usize]
    }

    /// Replaces the value of a kind.
    pub fn set(&mut self, kind: TokenKind, value: T) {
        self.0[kind as usize] = value;
    }
}

/// The cost of one report.
#[derive(Clone, PartialEq, Debug)]
pub enum Charge {
    /// Its agent does not say it, and the model has no known price.
    Unknown,
    /// From the price of the model.
    Estimated(Cost),
    /// The agent says it.
    Measured(Cost),
}

impl Charge {
    /// The cost that counts, also an estimated one; None: it is unknown.
    pub fn known(&self) -> Option<&Cost> {
        match self {
            Self::Unknown => None,
            Self::Estimated(cost) | Self::Measured(cost) => Some(cost),
        }
    }
}

/// An agent's report of model calls; each call is reported once.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Spending {
    /// As its agent names it.
    pub model: Option<Arc<str>>,
    /// None: another report has them.
    pub tokens: Option<Tokens>,
    /// None: another report has it.
    pub cost: Option<Charge>,
}

impl Spending {
    /// The spending of a turn without tokens, and without a cost unless another report has it.
    pub fn unreported(has_cost: bool) -> Self {
        let cost = (!has_cost).then_some(Charge::Unknown);
        Self { model: None, tokens: Some(Tokens::default()), cost }
    }

    /// The spending of a turn that is known to have called no model.
    pub fn nothing() -> Self {
        Self { model: None, tokens: Some(Tokens::of(|_| Figure::Measured(0))), cost: None }
    }

    /// The spending of model calls that no figure covers, beside others.
    pub fn uncounted() -> Self {
        Self { model: None, tokens: None, cost: Some(Charge::Unknown) }
    }

    /// Whether any figure, or the cost, is known.
    pub fn is_known(&self) -> bool {
        let tokens = self.tokens.as_ref();
        tokens.is_some_and(|tokens| {
            TokenKind::ALL.iter().any(|kind| tokens.get(*kind).known().is_some())
        }) || self.cost.as_ref().is_some_and(|cost| cost.known().is_some())
    }
}

/// A sum of reports.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Spent {
    /// The sum of each kind of tokens.
    pub tokens: PerKind<FigureSum>,
    /// By currency.
    pub cost: BTreeMap<Arc<str>, f64>,
    /// A part of the cost is from prices.
    pub cost_is_estimated: bool,
    /// Reports whose cost is unknown.
    pub cost_unknown: u64,
}

/// A sum of figures.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FigureSum {
    /// None if all are unknown.
    pub known: Option<u64>,
    /// A part of it is estimated.
    pub is_estimated: bool,
    /// Reports that don't have the figure.
    pub unknown: u64,
}

impl FigureSum {
    /// Adds the figure of one report; an estimate by its upper bound.
    pub fn add(&mut self, figure: Figure) {
        match figure.known() {
            Some(number) => {
                self.known = Some(self.known.unwrap_or(0).saturating_add(number));
                self.is_estimated |= figure.is_estimated();
            }
            None => self.unknown += 1,
        }
    }
}

impl Spent {
    /// Adds one report. A cost in a ninth currency counts as unknown.
    pub fn add(&mut self, report: &Spending) {
        if let Some(tokens) = &report.tokens {
            for kind in TokenKind::ALL {
                let mut sum = self.tokens.get(kind);
                sum.add(tokens.get(kind));
                self.tokens.set(kind, sum);
            }
        }
        match &report.cost {
            None => {}
            Some(Charge::Unknown) => self.cost_unknown += 1,
            Some(charge @ (Charge::Estimated(cost) | Charge::Measured(cost))) => {
                if self.cost.len() < MOST_CURRENCIES || self.cost.contains_key(&cost.currency) {
                    *self.cost.entry(Arc::clone(&cost.currency)).or_default() += cost.amount;
                    self.cost_is_estimated |= matches!(charge, Charge::Estimated(_));
                } else {
                    self.cost_unknown += 1;
                }
            }
        }
    }

    /// All tokens.
    pub fn total(&self) -> FigureSum {
        self.tokens.get(TokenKind::Total)
    }

    /// Whether any figure, or any cost, is known.
    pub fn is_known(&self) -> bool {
        !self.cost.is_empty()
            || TokenKind::ALL.iter().any(|kind| self.tokens.get(*kind).known.is_some())
    }

    /// Whether no report with tokens or a cost was added.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_counted_and_not_zero() {
        let mut spent = Spent::default();
        spent.add(&Spending {
            tokens: Some(Tokens::default()),
            cost: Some(Charge::Unknown),
            ..Spending::default()
        });
        assert_eq!((spent.total().known, spent.total().unknown, spent.cost_unknown), (None, 1, 1));
        let tokens = Tokens::of(|kind| match kind {
            TokenKind::Total => Figure::Estimated { least: 3, most: 7 },
            _ => Figure::Measured(3),
        });
        spent.add(&Spending { tokens: Some(tokens), ..Spending::default() });
        assert_eq!(spent.total(), FigureSum { known: Some(7), is_estimated: true, unknown: 1 });
        let input = spent.tokens.get(TokenKind::Input);
        assert_eq!(input, FigureSum { known: Some(3), is_estimated: false, unknown: 1 });
    }
}
