//! The spending of a session.

use super::key;
use crate::model::{
    Charge, Cost, Figure, SessionMode, Spending, Spent, TokenKind, Tokens, Usage, UsageReport,
};

/// A turn that its agent reports whole, and one that it does not.
pub(super) fn spent() -> Spent {
    let tokens = Tokens::of(|kind| match kind {
        TokenKind::Input => Figure::Measured(4_000),
        TokenKind::CachedRead => Figure::Measured(36_000),
        TokenKind::CachedWrite => Figure::Unknown,
        TokenKind::Output => Figure::Measured(1_200),
        TokenKind::Reasoning => Figure::Measured(300),
        TokenKind::Total => Figure::Measured(41_200),
    });
    let cost = Cost { amount: 0.042, currency: "USD".into() };
    let mut spent = Spent::default();
    let cost = Some(Charge::Measured(cost));
    spent.add(&Spending { model: None, tokens: Some(tokens), cost });
    spent
}

pub(in crate::serve) fn usage() -> UsageReport {
    UsageReport {
        key: key("ui", "s-ui"),
        mode: SessionMode::SingleAgent,
        usage: Some(Usage {
            used: 12_000,
            size: 200_000,
            cost: Some(Cost { amount: 0.042, currency: "USD".into() }),
        }),
        spent: spent(),
    }
}
