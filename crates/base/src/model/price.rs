//! The price of a model's tokens.

use std::sync::Arc;

/// For a million tokens each.
#[derive(Clone, PartialEq, Debug)]
pub struct Price {
    /// The price of tokens that the model reads, neither from nor into a cache.
    pub input: f64,
    /// The price of tokens that the model writes, reasoning included.
    pub output: f64,
    /// None: as input.
    pub cached_read: Option<f64>,
    /// None: as input.
    pub cached_write: Option<f64>,
    /// ISO 4217 code.
    pub currency: Arc<str>,
}
