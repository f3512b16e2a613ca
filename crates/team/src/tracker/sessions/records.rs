//! Records of sessions for the journal: each with the turn that it is of.

use std::collections::HashMap;

use super::Sessions;
use crate::model::{Event, Record, SessionKey, TimestampMs};
use crate::tracker::session::Turns;
use crate::tracker::session_input::SessionInput;

impl Sessions {
    /// Adds a record, in its order among the events; `of` is the time that tells its turn, if it is not the current one.
    pub(in crate::tracker) fn record(
        &mut self,
        key: &SessionKey,
        record: Record,
        (at, of): (TimestampMs, Option<TimestampMs>),
    ) {
        let turn = self.turn(key, &record, of);
        self.events.push(Event::Record { key: key.clone(), record, turn, timestamp_ms: at });
    }

    /// The turn that a record is of; None: its session is not known.
    fn turn(&self, key: &SessionKey, record: &Record, of: Option<TimestampMs>) -> Option<u64> {
        let live = self.numbers.get(key).and_then(|number| self.live.get(number));
        let turns = live.map(|session| session.turns).or(self.closing.get(key).copied());
        if let Record::Opened { is_new } = record {
            let past = self.past_turns.get(key).copied();
            return Some(turns.unwrap_or_default().opened(*is_new, past).current());
        }
        let at = |of| live.map(|session| session.turn_at(of));
        of.and_then(at).or(turns.map(Turns::current))
    }

    /// Takes the number of turns that sessions had before this run: those that are opened again go on
    /// behind them.
    pub(in crate::tracker) fn go_on_behind(&mut self, past_turns: HashMap<SessionKey, u64>) {
        self.past_turns = past_turns;
    }

    /// Whether an input says that a session's context was compacted, which nothing else did.
    pub(in crate::tracker) fn is_compacted_by(
        &self,
        key: &SessionKey,
        input: &SessionInput,
    ) -> bool {
        let SessionInput::Usage { first_used, .. } = input else { return false };
        let live = self.numbers.get(key).and_then(|number| self.live.get(number));
        live.is_some_and(|session| session.is_compacted_by(*first_used, &self.settings))
    }
}
