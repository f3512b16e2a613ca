//! `[prices]`: what models cost, over the dated list that ships (`prices.toml`).

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;

use super::errors::{code, quoted};
use super::fault::Fault;
use super::read::Table;
use crate::model::Price;

/// The highest price of a million tokens.
const MOST: f64 = 1e9;

#[derive(Deserialize)]
struct ListedPrices {
    date: String,
    currency: String,
    models: BTreeMap<String, ListPrice>,
}

#[derive(Deserialize)]
struct ListPrice {
    input: f64,
    output: f64,
    cached_read: Option<f64>,
    cached_write: Option<f64>,
}

#[expect(clippy::expect_used, reason = "the text is part of the program, and a test reads it")]
static SNAPSHOT: LazyLock<ListedPrices> =
    LazyLock::new(|| toml::from_str(include_str!("prices.toml")).expect("prices.toml is valid"));

/// The day of the list that ships.
pub fn prices_date() -> &'static str {
    &SNAPSHOT.date
}

/// The list that ships.
pub(super) fn built_in() -> BTreeMap<String, Price> {
    let currency: Arc<str> = SNAPSHOT.currency.as_str().into();
    let price = |(model, list): (&String, &ListPrice)| {
        let price = Price {
            input: list.input,
            output: list.output,
            cached_read: list.cached_read,
            cached_write: list.cached_write,
            currency: Arc::clone(&currency),
        };
        (model.clone(), price)
    };
    SNAPSHOT.models.iter().map(price).collect()
}

/// Reads the file's prices.
pub(super) fn prices(table: &Table<'_>) -> BTreeMap<String, Price> {
    let mut prices = BTreeMap::new();
    for (model, item) in table.entries() {
        if let Some(Some(price)) = table.entry(item, "prices.MODEL", price) {
            prices.insert(model.value.to_lowercase(), price);
        }
    }
    prices
}

fn price(table: &Table<'_>) -> Option<Price> {
    let amount = |key| {
        let valid = |amount: f64| (0.0..=MOST).contains(&amount);
        let amount = table.number(key, valid, "a price from 0 to 1000000000", 0.0);
        table.place_of(key).map(|_| amount)
    };
    let (input, output) = (amount("input"), amount("output"));
    let (cached_read, cached_write) = (amount("cached_read"), amount("cached_write"));
    let currency = currency(table);
    for (key, price) in [("input", input), ("output", output)] {
        if price.is_none() {
            let help = "write the price of a million tokens, such as `input = 3.0`";
            table.lacks(format!("this price has no {}", code(key)), help);
        }
    }
    let (input, output) = (input?, output?);
    Some(Price { input, output, cached_read, cached_write, currency })
}

/// A code of ISO 4217; US dollars if there is none.
pub(super) fn currency(table: &Table<'_>) -> Arc<str> {
    let Some(currency) = table.text("currency") else { return "USD".into() };
    let is_code =
        currency.value.len() == 3 && currency.value.bytes().all(|it| it.is_ascii_uppercase());
    if !is_code {
        let message = format!("{} is no code of a currency", quoted(&currency.value));
        let help = "write three capital letters, such as \"USD\" or \"EUR\"";
        table.fault(Fault::new(currency.span, message).help(help));
    }
    currency.value.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_that_ships_is_dated_and_plausible() {
        assert_eq!(prices_date().len(), "2025-11-25".len());
        for (model, price) in built_in() {
            assert_eq!(model, model.to_lowercase());
            assert!(price.input > 0.0 && price.output >= price.input, "{model}");
            assert!(price.cached_read.is_none_or(|read| read < price.input), "{model}");
        }
    }
}
