//! The tracker's inputs: the part of an activity that the map needs.

use std::sync::Arc;

use crate::model::{
    Action, ActivityKind, Lines, Loop, Model, Record, Source, Spending, TimestampMs, Touch, Usage,
};

#[derive(Clone, PartialEq, Debug)]
pub(super) enum SessionInput {
    Opened {
        is_new: bool,
    },
    Closed,
    /// One touch, or all those of a path between two events whose order matters.
    Touched {
        path: Arc<str>,
        /// The last one.
        touch: Touch,
        /// The greatest of them.
        weight: Weight,
        /// The known lines of all of them.
        lines: Lines,
        /// The lines that the agent claims to have written; None without such a claim.
        edited: Option<Lines>,
        written: WriteSource,
    },
    /// Another source for a write that a touch recorded.
    Wrote {
        path: Arc<str>,
        written: WriteSource,
    },
    /// One usage, or several merged ones with growing counts.
    Usage {
        /// `used` of the first: only that one can mean a compaction, and a past one can't.
        first_used: u64,
        /// The last one.
        usage: Usage,
    },
    /// With the time at which the call began, where it is known.
    Spent(Spending, Option<TimestampMs>),
    Looped(Loop),
    Model(Model),
    Compacted,
    TurnBegan,
    TurnEnded {
        stop_reason: Arc<str>,
        reason: Option<Arc<str>>,
    },
    Update(Arc<str>),
    /// For the journal only.
    Record(Record),
}

/// The sources of a write.
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

/// The effect of a touch on the context.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Weight {
    /// A read seen by the kernel, maybe irrelevant: ignored for a file in context.
    Glimpsed,
    /// A blocked access, or a write seen by the kernel: leaves the context as it is.
    Marked,
    /// Puts the file into the context.
    Accessed,
}

impl SessionInput {
    /// None for activities that the map does not use.
    pub(super) fn from_activity(kind: ActivityKind) -> Option<Self> {
        Some(match kind {
            ActivityKind::Opened { is_new } => Self::Opened { is_new },
            ActivityKind::Closed => Self::Closed,
            ActivityKind::Touched { path, touch, source, lines } => {
                Self::touched(path, touch, source, lines)
            }
            // The write itself can come long after the call's first message.
            ActivityKind::Performed { path, action: Action::Write, .. } => {
                Self::Wrote { path, written: WriteSource { claimed: true, seen: false } }
            }
            ActivityKind::Written { path } => {
                Self::Wrote { path, written: WriteSource { claimed: true, seen: true } }
            }
            // A `Touched` recorded the read; the relay handles the others.
            ActivityKind::Performed { action: Action::Read, .. }
            | ActivityKind::Runs { .. }
            | ActivityKind::Ran { .. }
            | ActivityKind::Foreseen { .. }
            | ActivityKind::Step(_)
            | ActivityKind::Troubled { .. }
            | ActivityKind::CancelRequested
            | ActivityKind::RequestCancelled { .. } => return None,
            ActivityKind::Usage { usage, is_past } => {
                let first_used = if is_past { u64::MAX } else { usage.used };
                Self::Usage { first_used, usage }
            }
            ActivityKind::Spent(spending) => Self::Spent(spending, None),
            ActivityKind::Looped(found) => Self::Looped(found),
            ActivityKind::Model(model) => Self::Model(model),
            ActivityKind::Compacted => Self::Compacted,
            ActivityKind::TurnBegan => Self::TurnBegan,
            ActivityKind::TurnEnded { stop_reason, reason } => {
                Self::TurnEnded { stop_reason, reason }
            }
            ActivityKind::Update(update) => Self::Update(update),
            ActivityKind::Record(record) => Self::Record(record),
        })
    }

    /// The record of it for the journal.
    pub(super) fn record(&self) -> Option<Record> {
        Some(match self {
            Self::Opened { is_new } => Record::Opened { is_new: *is_new },
            Self::Closed => Record::Closed,
            Self::Usage { usage, .. } => Record::Usage(usage.clone()),
            // A turn's end without a report says as much.
            Self::Spent(spending, _)
                if spending.is_known() || *spending == Spending::uncounted() =>
            {
                Record::Spent(spending.clone())
            }
            Self::Model(model) => Record::Model(model.clone()),
            Self::Compacted => Record::Compacted,
            Self::TurnBegan => Record::TurnBegan,
            Self::Update(update) => Record::Update(Arc::clone(update)),
            Self::Record(record) => record.clone(),
            // A `turn` event is published, or one of a loop.
            Self::TurnEnded { .. }
            | Self::Looped(_)
            | Self::Spent(..)
            | Self::Touched { .. }
            | Self::Wrote { .. } => return None,
        })
    }

    /// The time that tells its turn: a model's call is of the turn in which it began, and what is reported between
    /// turns is of the last one. None: it is of the current turn.
    pub(super) fn of_time(&self, at: TimestampMs) -> Option<TimestampMs> {
        match self {
            Self::Spent(_, began) => Some(began.unwrap_or(at)),
            Self::Record(Record::ModelCall(call)) => Some(call.began),
            _ => None,
        }
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
