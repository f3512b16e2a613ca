//! The `stream` line.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Message, line};
use crate::model::{StreamKind, StreamReport, StreamState};

/// A stream, as it stands.
#[derive(Serialize, JsonSchema)]
pub(in crate::serve) struct StreamStatus<'a> {
    name: &'a str,
    #[schemars(extend("enum" = StreamKind::ALL.map(StreamKind::as_str)))]
    kind: &'a str,
    #[schemars(extend("enum" = StreamState::ALL.map(StreamState::as_str)))]
    state: &'a str,
    /// Why the last delivery failed; null: it did not.
    reason: Option<&'a str>,
    /// Deliveries that failed in a row.
    failures: u32,
    /// Events since the team began.
    delivered: u64,
    /// Events that left the journal before they were delivered.
    lost: u64,
    /// Events that the receiver refused for good.
    dead: u64,
    /// The number in the journal up to which all is delivered; null: not known yet.
    position: Option<u64>,
    /// When the state changed.
    timestamp_ms: u64,
}

impl<'a> From<&'a StreamReport> for StreamStatus<'a> {
    fn from(report: &'a StreamReport) -> Self {
        Self {
            name: &report.name,
            kind: report.kind.as_str(),
            state: report.state.as_str(),
            reason: report.reason.as_deref(),
            failures: report.failures,
            delivered: report.delivered,
            lost: report.lost,
            dead: report.dead,
            position: report.position,
            timestamp_ms: report.timestamp_ms,
        }
    }
}

pub(in crate::serve) fn stream(report: &StreamReport) -> Bytes {
    line(&Message::Stream(report.into()))
}
