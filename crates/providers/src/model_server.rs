//! A deterministic server of model APIs, for tests and trials without a model: it plays a script, breaks where the
//! script says so, and counts the usage that it reported.
//!
//! Owns the script's format (`docs/model-server.md`) and the vendors' forms of answers, errors and usage. Knows
//! neither agents, nor who asks.

mod answer;
mod api;
mod asked;
mod body;
mod frames;
mod ids;
mod keys;
mod log;
mod parse;
mod play;
mod schema;
mod script;
mod serve;
mod tally;
mod troubles;
mod usage;
mod voice;

pub use api::ModelApi;
pub use keys::ExpectedKey;
pub use parse::ModelScriptError;
pub use script::ModelScript;
pub use serve::{ModelServer, ModelServerSettings};
pub use tally::{CountedCall, ModelCount, ModelSum, PlayedEnd};
pub use usage::ModelTokens;

#[cfg(test)]
mod tests;
