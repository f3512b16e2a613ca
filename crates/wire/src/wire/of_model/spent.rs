//! Owns how sums of what model calls took become those of the wire.

use serde_json::{Map, Value};

use crate::model::{self, TokenKind};
use crate::wire::{Cost, Spent};

impl<'a> From<&'a model::Cost> for Cost<'a> {
    fn from(cost: &'a model::Cost) -> Self {
        Self { amount: cost.amount, currency: (&*cost.currency).into() }
    }
}

impl<'a> Spent<'a> {
    /// None if nothing was reported.
    pub fn of(spent: &'a model::Spent) -> Option<Self> {
        if spent.is_empty() {
            return None;
        }
        let known = |kind| spent.tokens.get(kind).known;
        let names = |is: &dyn Fn(TokenKind) -> bool, cost: bool| {
            let kinds = TokenKind::ALL.into_iter().filter(|kind| is(*kind));
            kinds.map(TokenKind::as_str).chain(cost.then_some("cost")).map(Into::into).collect()
        };
        Some(Self {
            input: known(TokenKind::Input),
            cached_read: known(TokenKind::CachedRead),
            cached_write: known(TokenKind::CachedWrite),
            output: known(TokenKind::Output),
            reasoning: known(TokenKind::Reasoning),
            total: known(TokenKind::Total),
            cost: spent
                .cost
                .iter()
                .map(|(currency, amount)| Cost { amount: *amount, currency: (&**currency).into() })
                .collect(),
            estimated: names(&|kind| spent.tokens.get(kind).is_estimated, spent.cost_is_estimated),
            incomplete: names(&|kind| spent.tokens.get(kind).unknown > 0, spent.cost_unknown > 0),
        })
    }
}

/// Sums in their form on the wire; empty if nothing was reported.
pub fn spent(spent: &model::Spent) -> Value {
    let sums = Spent::of(spent).and_then(|sums| serde_json::to_value(sums).ok());
    sums.unwrap_or_else(|| Value::Object(Map::new()))
}
