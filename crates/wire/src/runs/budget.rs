//! The limits of a run, as they are asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// Totals, as in `[agents.budget]`.
#[derive(Clone, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunBudget {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    // As it was written: the configuration takes a whole number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub minutes: Option<Number>,
}

impl RunBudget {
    /// One limit, as `--budget` has it: `KEY=VALUE`.
    pub fn limit(text: &str) -> Result<(String, Number), String> {
        const KEYS: [&str; 4] = ["tokens", "cost", "turns", "minutes"];
        let (key, value) =
            text.split_once('=').ok_or("write KEY=VALUE, such as `tokens=200000`")?;
        if !KEYS.contains(&key) {
            return Err(format!("there is no limit `{key}`; there are {}", KEYS.join(", ")));
        }
        let number = match value.parse::<i64>() {
            Ok(whole) => Some(whole.into()),
            Err(_) => value.parse().ok().and_then(Number::from_f64),
        };
        let number = number.ok_or_else(|| format!("`{value}` is no number"))?;
        Ok((key.to_owned(), number))
    }

    /// All limits; of those with one key the last counts.
    pub fn of(limits: Vec<(String, Number)>) -> Result<Self, serde_json::Error> {
        let limits = limits.into_iter().map(|(key, number)| (key, number.into()));
        serde_json::from_value(Value::Object(limits.collect::<Map<_, _>>()))
    }
}
