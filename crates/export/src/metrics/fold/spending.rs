//! The tokens and costs of model calls.

use crate::metrics::catalog::Metric;
use crate::metrics::labels::{Names, OTHER};
use crate::metrics::series::Series;
use crate::model::{Charge, Spending, TokenKind, Tokens};

/// The kinds that add up to the total.
const PARTS: [TokenKind; 4] =
    [TokenKind::Input, TokenKind::CachedRead, TokenKind::CachedWrite, TokenKind::Output];

pub(super) fn count(spending: &Spending, names: &mut Names, series: &mut Series) {
    let model = names.model(spending.model.as_deref());
    let known = |tokens: &Tokens, kind| tokens.get(kind).known();
    if let Some(tokens) = &spending.tokens {
        let mut sum: u64 = 0;
        for kind in PARTS.into_iter().chain([TokenKind::Reasoning]) {
            let Some(count) = known(tokens, kind) else { continue };
            series.add(Metric::Tokens, [kind.as_str().into(), model.clone()], count);
            if kind != TokenKind::Reasoning {
                sum = sum.saturating_add(count);
            }
        }
        // Some agents only report the total, or not all of its parts.
        let rest = known(tokens, TokenKind::Total).map_or(0, |total| total.saturating_sub(sum));
        if rest > 0 {
            series.add(Metric::Tokens, [OTHER.into(), model.clone()], rest);
        }
    }
    if let Some(cost) = spending.cost.as_ref().and_then(Charge::known) {
        let currency = names.currency(&cost.currency);
        series.add_real(Metric::Cost, [model, currency], cost.amount);
    }
}
