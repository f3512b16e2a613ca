//! Owns what model calls cost.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sums of what was reported since the team began. A figure that no report had is null.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Spent<'a> {
    /// Tokens that the models read, neither from nor into a cache.
    pub input: Option<u64>,
    pub cached_read: Option<u64>,
    pub cached_write: Option<u64>,
    /// Tokens that they wrote, reasoning included.
    pub output: Option<u64>,
    /// A part of `output`.
    pub reasoning: Option<u64>,
    /// `input`, `cached_read`, `cached_write` and `output`.
    pub total: Option<u64>,
    /// One for each currency; empty if no report had a cost.
    #[serde(default)]
    pub cost: Vec<Cost<'a>>,
    /// Names of the figures that are estimated, or partly so.
    #[serde(default)]
    pub estimated: Vec<Cow<'static, str>>,
    /// Names of the figures that some reports did not have: they are too low.
    #[serde(default)]
    pub incomplete: Vec<Cow<'static, str>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Cost<'a> {
    pub amount: f64,
    /// ISO 4217 code.
    pub currency: Cow<'a, str>,
}
