//! The prices of models, and the cost of tokens by them. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::{Cost, Price, TokenKind, Tokens};

/// Prices by model. A model that is not in it has none.
#[derive(Default, Debug)]
pub struct PriceList {
    by_model: HashMap<String, Price>,
}

impl PriceList {
    pub fn new(prices: impl IntoIterator<Item = (String, Price)>) -> Self {
        let by_model = prices.into_iter().map(|(model, price)| (model.to_lowercase(), price));
        Self { by_model: by_model.collect() }
    }

    /// The cost of tokens; None if the model has no price, or nothing is known of them.
    pub fn cost(&self, model: &str, tokens: &Tokens) -> Option<Cost> {
        let price = self.price(model)?;
        let of = |kind| tokens.get(kind).known();
        let amount = match (of(TokenKind::Input), of(TokenKind::Output)) {
            (Some(input), Some(output)) => {
                let cached = |kind, own: Option<f64>| {
                    of(kind).map_or(0.0, |count| millions(count) * own.unwrap_or(price.input))
                };
                millions(input) * price.input
                    + millions(output) * price.output
                    + cached(TokenKind::CachedRead, price.cached_read)
                    + cached(TokenKind::CachedWrite, price.cached_write)
            }
            // Most of what is read and written together is read.
            _ => millions(of(TokenKind::Total)?) * price.input,
        };
        Some(Cost { amount, currency: Arc::clone(&price.currency) })
    }

    /// By the whole id, or by its name alone: without maker, date and variant.
    pub fn price(&self, model: &str) -> Option<&Price> {
        let model = model.to_lowercase();
        self.by_model.get(&model).or_else(|| {
            let name = model.rsplit('/').next().unwrap_or_default();
            let name = name.split(['[', ':', '@']).next().unwrap_or_default();
            self.by_model.get(name).or_else(|| self.by_model.get(without_date(name)))
        })
    }
}

/// Without `-latest`, `-20250929` or `-2025-08-07` at its end.
fn without_date(name: &str) -> &str {
    if let Some(name) = name.strip_suffix("-latest") {
        return name;
    }
    let digits_at = |from: usize| name.get(name.len().wrapping_sub(from)..);
    let is_date = |from: usize, dashes: [usize; 2]| {
        digits_at(from).is_some_and(|end| {
            end.bytes().enumerate().all(|(at, byte)| match byte {
                b'-' => at == 0 || dashes.contains(&at),
                _ => byte.is_ascii_digit() && at != 0 && !dashes.contains(&at),
            })
        })
    };
    for (length, dashes) in [(9, [0, 0]), (11, [5, 8])] {
        if name.len() > length && is_date(length, dashes) {
            return &name[..name.len() - length];
        }
    }
    name
}

#[expect(clippy::cast_precision_loss, reason = "prices are not that exact")]
fn millions(count: u64) -> f64 {
    count as f64 / 1e6
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::model::Figure;

    fn price(input: f64, output: f64, cached_read: Option<f64>) -> Price {
        Price { input, output, cached_read, cached_write: None, currency: "USD".into() }
    }

    fn list() -> PriceList {
        PriceList::new([
            ("claude-sonnet-4-5".to_owned(), price(3.0, 15.0, Some(0.3))),
            ("Fake/Special:free".to_owned(), price(0.0, 0.0, None)),
        ])
    }

    #[test]
    fn a_model_is_found_by_its_id_or_its_name() {
        let list = list();
        for (model, is_found) in [
            ("claude-sonnet-4-5", true),
            ("anthropic/Claude-Sonnet-4-5", true),
            ("us.x/anthropic/claude-sonnet-4-5@20250929", true),
            ("claude-sonnet-4-5-20250929", true),
            ("claude-sonnet-4-5-2025-09-29", true),
            ("claude-sonnet-4-5[1m]", true),
            ("claude-sonnet-4-5-latest", true),
            ("fake/special:free", true),
            ("claude-sonnet-4-5-turbo", false),
            ("claude-sonnet-4", false),
            ("-20250929", false),
            ("é-20250929", false),
            ("", false),
        ] {
            assert_eq!(list.price(model).is_some(), is_found, "{model}");
        }
    }

    #[test]
    fn each_kind_has_its_price() {
        let mut tokens = Tokens::default();
        assert_eq!(list().cost("claude-sonnet-4-5", &tokens), None, "unknown is not free");
        tokens.set(TokenKind::Total, Figure::Estimated { least: 0, most: 2_000_000 });
        let is = |tokens: &Tokens, amount: f64| {
            let cost = list().cost("claude-sonnet-4-5", tokens).unwrap().amount;
            assert!((cost - amount).abs() < 1e-9, "{cost}");
        };
        is(&tokens, 6.0);
        tokens.set(TokenKind::Input, Figure::Measured(1_000_000));
        tokens.set(TokenKind::CachedRead, Figure::Measured(10_000_000));
        tokens.set(TokenKind::CachedWrite, Figure::Measured(1_000_000));
        tokens.set(TokenKind::Output, Figure::Measured(2_000_000));
        is(&tokens, 39.0);
    }
}
