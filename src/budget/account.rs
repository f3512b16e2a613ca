//! The account of one agent.

use std::sync::Arc;

use super::PriceList;
use crate::model::{Charge, Spending};

/// Where an agent's relay reports what its model calls take; cheap to clone.
#[derive(Clone, Default, Debug)]
pub struct Account {
    prices: Arc<PriceList>,
    /// The model of reports that name none.
    model: Option<Arc<str>>,
}

impl Account {
    pub fn new(prices: Arc<PriceList>, model: Option<Arc<str>>) -> Self {
        Self { prices, model }
    }

    /// Adds the cost of a report whose agent does not say it.
    pub fn price(&self, spending: &mut Spending) {
        if spending.model.is_none() {
            spending.model.clone_from(&self.model);
        }
        let (Some(tokens), Some(Charge::Unknown)) = (&spending.tokens, &spending.cost) else {
            return;
        };
        let model = spending.model.as_deref().unwrap_or_default();
        if let Some(cost) = self.prices.cost(model, tokens) {
            spending.cost = Some(Charge::Estimated(cost));
        }
    }
}
