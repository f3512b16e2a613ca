//! Reads the agent's `usage_update`.

use agent_client_protocol_schema::v1::UsageUpdate;

use super::update::typed;
use crate::extract::json::Members;
use crate::model::{Cost, Usage};

/// A usage update by the protocol's type, or at least its numbers.
pub(super) fn usage(raw: &str, members: &Members<'_>) -> Option<Usage> {
    let cost = |amount: f64, currency: &str| Cost { amount, currency: currency.into() };
    if let Some(usage) = typed::<UsageUpdate>(raw) {
        let cost = usage.cost.map(|given| cost(given.amount, &given.currency));
        return Some(Usage { used: usage.used, size: usage.size, cost });
    }
    let number = |key| members.get(key).and_then(tokens);
    Some(Usage { used: number("used")?, size: number("size").unwrap_or(0), cost: None })
}

/// A count of tokens; some agents write it with a fraction.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
fn tokens(raw: &str) -> Option<u64> {
    let number: f64 = typed(raw)?;
    (0.0..=9e15).contains(&number).then_some(number as u64)
}
