//! What the inbox holds of an activity: what the map needs to know, and no more.

use std::sync::Arc;

use crate::model::{Action, ActivityKind, Lines, Model, Source, Touch, Usage};

#[derive(Clone, PartialEq, Debug)]
pub(super) enum SessionInput {
    Opened,
    Closed,
    /// One touch, or all those of a path between two events whose order matters.
    Touched {
        path: Arc<str>,
        /// The last one.
        touch: Touch,
        /// The weightiest of them.
        weight: Weight,
        /// Of all of them, as far as they are known.
        lines: Lines,
        /// Those of its lines that its agent says it wrote; None if it says nothing like that.
        edited: Option<Lines>,
        written: WriteSource,
    },
    /// More is known of a write that a touch told of.
    Wrote {
        path: Arc<str>,
        written: WriteSource,
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

/// Who tells of a write.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct WriteSource {
    /// The agent.
    pub(super) claimed: bool,
    /// The disk, the kernel or the client that wrote it.
    pub(super) seen: bool,
}

impl WriteSource {
    pub(super) fn and(self, other: Self) -> Self {
        Self { claimed: self.claimed || other.claimed, seen: self.seen || other.seen }
    }
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

impl SessionInput {
    /// None for what the map has no use for.
    pub(super) fn from_activity(kind: ActivityKind) -> Option<Self> {
        Some(match kind {
            ActivityKind::Opened => Self::Opened,
            ActivityKind::Closed => Self::Closed,
            ActivityKind::Touched { path, touch, source, lines } => {
                Self::touched(path, touch, source, lines)
            }
            // By now it is written: a call may wait for long between its first word and that.
            ActivityKind::Performed { path, action: Action::Write } => {
                Self::Wrote { path, written: WriteSource { claimed: true, seen: false } }
            }
            ActivityKind::Written { path } => {
                Self::Wrote { path, written: WriteSource { claimed: true, seen: true } }
            }
            // A read follows a `Touched`; the others are the relay's to act on.
            ActivityKind::Performed { action: Action::Read, .. }
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
        Self::Touched {
            path,
            touch: Touch::Blocked,
            weight: Weight::Marked,
            lines: Lines::default(),
            edited: None,
            written: WriteSource::default(),
        }
    }

    fn touched(path: Arc<str>, touch: Touch, source: Source, lines: Lines) -> Self {
        let weight = match (touch, source) {
            (Touch::Blocked, _) | (Touch::Write, Source::Kernel) => Weight::Marked,
            (_, Source::Kernel) => Weight::Glimpsed,
            _ => Weight::Accessed,
        };
        let (writes, by_kernel) = (touch == Touch::Write, source == Source::Kernel);
        let written = WriteSource { claimed: writes && !by_kernel, seen: writes && by_kernel };
        let edited = written.claimed.then(|| lines.clone());
        Self::Touched { path, touch, weight, lines, edited, written }
    }
}
