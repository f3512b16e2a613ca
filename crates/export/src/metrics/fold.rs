//! Folds events of the bus into series. Pure: the caller passes the time.

mod accesses;
mod calls;
mod spending;
mod turns;

use std::collections::HashMap;

use self::accesses::Accesses;
use self::calls::TimedCalls;
use self::turns::TimedTurns;
use super::catalog::Metric;
use super::labels::{Names, OUTCOMES};
use super::series::Series;
use crate::model::{Event, Record, SessionKey, TimestampMs};

/// Sessions that are followed at once: those with a turn, or with open calls. Further ones are not
/// timed.
const MOST_SESSIONS: usize = 4_096;

#[derive(Debug)]
pub(super) struct MetricsFold {
    series: Series,
    sessions: HashMap<SessionKey, FollowedSession>,
    accesses: Accesses,
    names: Names,
}

#[derive(Default, Debug)]
struct FollowedSession {
    turns: TimedTurns,
    calls: TimedCalls,
    /// The session is being loaded: its updates repeat earlier ones.
    replays: bool,
}

impl FollowedSession {
    fn is_idle(&self) -> bool {
        self.turns.is_empty() && self.calls.is_empty() && !self.replays
    }
}

impl Default for MetricsFold {
    /// Counters whose labels are known begin at zero: what appears at one has not grown.
    fn default() -> Self {
        let mut series = Series::default();
        for outcome in OUTCOMES {
            series.add(Metric::Decisions, [outcome.into()], 0);
        }
        for metric in [Metric::InputsDropped, Metric::MetricsMissed] {
            series.add(metric, [], 0);
        }
        let (sessions, accesses, names) = <(HashMap<_, _>, Accesses, Names)>::default();
        Self { series, sessions, accesses, names }
    }
}

impl MetricsFold {
    pub(super) fn series(&self) -> &Series {
        &self.series
    }

    /// The sessions that are followed.
    #[cfg(test)]
    pub(super) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// The accesses that are remembered.
    #[cfg(test)]
    pub(super) fn accesses(&self) -> usize {
        self.accesses.len()
    }

    pub(super) fn event(&mut self, event: &Event, now: TimestampMs) {
        match event {
            Event::Record { key, record, timestamp_ms, .. } => {
                self.record(key, record, *timestamp_ms);
            }
            Event::Turn(ended) => {
                self.with_session(&ended.key, |session, series| {
                    session.turns.ended(&ended.stop_reason, now, series);
                    session.calls.turn_ended();
                });
            }
            Event::Blocked(access) => self.accesses.changed(access, now, &mut self.series),
            _ => {}
        }
    }

    /// Notes that events were missed. What began before may have ended since.
    pub(super) fn missed(&mut self, events: u64) {
        self.series.add(Metric::MetricsMissed, [], events);
        self.sessions.clear();
    }

    fn record(&mut self, key: &SessionKey, record: &Record, at: TimestampMs) {
        match record {
            Record::TurnBegan => self.with_session(key, |session, _| session.turns.began(at)),
            Record::Replays(replays) => {
                self.with_session(key, |session, _| session.replays = *replays);
            }
            Record::Update(update) => {
                self.with_session(key, |session, series| {
                    if !session.replays {
                        calls::update(update, session, at, series);
                    }
                });
            }
            Record::Closed => drop(self.sessions.remove(key)),
            Record::Spent(spending) => {
                spending::count(spending, &mut self.names, &mut self.series);
            }
            Record::Decided(decided) => self.accesses.decided(decided, at, &mut self.series),
            Record::Dropped(inputs) => self.series.add(Metric::InputsDropped, [], *inputs),
            _ => {}
        }
    }

    /// Changes a session, which is kept while it has something to wait for.
    fn with_session(
        &mut self,
        key: &SessionKey,
        change: impl FnOnce(&mut FollowedSession, &mut Series),
    ) {
        if let Some(session) = self.sessions.get_mut(key) {
            change(session, &mut self.series);
            if session.is_idle() {
                self.sessions.remove(key);
            }
            return;
        }
        let mut session = FollowedSession::default();
        change(&mut session, &mut self.series);
        if !session.is_idle() && self.sessions.len() < MOST_SESSIONS {
            self.sessions.insert(key.clone(), session);
        }
    }
}

/// The time between two moments; zero if the clock was set back.
fn seconds(from: TimestampMs, to: TimestampMs) -> f64 {
    std::time::Duration::from_millis(to.saturating_sub(from)).as_secs_f64()
}
