//! Owns the parts of answers and lines of the port that the dashboard takes as they are.

use serde::Deserialize;
use serde_json::Value;

use crate::acp::Complaint;
use crate::line::lenient;

/// An answer of the port.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AnswerParts {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<u64>,
    /// Any JSON.
    pub(super) result: Value,
    #[serde(deserialize_with = "lenient")]
    pub(super) error: Complaint,
}
