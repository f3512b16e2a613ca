//! What the inbox holds of an activity: what the map needs to know, and no more.

use std::sync::Arc;

use crate::model::{ActivityKind, Model, Touch, Usage};

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Told {
    Opened,
    Closed,
    /// One touch, or all those of a path between two events whose order matters.
    Touched {
        path: Arc<str>,
        /// The last one.
        touch: Touch,
        /// Whether any of them was an access, not only a blocked try.
        accessed: bool,
    },
    /// One report, or several of which each but the first counts no fewer tokens than the one
    /// before.
    Usage {
        /// `used` of the first: only that one can tell of a compaction.
        first_used: u64,
        /// The last one.
        usage: Usage,
    },
    Model(Model),
    Compacted,
    TurnBegan,
    TurnEnded {
        stop_reason: Arc<str>,
        reason: Option<Arc<str>>,
    },
    Update(Arc<str>),
}

impl Told {
    /// None for what the map has no use for.
    pub(super) fn from_activity(kind: ActivityKind) -> Option<Self> {
        Some(match kind {
            ActivityKind::Opened => Self::Opened,
            ActivityKind::Closed => Self::Closed,
            ActivityKind::Touched { path, touch, source: _ } => Self::touched(path, touch),
            // `Performed` follows a `Touched`; the others are the relay's to act on.
            ActivityKind::Performed { .. }
            | ActivityKind::CancelRequested
            | ActivityKind::RequestCancelled { .. } => return None,
            ActivityKind::Usage(usage) => Self::Usage { first_used: usage.used, usage },
            ActivityKind::Model(model) => Self::Model(model),
            ActivityKind::Compacted => Self::Compacted,
            ActivityKind::TurnBegan => Self::TurnBegan,
            ActivityKind::TurnEnded { stop_reason, reason } => {
                Self::TurnEnded { stop_reason, reason }
            }
            ActivityKind::Update(update) => Self::Update(update),
        })
    }

    pub(super) fn touched(path: Arc<str>, touch: Touch) -> Self {
        Self::Touched { path, touch, accessed: touch != Touch::Blocked }
    }
}
