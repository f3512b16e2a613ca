//! What touches say of symbols and writes, and what the disk shows written of itself.

use std::sync::Arc;

use indexmap::IndexMap;
use tracing::warn;

use super::{Number, Sessions};
use crate::model::{TimestampMs, Touch};
use crate::tracker::heat::{Effect, HeatMap, SAME_WRITE_MS};
use crate::tracker::session_input::{SessionInput, Weight, WriteSource};
use crate::tracker::symbols::{Symbols, Write, covered, edited_by};

/// Files that the disk shows written and no agent told of; past it more are left out, with a
/// warning.
const MOST_UNCLAIMED: usize = 10_000;

/// Whose the nodes of the disk are in the merged view: no session's, and behind them all.
const DISK: Number = Number::MAX;

/// What was written, nobody knows by whom.
#[derive(Default, Debug)]
pub(super) struct OnDisk {
    map: HeatMap,
    /// When, the oldest first: an agent may yet tell of it.
    unclaimed: IndexMap<Arc<str>, TimestampMs>,
    is_full: bool,
}

impl Sessions {
    pub(in crate::tracker) fn join(&mut self, symbols: Arc<dyn Symbols>) {
        self.symbols = Some(symbols);
    }

    /// Takes in a touch, or more of a write.
    pub(super) fn touch(&mut self, number: Number, input: SessionInput, at: TimestampMs) {
        let (path, written) = match &input {
            SessionInput::Touched { path, written, .. } | SessionInput::Wrote { path, written } => {
                (Arc::clone(path), *written)
            }
            _ => return,
        };
        let Some(session) = self.live.get_mut(&number) else { return };
        let is_touch = matches!(input, SessionInput::Touched { .. });
        if !session.map.contains(&path) {
            if !is_touch {
                return;
            }
            let is_glimpse =
                matches!(input, SessionInput::Touched { weight: Weight::Glimpsed, .. });
            let shares = if is_glimpse { 2 } else { 1 };
            let load = self.agents.get_mut(&session.key.agent);
            if !load.is_some_and(|load| load.take_node(&session.key, &path, self.limits, shares)) {
                session.omitted += 1;
                if let Some(view) = &mut self.view {
                    view.omitted += 1;
                }
                return;
            }
        }
        let seen_at = self.claim(&path, written, at);
        let Some(session) = self.live.get_mut(&number) else { return };
        if let SessionInput::Touched { touch, weight, lines, edited, .. } = input {
            let symbols = self.symbols.as_ref();
            let edits = edited.is_some();
            let edited_lines = edited.unwrap_or_default();
            if let (Some(symbols), true) = (symbols, written != WriteSource::default()) {
                let (path, lines, by) = (&*path, &edited_lines, &session.key);
                symbols.wrote(&Write { path, lines, by, timestamp_ms: at });
            }
            let effect = Effect {
                touch,
                weight,
                symbols: covered(symbols, &path, &lines),
                edited: if edits { edited_by(symbols, &path, &edited_lines) } else { None },
                lines: edited_lines,
                written,
            };
            session.map.touch(&path, &effect, session.turns.current(), at);
        } else {
            session.map.wrote(&path, written, at);
        }
        if let Some(at) = seen_at {
            session.map.wrote(&path, WriteSource { seen: true, ..WriteSource::default() }, at);
        }
    }

    /// Takes in that the disk shows a file written: by whoever told of it just before, else for all
    /// that is known by nobody of the team. By now its symbols are those of what was written.
    pub(in crate::tracker) fn disk_wrote(&mut self, path: &Arc<str>, at: TimestampMs) {
        let seen = WriteSource { seen: true, ..WriteSource::default() };
        let mut is_told = false;
        for (number, session) in &mut self.live {
            if session.map.knows_write(path, at) {
                is_told = true;
                session.map.wrote(path, seen, at);
                if let Some(lines) = session.map.edited_lines(path, at) {
                    let symbols = covered(self.symbols.as_ref(), path, lines);
                    session.map.add_symbols(path, &symbols);
                }
                self.active.insert(*number);
            }
        }
        if !is_told && self.on_disk.note(path, at) && self.view.is_some() {
            let effect = Effect { written: seen, ..Effect::new(Touch::Write, Weight::Marked) };
            self.on_disk.map.touch(path, &effect, 0, at);
        }
    }

    /// With a decay rate, a tick passes.
    pub(super) fn flush_disk(&mut self, decay_rate: Option<f64>) {
        let map = &mut self.on_disk.map;
        if !map.is_active() {
            return;
        }
        let changes = match decay_rate {
            Some(rate) => map.tick(rate),
            None => map.flush(),
        };
        if let (Some(view), false) = (&mut self.view, changes.is_empty()) {
            view.merge.apply(DISK, &changes);
            self.stirred = true;
        }
    }

    /// Lets an agent have what the disk showed of a write that it tells of; returns when that was.
    fn claim(
        &mut self,
        path: &Arc<str>,
        written: WriteSource,
        at: TimestampMs,
    ) -> Option<TimestampMs> {
        if written == WriteSource::default() {
            return None;
        }
        let shown_at = self.on_disk.unclaimed.shift_remove(path);
        // Also one of long ago: by now there is a later write.
        let changes = self.on_disk.map.remove(path);
        if let Some(view) = &mut self.view {
            view.merge.apply(DISK, &changes);
        }
        shown_at.filter(|shown| shown.abs_diff(at) <= SAME_WRITE_MS)
    }
}

impl OnDisk {
    /// False if there is no room for it.
    fn note(&mut self, path: &Arc<str>, at: TimestampMs) -> bool {
        while let Some((_, oldest)) = self.unclaimed.first()
            && at.saturating_sub(*oldest) > SAME_WRITE_MS
        {
            self.unclaimed.shift_remove_index(0);
        }
        self.unclaimed.shift_remove(path);
        let has_room = self.unclaimed.len() < MOST_UNCLAIMED;
        if has_room {
            self.unclaimed.insert(Arc::clone(path), at);
        } else if !self.is_full {
            warn!("more files are written by others than the map takes");
        }
        self.is_full = !has_room;
        has_room
    }
}

#[cfg(test)]
mod tests;
