//! The `loop` line.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Message, SessionHeader, line};
use crate::model::{LoopKind, LoopReport, OnLoop};

/// A session that goes in a loop: noted, or acted on.
#[derive(Serialize, JsonSchema)]
pub(in crate::serve) struct Looped<'a> {
    #[serde(flatten)]
    session: SessionHeader<'a>,
    #[schemars(extend("enum" = LoopKind::ALL.map(LoopKind::as_str)))]
    kind: &'a str,
    /// How often it came.
    times: u64,
    /// Titles of the calls; empty for a message.
    calls: Vec<&'a str>,
    /// What followed, as in `on_loop`; null: it was only noted.
    #[schemars(extend("enum" = ["report", "nudge", "cancel", "stop", null]))]
    action: Option<&'a str>,
    timestamp_ms: u64,
}

pub(in crate::serve) fn looped(report: &LoopReport) -> Bytes {
    let found = &report.found;
    line(&Message::Loop(Looped {
        session: SessionHeader::new(&report.key, report.mode),
        kind: found.kind.as_str(),
        times: found.times,
        calls: found.calls.iter().map(|title| &**title).collect(),
        action: found.action.map(OnLoop::as_str),
        timestamp_ms: report.timestamp_ms,
    }))
}
