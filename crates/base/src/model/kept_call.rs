//! A call of a model with its bodies, for the journal.

use std::sync::Arc;
use std::time::Duration;

use super::TimestampMs;

/// A call that went by a team's endpoint, whose provider records. Its texts are masked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptCall {
    /// The time at which it began: its turn is the one that ran then.
    pub began: TimestampMs,
    /// The name of the provider.
    pub provider: Arc<str>,
    /// The model, as the agent asked for it.
    pub model: Option<Arc<str>>,
    /// The status of the answer; None: there was none.
    pub status: Option<u16>,
    /// The way in which it ended, in a word.
    pub end: &'static str,
    /// The time to the first byte of the answer's body; None: none came.
    pub first_byte: Option<Duration>,
    /// The time to its end.
    pub took: Duration,
    /// The body of the request.
    pub request: String,
    /// The body of the answer.
    pub answer: String,
    /// A part of the request, or of the answer, is missing.
    pub is_cut: bool,
}
