//! Blocked accesses: the statuses that they came into, and how long they waited.

use std::collections::{HashMap, VecDeque};

use super::seconds;
use crate::metrics::catalog::Metric;
use crate::metrics::series::Series;
use crate::model::{BlockedAccess, BlockedId, BlockedStatus, Decided, TimestampMs};

/// Accesses that are remembered, as long as routing remembers them. Past that the oldest are
/// forgotten, and a later change of one counts as a new access.
const MOST: usize = 20_000;

#[derive(Default, Debug)]
pub(super) struct Accesses {
    seen: HashMap<BlockedId, KnownAccess>,
    /// From the oldest.
    order: VecDeque<BlockedId>,
}

#[derive(Debug)]
struct KnownAccess {
    status: BlockedStatus,
    /// The accesses that it stands for.
    count: u64,
    /// Since when it waits for a decision, if it does.
    waits: Option<TimestampMs>,
}

impl Accesses {
    /// An access has a new status, or its line is repeated with a new count.
    pub(super) fn changed(
        &mut self,
        access: &BlockedAccess,
        now: TimestampMs,
        series: &mut Series,
    ) {
        let count = access.sweep.unwrap_or(1);
        let waits = (access.status == BlockedStatus::Pending).then_some(access.timestamp_ms);
        let new = KnownAccess { status: access.status, count, waits };
        let more = match self.seen.get_mut(&access.id) {
            Some(seen) if seen.status == access.status => {
                let more = count.saturating_sub(seen.count);
                seen.count = seen.count.max(count);
                more
            }
            Some(seen) => {
                if let Some(since) = std::mem::replace(seen, new).waits {
                    waited(since, now, undecided(access.status), series);
                }
                1
            }
            None => {
                self.remember(access.id.clone(), new);
                count
            }
        };
        let labels = [access.via.as_str().into(), access.status.as_str().into()];
        if more > 0 {
            series.add(Metric::AccessesBlocked, labels, more);
        }
    }

    /// Somebody decided an access. The event of its new status follows, if it is new.
    pub(super) fn decided(&mut self, decided: &Decided, at: TimestampMs, series: &mut Series) {
        let outcome = decided.access.status.as_str();
        let seen = self.seen.get_mut(&decided.access.id);
        match seen.and_then(|seen| seen.waits.take()) {
            Some(since) => waited(since, at, outcome, series),
            // It was denied at once, and is allowed for the next time.
            None => series.add(Metric::Decisions, [outcome.into()], 1),
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.seen.len()
    }

    fn remember(&mut self, id: BlockedId, seen: KnownAccess) {
        if self.order.len() >= MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        self.order.push_back(id.clone());
        self.seen.insert(id, seen);
    }
}

/// A wait ended.
fn waited(since: TimestampMs, at: TimestampMs, outcome: &'static str, series: &mut Series) {
    series.observe(Metric::DecisionWait, [], seconds(since, at));
    series.add(Metric::Decisions, [outcome.into()], 1);
}

/// The outcome of a wait that nobody's decision ended.
fn undecided(status: BlockedStatus) -> &'static str {
    match status {
        BlockedStatus::Denied => "timed_out",
        status => status.as_str(),
    }
}
