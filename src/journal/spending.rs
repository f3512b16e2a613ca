//! The payload of `usage.spent`: what model calls took.

use serde_json::{Map, Value, json};

use crate::model::{Charge, Cost, Figure, Spending, TokenKind, Tokens};

pub(super) fn payload(spending: &Spending) -> Value {
    let mut payload = Map::new();
    payload.insert("model".to_owned(), json!(spending.model));
    if let Some(tokens) = &spending.tokens {
        let mut figures = Map::new();
        for kind in TokenKind::ALL {
            figures.insert(kind.as_str().to_owned(), json!(tokens.get(kind).known()));
        }
        let is_estimated = |kind: &TokenKind| tokens.get(*kind).is_estimated();
        let estimated: Vec<_> = TokenKind::ALL.into_iter().filter(is_estimated).collect();
        let estimated: Vec<_> = estimated.into_iter().map(TokenKind::as_str).collect();
        let least = |kind: &TokenKind| (kind.as_str().to_owned(), tokens.get(*kind).least().into());
        let at_least: Map<_, _> =
            TokenKind::ALL.iter().filter(|it| is_estimated(it)).map(least).collect();
        figures.insert("estimated".to_owned(), json!(estimated));
        if !at_least.is_empty() {
            figures.insert("at_least".to_owned(), at_least.into());
        }
        payload.insert("tokens".to_owned(), figures.into());
    }
    if let Some(charge) = &spending.cost {
        let cost = charge.known().map(|cost| {
            json!({
                "amount": cost.amount,
                "currency": &*cost.currency,
                "estimated": matches!(charge, Charge::Estimated(_)),
            })
        });
        payload.insert("cost".to_owned(), json!(cost));
    }
    payload.into()
}

/// Reads the payload of a `usage.spent`; what is not readable there is unknown.
pub fn spending(payload: &str) -> Spending {
    let payload: Value = serde_json::from_str(payload).unwrap_or_default();
    let tokens = payload["tokens"].as_object().map(|figures| {
        let estimated = figures.get("estimated").and_then(Value::as_array);
        let is_estimated =
            |name: &str| estimated.is_some_and(|names| names.iter().any(|it| it == name));
        Tokens::of(|kind| {
            let name = kind.as_str();
            match figures.get(name).and_then(Value::as_u64) {
                None => Figure::Unknown,
                Some(most) if is_estimated(name) => {
                    let least = figures.get("at_least").and_then(|it| it[name].as_u64());
                    Figure::Estimated { least: least.unwrap_or(0), most }
                }
                Some(number) => Figure::Measured(number),
            }
        })
    });
    let cost = payload.get("cost").map(|cost| match cost["amount"].as_f64() {
        None => Charge::Unknown,
        Some(amount) => {
            let currency = cost["currency"].as_str().unwrap_or_default().into();
            let known = Cost { amount, currency };
            let is_estimated = cost["estimated"] == true;
            if is_estimated { Charge::Estimated(known) } else { Charge::Measured(known) }
        }
    });
    Spending { model: payload["model"].as_str().map(Into::into), tokens, cost }
}

#[cfg(test)]
mod tests {
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
            assert_eq!(spending(&payload(&report).to_string()), report);
        }
        assert_eq!(spending("nothing"), Spending::default());
    }
}
