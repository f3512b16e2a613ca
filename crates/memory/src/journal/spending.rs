//! The payload of `usage.spent`: what model calls took.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize};

use super::payload::Nullable;
use crate::line::{lenient, lenient_list, or_default};
use crate::model::{Charge, Cost, Figure, Spending, TokenKind, Tokens};

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SpentPayload {
    #[serde(deserialize_with = "lenient")]
    model: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    tokens: Option<TokensPayload>,
    /// Some(None): there was a cost, and it is unknown.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    cost: Nullable<SpentCost>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct TokensPayload {
    /// By kind; null where it is unknown.
    #[serde(flatten)]
    figures: IndexMap<String, TokenFigure>,
    /// The kinds that are estimated.
    #[serde(deserialize_with = "lenient_list")]
    estimated: Vec<String>,
    /// The lower bounds of those.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "IndexMap::is_empty")]
    at_least: IndexMap<String, TokenFigure>,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct TokenFigure(#[serde(deserialize_with = "lenient")] Option<u64>);

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct SpentCost {
    #[serde(deserialize_with = "lenient")]
    amount: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    currency: Arc<str>,
    #[serde(deserialize_with = "lenient")]
    estimated: bool,
}

/// Distinguishes a cost that is null from a missing one.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Nullable<SpentCost>, D::Error> {
    lenient(from).map(Some)
}

pub(super) fn payload(spending: &Spending) -> SpentPayload {
    let tokens = spending.tokens.as_ref().map(|tokens| {
        let by_kind = |kind: TokenKind, figure| (kind.as_str().to_owned(), TokenFigure(figure));
        let estimated: Vec<_> =
            TokenKind::ALL.into_iter().filter(|kind| tokens.get(*kind).is_estimated()).collect();
        let at_least = estimated.iter().map(|kind| by_kind(*kind, Some(tokens.get(*kind).least())));
        let figures =
            TokenKind::ALL.into_iter().map(|kind| by_kind(kind, tokens.get(kind).known()));
        TokensPayload {
            figures: figures.collect(),
            at_least: at_least.collect(),
            estimated: estimated.into_iter().map(|kind| kind.as_str().to_owned()).collect(),
        }
    });
    let cost = spending.cost.as_ref().map(|charge| {
        charge.known().map(|cost| SpentCost {
            amount: Some(cost.amount),
            currency: cost.currency.clone(),
            estimated: matches!(charge, Charge::Estimated(_)),
        })
    });
    SpentPayload { model: spending.model.clone(), tokens, cost }
}

/// Reads the payload of a `usage.spent`; what is not readable there is unknown.
pub fn spending(payload: &str) -> Spending {
    let SpentPayload { model, tokens, cost } = or_default(payload);
    let tokens = tokens.map(|TokensPayload { figures, estimated, at_least }| {
        let of = |figures: &IndexMap<String, TokenFigure>, name: &str| figures.get(name)?.0;
        Tokens::of(|kind| {
            let name = kind.as_str();
            match of(&figures, name) {
                None => Figure::Unknown,
                Some(most) if estimated.iter().any(|it| it == name) => {
                    Figure::Estimated { least: of(&at_least, name).unwrap_or(0), most }
                }
                Some(number) => Figure::Measured(number),
            }
        })
    });
    let cost = cost.map(|cost| match cost {
        Some(SpentCost { amount: Some(amount), currency, estimated }) => {
            let known = Cost { amount, currency };
            if estimated { Charge::Estimated(known) } else { Charge::Measured(known) }
        }
        _ => Charge::Unknown,
    });
    Spending { model, tokens, cost }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let mut tokens = Tokens::default();
        tokens.set(TokenKind::Input, Figure::Measured(5));
        tokens.set(TokenKind::Total, Figure::Estimated { least: 3, most: 7 });
        let cost = Cost { amount: 0.1, currency: "USD".into() };
        for report in [
            Spending::default(),
            Spending { model: Some("m".into()), tokens: Some(tokens), cost: None },
            Spending { tokens: Some(tokens), cost: Some(Charge::Unknown), model: None },
            Spending { cost: Some(Charge::Estimated(cost.clone())), ..Spending::default() },
            Spending { cost: Some(Charge::Measured(cost)), ..Spending::default() },
        ] {
            assert_eq!(spending(&serde_json::to_string(&payload(&report)).unwrap()), report);
        }
        assert_eq!(spending("nothing"), Spending::default());
    }
}
