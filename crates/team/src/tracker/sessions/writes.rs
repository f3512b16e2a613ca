//! Applies touches with their symbols and writes, and matches writes seen on the disk with agents'
//! claims.

use std::sync::Arc;

use indexmap::IndexMap;
use tracing::warn;

use super::{Number, Sessions};
use crate::model::{TimestampMs, Touch};
use crate::tracker::heat::{Effect, HeatMap, SAME_WRITE_MS};
use crate::tracker::session_input::{SessionInput, Weight, WriteSource};
use crate::tracker::symbols::{Symbols, Write, covered, edited_by};

/// Writes seen on the disk that no agent claimed; over it more are dropped, with a warning.
const MOST_UNCLAIMED: usize = 10_000;

/// The holder of the disk's nodes in the merged view, after all sessions.
const DISK: Number = Number::MAX;

/// Writes whose author is not known.
#[derive(Default, Debug)]
pub(super) struct OnDisk {
    map: HeatMap,
    /// Their times, the oldest first: an agent may still claim them.
    unclaimed: IndexMap<Arc<str>, TimestampMs>,
    is_full: bool,
}

impl Sessions {
    pub(in crate::tracker) fn join(&mut self, symbols: Arc<dyn Symbols>) {
        self.symbols = Some(symbols);
    }

    /// Applies a touch, or another source of a write.
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

    /// Applies a write seen on the disk: to the sessions that claimed it just before, else as a
    /// write from outside the team. The graph now knows the symbols of the written text.
    pub(in crate::tracker) fn disk_wrote(&mut self, path: &Arc<str>, at: TimestampMs) {
        let seen = WriteSource { seen: true, ..WriteSource::default() };
        let mut is_claimed = false;
        for (number, session) in &mut self.live {
            if session.map.knows_write(path, at) {
                is_claimed = true;
                session.map.wrote(path, seen, at);
                if let Some(lines) = session.map.edited_lines(path, at) {
                    let symbols = covered(self.symbols.as_ref(), path, lines);
                    session.map.add_symbols(path, &symbols);
                }
                self.active.insert(*number);
            }
        }
        if !is_claimed && self.on_disk.add_unclaimed(path, at) && self.view.is_some() {
            let effect = Effect { written: seen, ..Effect::new(Touch::Write, Weight::Marked) };
            self.on_disk.map.touch(path, &effect, 0, at);
        }
    }

    /// Flushes the disk's nodes into the view; with a decay rate, a tick passes.
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
            self.nodes_changed = true;
        }
    }

    /// Assigns an unclaimed write to the agent that now claims it; returns when the disk showed it.
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
        // Even an old one: the claim is of a later write.
        let changes = self.on_disk.map.remove(path);
        if let Some(view) = &mut self.view {
            view.merge.apply(DISK, &changes);
        }
        shown_at.filter(|shown| shown.abs_diff(at) <= SAME_WRITE_MS)
    }
}

impl OnDisk {
    /// False if there is no room.
    fn add_unclaimed(&mut self, path: &Arc<str>, at: TimestampMs) -> bool {
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
            warn!("too many files are written from outside the team: new ones are dropped");
        }
        self.is_full = !has_room;
        has_room
    }
}

#[cfg(test)]
mod tests;
