//! The turns of one session: when they began, and whether their first output came.

use std::collections::VecDeque;

use super::seconds;
use crate::metrics::catalog::Metric;
use crate::metrics::labels;
use crate::metrics::series::Series;
use crate::model::TimestampMs;

/// Turns of a session at once; further ones are not timed.
const MOST: usize = 64;

#[derive(Default, Debug)]
pub(super) struct TimedTurns {
    /// Without an end, oldest first.
    begun: VecDeque<TimestampMs>,
    /// When the turn began whose first output is to come.
    awaited: Option<TimestampMs>,
}

impl TimedTurns {
    pub(super) fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }

    pub(super) fn began(&mut self, at: TimestampMs) {
        if self.begun.len() < MOST {
            self.begun.push_back(at);
            self.awaited = Some(at);
        }
    }

    /// Output of the agent came.
    pub(super) fn output(&mut self, at: TimestampMs, series: &mut Series) {
        if let Some(began) = self.awaited.take() {
            series.observe(Metric::TimeToFirstChunk, [], seconds(began, at));
        }
    }

    pub(super) fn ended(&mut self, stop_reason: &str, now: TimestampMs, series: &mut Series) {
        // One whose begin was missed has no duration.
        if let Some(began) = self.begun.pop_front() {
            let reason = labels::stop_reason(stop_reason);
            series.observe(Metric::TurnDuration, [reason.into()], seconds(began, now));
        }
        if self.begun.is_empty() {
            self.awaited = None;
        }
    }
}
