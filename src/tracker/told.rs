//! What the inbox holds of an activity: what the map needs to know, and no more.

use std::sync::Arc;

use crate::model::{ActivityKind, Model, Source, Touch, Usage};

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Told {
    Opened,
    Closed,
    /// One touch, or all those of a path between two events whose order matters.
    Touched {
        path: Arc<str>,
        /// The last one.
        touch: Touch,
        /// The weightiest of them.
        weight: Weight,
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

/// What a touch does beside heating its path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Weight {
    /// Nothing, and a file in context stays all as it is: the kernel saw it read, as it sees many
    /// files that no agent does.
    Glimpsed,
    /// Leaves the context as it is: a blocked try, or a write that the kernel saw.
    Marked,
    /// Puts it into the context.
    Accessed,
}

impl Told {
    /// None for what the map has no use for.
    pub(super) fn from_activity(kind: ActivityKind) -> Option<Self> {
        Some(match kind {
            ActivityKind::Opened => Self::Opened,
            ActivityKind::Closed => Self::Closed,
            ActivityKind::Touched { path, touch, source } => Self::touched(path, touch, source),
            // `Performed` follows a `Touched`; the others are the relay's to act on.
            ActivityKind::Performed { .. }
            | ActivityKind::Runs { .. }
            | ActivityKind::Ran { .. }
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

    pub(super) fn blocked(path: Arc<str>) -> Self {
        Self::Touched { path, touch: Touch::Blocked, weight: Weight::Marked }
    }

    fn touched(path: Arc<str>, touch: Touch, source: Source) -> Self {
        let weight = match (touch, source) {
            (Touch::Blocked, _) | (Touch::Write, Source::Kernel) => Weight::Marked,
            (_, Source::Kernel) => Weight::Glimpsed,
            _ => Weight::Accessed,
        };
        Self::Touched { path, touch, weight }
    }
}
