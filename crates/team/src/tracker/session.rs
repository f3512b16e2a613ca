//! One session: its map, turn counter, usage and delta number. Does not know other sessions.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::Settings;
use super::heat::{Changes, HeatMap};
use crate::bus::Rendered;
use crate::model::{
    Delta, Model, SessionKey, SessionMode, Snapshot, Spending, Spent, TimestampMs, Usage,
    UsageReport,
};

/// Turns of a session whose beginnings are known; a call that began before them is of the oldest.
const MOST_BEGUN: usize = 64;

#[derive(Debug)]
pub(super) struct TrackedSession {
    pub(super) key: SessionKey,
    /// Number of the last delta.
    pub(super) seq: u64,
    pub(super) map: HeatMap,
    /// Accesses dropped because the map was full.
    pub(super) omitted: u64,
    pub(super) usage: Option<Usage>,
    /// Since the team began.
    pub(super) spent: Spent,
    /// By the running turn, or by the first one that is to come.
    pub(super) turn_spent: Spent,
    pub(super) turns: Turns,
    /// When turns became the current one, in this order.
    begun: VecDeque<(u64, TimestampMs)>,
    /// Its client opened it. An agent can name sessions that no client opened.
    pub(super) is_open: bool,
    /// The session compacted its context since its last usage.
    has_compacted: bool,
    pub(super) model: Option<Model>,
    /// Sequence number of its last input.
    pub(super) last_input: u64,
    shown: LastShown,
}

/// A cache of the last snapshot, for as long as a client holds it.
#[derive(Default, Debug)]
pub(super) struct LastShown(Weak<Rendered<Snapshot>>);

impl LastShown {
    /// Returns the cached snapshot if it has all deltas up to `seq`, else a new one from `take`.
    pub(super) fn at(
        &mut self,
        seq: u64,
        take: impl FnOnce() -> Snapshot,
    ) -> Arc<Rendered<Snapshot>> {
        if let Some(last) = self.0.upgrade().filter(|last| last.seq == seq) {
            return last;
        }
        let taken = Arc::new(Rendered::new(take()));
        self.0 = Arc::downgrade(&taken);
        taken
    }
}

impl TrackedSession {
    pub(super) fn new(key: SessionKey) -> Self {
        Self {
            key,
            seq: 0,
            map: HeatMap::default(),
            omitted: 0,
            usage: None,
            spent: Spent::default(),
            turn_spent: Spent::default(),
            turns: Turns::default(),
            begun: VecDeque::new(),
            is_open: false,
            has_compacted: false,
            model: None,
            last_input: 0,
            shown: LastShown::default(),
        }
    }

    /// Numbers `changes` as the session's next delta.
    pub(super) fn delta(&mut self, changes: Changes) -> Delta {
        self.seq += 1;
        delta(&self.key, SessionMode::SingleAgent, self.seq, changes)
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            key: self.key.clone(),
            mode: SessionMode::SingleAgent,
            seq: self.seq,
            nodes: self.map.nodes(),
            omitted: self.omitted,
        }
    }

    pub(super) fn shared_snapshot(&mut self) -> Arc<Rendered<Snapshot>> {
        let mut shown = std::mem::take(&mut self.shown);
        let snapshot = shown.at(self.seq, || self.snapshot());
        self.shown = shown;
        snapshot
    }

    pub(super) fn usage_report(&self) -> Option<UsageReport> {
        if self.usage.is_none() && !self.spent.is_known() {
            return None;
        }
        let (usage, spent) = (self.usage.clone(), self.spent.clone());
        let key = self.key.clone();
        Some(UsageReport { key, mode: SessionMode::SingleAgent, usage, spent })
    }

    /// Whether a usage is so much smaller than the last one that the context was compacted, which
    /// nothing else said. See [`super::session_input::SessionInput`] for `first_used`.
    pub(super) fn is_compacted_by(&self, first_used: u64, settings: &Settings) -> bool {
        let is_drop = |previous: &Usage| {
            is_compaction(previous.used, first_used, settings.compaction_threshold)
        };
        !self.has_compacted && self.usage.as_ref().is_some_and(is_drop)
    }

    /// Records a usage and returns whether it changed.
    pub(super) fn report(&mut self, first_used: u64, usage: Usage, settings: &Settings) -> bool {
        if self.is_compacted_by(first_used, settings) {
            self.map.compact();
        }
        self.has_compacted = false;
        let previous = self.usage.replace(usage);
        previous != self.usage
    }

    pub(super) fn compact(&mut self) {
        self.has_compacted = true;
        self.map.compact();
    }

    /// Opens it: anew, maybe under an id that another session of its agent had; or to go on, behind
    /// its turns of an earlier run.
    pub(super) fn open(&mut self, is_new: bool, past_turns: Option<u64>) {
        self.is_open = true;
        self.turns = self.turns.opened(is_new, past_turns);
        if is_new {
            self.begun.clear();
            self.turn_spent = Spent::default();
            self.usage = None;
            self.map.compact();
        }
    }

    /// Begins a turn.
    pub(super) fn begin_turn(&mut self, at: TimestampMs) {
        if !self.turns.is_running() {
            self.becomes_current(at);
        }
        self.turns.begin();
    }

    fn becomes_current(&mut self, at: TimestampMs) {
        if self.begun.len() >= MOST_BEGUN {
            self.begun.pop_front();
        }
        self.begun.push_back((self.turns.current(), at));
    }

    /// The turn of what began at a time: the one that ran then, else the last one before, else the first to come.
    pub(super) fn turn_at(&self, at: TimestampMs) -> u64 {
        let last = self.begun.iter().rev().find(|(_, began)| *began <= at);
        last.or(self.begun.front()).map_or(self.turns.current(), |(turn, _)| *turn)
    }

    /// Adds what calls took that began at a time. The figures of a turn that has ended are told already.
    pub(super) fn spend(&mut self, spending: &Spending, began: TimestampMs) {
        self.spent.add(spending);
        if self.turn_at(began) == self.turns.current() {
            self.turn_spent.add(spending);
        }
    }

    /// Ends the oldest running turn; None without one.
    pub(super) fn end_turn(&mut self, settings: &Settings, at: TimestampMs) -> Option<u64> {
        let turn = self.turns.end()?;
        if self.turns.is_running() {
            self.becomes_current(at);
        }
        self.map.end_turn(turn, settings.context_turns);
        Some(turn)
    }
}

