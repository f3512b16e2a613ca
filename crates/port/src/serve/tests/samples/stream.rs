//! A stream.

use super::NOW;
use crate::model::{StreamKind, StreamReport, StreamState};

pub(in crate::serve) fn stream() -> StreamReport {
    StreamReport {
        name: "audit".into(),
        kind: StreamKind::File,
        state: StreamState::Degraded,
        reason: Some(
            "cannot write /logs/audit.ndjson: No space left on device (os error 28)".into(),
        ),
        failures: 5,
        delivered: 120,
        lost: 0,
        dead: 0,
        position: Some(131),
        timestamp_ms: NOW,
    }
}
