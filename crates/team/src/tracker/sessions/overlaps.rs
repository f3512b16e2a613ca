//! Publishes new overlaps between sessions of different agents.

use std::sync::Arc;

use super::{Number, Sessions};
use crate::model::{Event, Overlap, OverlapKind, SessionKey};
use crate::tracker::overlap::{FoundOverlap, between};
use crate::tracker::session::TrackedSession;
use crate::tracker::symbols::MOST;

impl Sessions {
    /// Compares a session's hold on a file with those of other agents' sessions.
    pub(super) fn publish_overlaps(&mut self, number: Number, path: &Arc<str>) {
        let Some(session) = self.live.get(&number) else { return };
        let Some(hold) = session.map.hold(path) else { return };
        let others: Vec<_> = self.overlaps.holders(path).to_vec();
        let mut all = Vec::new();
        for other in others {
            // Sessions of one agent do not overlap.
            let Some(with) = self.live.get(&other).filter(|it| it.key.agent != session.key.agent)
            else {
                continue;
            };
            let Some(its_hold) = with.map.hold(path) else { continue };
            // The order of the two does not depend on which one changed.
            let is_first = number < other;
            let (first, second) = if is_first { (hold, its_hold) } else { (its_hold, hold) };
            let (numbers, keys) = if is_first {
                ((number, other), [&session.key, &with.key])
            } else {
                ((other, number), [&with.key, &session.key])
            };
            let found = between(path, first, second);
            let timestamp_ms = first.timestamp_ms.max(second.timestamp_ms);
            for (symbol, FoundOverlap { kind, by_first }) in
                self.overlaps.record(path, numbers, found)
            {
                let [first, second] = keys.map(SessionKey::clone);
                let is_ordered = match kind {
                    OverlapKind::Edit => first < second,
                    OverlapKind::Context => by_first,
                };
                let between = if is_ordered { [first, second] } else { [second, first] };
                let callers = Vec::new();
                let path = Arc::clone(path);
                all.push(Overlap { kind, between, symbol, path, callers, timestamp_ms });
            }
        }
        for mut overlap in all {
            overlap.callers = self.callers_in_context(&overlap.symbol);
            self.events.push(Event::Overlap(overlap));
        }
    }

    /// The overlaps that there are now, without the callers; the latest first.
    pub(in crate::tracker) fn current_overlaps(&self) -> Vec<Overlap> {
        let mut all = Vec::new();
        for (path, (one, other), found) in self.overlaps.current() {
            let both = self.live.get(&one).zip(self.live.get(&other));
            let Some((first, second)) = both else { continue };
            let at =
                |session: &TrackedSession| session.map.hold(path).map(|hold| hold.timestamp_ms);
            let timestamp_ms = at(first).max(at(second)).unwrap_or_default();
            for (symbol, FoundOverlap { kind, by_first }) in found {
                let [first, second] = [&first.key, &second.key].map(SessionKey::clone);
                let between = if *by_first { [first, second] } else { [second, first] };
                all.push(Overlap {
                    kind: *kind,
                    between,
                    symbol: Arc::clone(symbol),
                    path: Arc::clone(path),
                    callers: Vec::new(),
                    timestamp_ms,
                });
            }
        }
        all.sort_by(|a, b| {
            b.timestamp_ms.cmp(&a.timestamp_ms).then_with(|| a.symbol.cmp(&b.symbol))
        });
        all
    }

    /// The callers of a symbol that sessions have in context, with these sessions.
    fn callers_in_context(&self, symbol: &str) -> Vec<(Arc<str>, SessionKey)> {
        let Some(symbols) = &self.symbols else { return Vec::new() };
        let mut known = Vec::new();
        for caller in symbols.callers(symbol) {
            let path = caller.split_once("::").map_or(&*caller, |(path, _)| path);
            for holder in self.overlaps.holders(path) {
                let Some(session) = self.live.get(holder) else { continue };
                let held = session.map.hold(path).and_then(|hold| hold.symbols);
                if held.is_some_and(|held| held.contains(&caller)) {
                    known.push((Arc::clone(&caller), session.key.clone()));
                }
                if known.len() == MOST {
                    return known;
                }
            }
        }
        known
    }
}

#[cfg(test)]
mod tests;
