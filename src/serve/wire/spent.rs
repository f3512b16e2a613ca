//! What model calls took, and the `usage` line.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Message, SessionHeader, line};
use crate::model::{self, TokenKind, UsageReport};

/// Sums of what was reported since the team began. A figure that no report had is null.
#[derive(Serialize, JsonSchema)]
pub(in crate::serve) struct Spent<'a> {
    /// Tokens that the models read, neither from nor into a cache.
    input: Option<u64>,
    cached_read: Option<u64>,
    cached_write: Option<u64>,
    /// Tokens that they wrote, reasoning included.
    output: Option<u64>,
    /// A part of `output`.
    reasoning: Option<u64>,
    /// `input`, `cached_read`, `cached_write` and `output`.
    total: Option<u64>,
    /// One for each currency; empty if no report had a cost.
    cost: Vec<Cost<'a>>,
    /// Names of the figures that are estimated, or partly so.
    estimated: Vec<&'static str>,
    /// Names of the figures that some reports did not have: they are too low.
    incomplete: Vec<&'static str>,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::serve) struct Cost<'a> {
    amount: f64,
    /// ISO 4217 code.
    currency: &'a str,
}

impl<'a> From<&'a model::Cost> for Cost<'a> {
    fn from(cost: &'a model::Cost) -> Self {
        Self { amount: cost.amount, currency: &cost.currency }
    }
}

impl<'a> Spent<'a> {
    /// None if nothing was reported.
    pub(in crate::serve) fn of(spent: &'a model::Spent) -> Option<Self> {
        if spent.is_empty() {
            return None;
        }
        let known = |kind| spent.tokens.get(kind).known;
        let names = |is: &dyn Fn(TokenKind) -> bool, cost: bool| {
            let kinds = TokenKind::ALL.into_iter().filter(|kind| is(*kind));
            kinds.map(TokenKind::as_str).chain(cost.then_some("cost")).collect()
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
                .map(|(currency, amount)| Cost { amount: *amount, currency })
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

pub(in crate::serve) fn usage(report: &UsageReport) -> Bytes {
    let usage = report.usage.as_ref();
    line(&Message::Usage {
        session: SessionHeader::new(&report.key, report.mode),
        used: usage.map(|usage| usage.used),
        size: usage.map_or(0, |usage| usage.size),
        cost: usage.and_then(|usage| usage.cost.as_ref()).map(Cost::from),
        spent: Spent::of(&report.spent),
    })
}