pub(super) fn delta(key: &SessionKey, mode: SessionMode, seq: u64, changes: Changes) -> Delta {
    Delta { key: key.clone(), mode, seq, updates: changes.updates, removed: changes.removed }
}

/// Counts turns from 0. Of overlapping prompts, the oldest is current and ends first.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Turns {
    ended: u64,
    running: u64,
}

impl Turns {
    /// The counter of a session that is opened. The end of a turn that runs is the earlier session's.
    pub(super) fn opened(self, is_new: bool, past: Option<u64>) -> Self {
        let ended = if is_new { 0 } else { past.filter(|_| self.ended == 0).unwrap_or(self.ended) };
        if self.is_running() { self } else { Self { ended, running: 0 } }
    }

    /// The running turn, or between turns the next one.
    pub(super) fn current(self) -> u64 {
        self.ended
    }

    pub(super) fn is_running(self) -> bool {
        self.running > 0
    }

    pub(super) fn begin(&mut self) {
        self.running += 1;
    }

    /// Adds the running turns of another counter.
    pub(super) fn adopt(&mut self, other: Self) {
        self.running += other.running;
    }

    /// Ends the oldest turn and returns its number; None if none ran.
    pub(super) fn end(&mut self) -> Option<u64> {
        self.running = self.running.checked_sub(1)?;
        self.ended += 1;
        Some(self.ended - 1)
    }
}

/// Whether the count of tokens fell by the fraction `threshold` or more.
fn is_compaction(previous: u64, used: u64, threshold: f64) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "a fraction needs no 53 bits")]
    let fraction = |part: u64| part as f64 / previous as f64;
    previous.checked_sub(used).is_some_and(|lost| lost > 0 && fraction(lost) >= threshold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AgentId, SessionId};
    use crate::tracker::testing::SETTINGS;

    #[test]
    fn a_drop_by_the_threshold_or_more_is_a_compaction() {
        for (previous, used, threshold, expected) in [
            (100, 50, 0.5, true),
            (100, 51, 0.5, false),
            (100, 0, 0.5, true),
            (100, 0, 1.0, true),
            (10, 7, 0.3, true),
            (100, 100, 0.0, false),
            (100, 200, 0.5, false),
            (0, 0, 0.5, false),
            (0, 10, 0.0, false),
        ] {
            let found = is_compaction(previous, used, threshold);
            assert_eq!(found, expected, "{previous} → {used} at {threshold}");
        }
    }

    #[test]
    fn a_call_is_of_the_turn_in_which_it_began() {
        let mut session =
            TrackedSession::new(SessionKey::new(AgentId::new("a"), SessionId::new("s")));
        let call = Spending::nothing();
        // The first turn to come has it.
        session.spend(&call, 5);
        assert_eq!(session.turn_at(5), 0);
        for (begin, end) in [(10, 20), (30, 40)] {
            session.begin_turn(begin);
            session.end_turn(&SETTINGS, end);
            assert!(!session.turn_spent.is_empty() || begin > 10);
            session.turn_spent = Spent::default();
        }
        session.begin_turn(50);
        // A prompt that overlaps is a turn of its own once the first one has ended.
        session.begin_turn(60);
        session.end_turn(&SETTINGS, 70);
        let turns = [1, 10, 25, 30, 45, 50, 65, 70, 90].map(|at| session.turn_at(at));
        assert_eq!(turns, [0, 0, 0, 1, 1, 2, 2, 3, 3]);
        session.spend(&call, 25);
        assert!(session.turn_spent.is_empty(), "a turn that has ended has its figures");
        session.spend(&call, 80);
        assert!(!session.turn_spent.is_empty());
    }

    #[test]
    fn overlapping_turns_end_in_the_order_they_began() {
        let mut turns = Turns::default();
        assert_eq!((turns.current(), turns.end()), (0, None));
        turns.begin();
        turns.begin();
        assert_eq!((turns.current(), turns.end()), (0, Some(0)));
        assert_eq!((turns.current(), turns.is_running(), turns.end()), (1, true, Some(1)));
        assert_eq!((turns.current(), turns.is_running(), turns.end()), (2, false, None));
    }
}
