//! Owns an agent's usage: a plugin reports single numbers, ACP all at once.

use std::borrow::Cow;

use eisen_plugin::Usage;
use serde_json::{Value, json};

/// The last value of each number. A missing number keeps its value, since a drop to zero would look
/// like a compacted context.
#[derive(Default)]
pub(super) struct Counted {
    used: Option<u64>,
    size: Option<u64>,
    cost: Option<(f64, String)>,
}

impl Counted {
    /// Merges a count, and returns the ACP update; None if it has no number. Unknown numbers are 0,
    /// since ACP requires them.
    pub(super) fn take(&mut self, usage: Usage<'_>) -> Option<Value> {
        let Usage { used, size, cost, currency } = usage;
        let amount = cost.and_then(|cost| cost.parse().ok()).filter(|cost: &f64| cost.is_finite());
        let currency = || currency.map_or_else(|| "USD".to_owned(), Cow::into_owned);
        let cost = amount.map(|amount| (amount, currency()));
        if (used, size, &cost) == (None, None, &None) {
            return None;
        }
        self.used = used.or(self.used);
        self.size = size.or(self.size);
        self.cost = cost.or_else(|| self.cost.take());
        let (used, size) = (self.used.unwrap_or(0), self.size.unwrap_or(0));
        let update = json!({"sessionUpdate": "usage_update", "used": used, "size": size});
        let Some((amount, currency)) = &self.cost else { return Some(update) };
        let Value::Object(mut update) = update else { return None };
        update.insert("cost".to_owned(), json!({"amount": amount, "currency": currency}));
        Some(update.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(
        used: Option<u64>,
        size: Option<u64>,
        cost: Option<&'static str>,
        currency: Option<&'static str>,
    ) -> Usage<'static> {
        Usage { used, size, cost: cost.map(Into::into), currency: currency.map(Into::into) }
    }

    #[test]
    fn what_is_left_out_still_stands() {
        let counted = &mut Counted::default();
        for (said, used, size, cost) in [
            (usage(None, None, Some("0.5"), None), 0, 0, json!({"amount": 0.5, "currency": "USD"})),
            (usage(Some(7), None, None, None), 7, 0, json!({"amount": 0.5, "currency": "USD"})),
            (
                usage(None, Some(9), Some("1e999"), None),
                7,
                9,
                json!({"amount": 0.5, "currency": "USD"}),
            ),
            (
                usage(Some(0), None, Some("1"), Some("EUR")),
                0,
                9,
                json!({"amount": 1.0, "currency": "EUR"}),
            ),
        ] {
            let update =
                json!({"sessionUpdate": "usage_update", "used": used, "size": size, "cost": cost});
            assert_eq!(counted.take(said), Some(update));
        }
    }

    #[test]
    fn what_says_nothing_makes_no_update() {
        let counted = &mut Counted::default();
        assert_eq!(counted.take(Usage::default()), None);
        assert_eq!(counted.take(usage(None, None, Some("a lot"), Some("USD"))), None);
        let update = json!({"sessionUpdate": "usage_update", "used": 3, "size": 0});
        assert_eq!(counted.take(usage(Some(3), None, None, None)), Some(update));
    }
}
