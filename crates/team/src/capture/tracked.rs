//! One tracked file: its last known content, and its possible writers since.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::change::{Registration, Settled, authors};
use super::disk::{self, Depth, Fate, Seen, Stamp};
use super::holders::Holders;
use super::room::{Room, Unkept};
use super::source::{WriteSource, Writer};
use super::turns::Turns;
use crate::model::{AgentId, FileState, SessionId};

/// Maximum writers of one file; past that the oldest is forgotten.
const MOST_WRITERS: usize = 16;

/// Time until a file that is held open is looked at again: at first, and at most.
const SOON: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::from_secs(2);

/// How long a file that is being written is left alone, so that its event has all of the write.
const UNFINISHED: Duration = Duration::from_millis(150);

/// Time between two events of a file that is written all the time, for each byte.
const REST_NS_PER_BYTE: u64 = 100;

/// A path, with its state in the journal.
pub(super) struct Tracked {
    path: Arc<Path>,
    depth: Depth,
    /// The last known entry; None before the first read.
    base: Option<Seen>,
    /// Whether an event names the base.
    is_known: bool,
    /// Whether its content was dropped, though no event has it.
    is_released: bool,
    /// The possible writers since the base.
    writers: Vec<Writer>,
    /// The last former writer: it often writes again.
    last: Option<Writer>,
    /// The path from which it was moved here.
    from: Option<Arc<Path>>,
    /// The order of its registration.
    order: u64,
    /// When to look at it again; from `not_before` on if its stamp shows a change.
    due: Instant,
    not_before: Instant,
    patience: Duration,
    /// A call left the content alone, so that it is not held.
    is_unheld: bool,
    /// Why the base's content could not be kept, if nobody knows yet.
    unkept: Option<Unkept>,
    room: Arc<Room>,
}

impl Tracked {
    pub(super) fn new(path: Arc<Path>, depth: Depth, room: Arc<Room>) -> Self {
        let (writers, now) = (Vec::new(), Instant::now());
        Self {
            path,
            depth,
            base: None,
            is_known: false,
            is_released: false,
            writers,
            last: None,
            from: None,
            order: 0,
            due: now,
            not_before: now,
            patience: SOON,
            is_unheld: false,
            unkept: None,
            room,
        }
    }

    pub(super) fn path(&self) -> Arc<Path> {
        Arc::clone(&self.path)
    }

    /// The order of its registration.
    pub(super) fn order(&self) -> u64 {
        self.order
    }

    /// Whether an event may follow.
    pub(super) fn has_writers(&self) -> bool {
        !self.writers.is_empty()
    }

    /// Whether its last state must be remembered.
    pub(super) fn is_known(&self) -> bool {
        self.is_known || self.is_released
    }

    /// The device and inode of the last known file.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        Some(self.base.as_ref()?.stamp?.identity())
    }

    pub(super) fn is_of(&self, agent: &AgentId) -> bool {
        self.writers.iter().any(|writer| writer.source.agent() == agent)
    }

    /// Whether an agent writes it in a turn or call that began after an epoch.
    pub(super) fn is_later(&self, agent: &AgentId, epoch: u64) -> bool {
        let mut of_agent = self.writers.iter().filter(|writer| writer.source.agent() == agent);
        of_agent.any(|writer| writer.is_later(epoch))
    }

    /// The turn of a session has ended.
    pub(super) fn carry_over(&mut self, agent: &AgentId, session: &SessionId) {
        let of_agent = self.writers.iter_mut().filter(|writer| writer.source.agent() == agent);
        of_agent.for_each(|writer| writer.carry_over(session));
    }

    /// The runs of its writers, each with its processes that may be in a call.
    pub(super) fn sources(&self) -> impl Iterator<Item = (WriteSource, HashSet<u32>)> {
        self.writers.iter().map(|writer| (writer.source.clone(), writer.calling().collect()))
    }

    /// The path from which it was moved here since it was last settled.
    pub(super) fn from(&self) -> Option<&Arc<Path>> {
        self.from.as_ref()
    }

    /// The client host has written the file for a session.
    pub(super) fn request_done(&mut self, source: &WriteSource, session: &SessionId) {
        let _ = self.writers.iter_mut().any(|writer| writer.request_done(source, session));
    }

    /// Drops the content of a file without writers and events: its hash and stamp are enough to see
    /// a change.
    pub(super) fn release(&mut self) {
        let Some(base) = self.base.as_mut().filter(|base| base.is_there()) else { return };
        self.room.leave(base.content_bytes());
        base.content = None;
        self.is_released = true;
    }

    /// Whether it is time to look at the file.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.due || now >= self.not_before && self.may_have_changed(disk::stamp(&self.path))
    }

    /// Adds a writer, before it writes. Settles earlier changes of other writers first.
    pub(super) fn register(&mut self, new: Registration<'_>) -> Option<Settled> {
        let Registration { source, cause, epoch, .. } = new;
        let known = self.writers.iter_mut().find(|writer| writer.is(source, cause, epoch));
        if let Some(known) = known {
            known.add(cause);
            // What it wrote in this turn is kept only if it goes, and what came here always.
            let came = new.fate != Fate::Stays && (self.is_unheld || self.from.is_some());
            let is_lost = came || new.fate == Fate::Goes && !self.is_kept();
            let settled = if is_lost { self.settle_before(new) } else { None };
            self.is_unheld |= new.fate == Fate::Stays;
            self.from = new.from.or(self.from.as_ref()).cloned();
            return settled;
        }
        let settled = self.settle_before(new);
        let last = self.last.take().filter(|last| last.is(source, cause, epoch));
        let mut writer = last.unwrap_or_else(|| Writer::new(source, &self.path, cause, epoch));
        writer.add(cause);
        self.writers.push(writer);
        if self.writers.len() > MOST_WRITERS {
            self.writers.remove(0);
        }
        self.from = new.from.or(self.from.as_ref()).cloned();
        self.order = new.order;
        self.patience = SOON;
        self.due = Instant::now() + SOON / 2;
        self.not_before = self.due;
        settled
    }

    /// Takes why the content from before a registration could not be kept.
    pub(super) fn take_unkept(&mut self) -> Option<Unkept> {
        self.unkept.take()
    }

    /// Whether the content of its last known state is safe.
    fn is_kept(&self) -> bool {
        self.base.as_ref().is_some_and(|base| {
            self.depth != Depth::Content
                || base.content.is_some()
                || base.state.as_ref().is_none_or(|state| state.stored)
        })
    }

    /// Whether the present content of the file is safe.
    pub(super) fn is_safe(&self) -> bool {
        self.is_kept() && !self.may_have_changed(disk::stamp(&self.path))
    }

    /// Settles earlier changes, and holds the present content.
    fn settle_before(&mut self, new: Registration<'_>) -> Option<Settled> {
        let is_first = self.is_released || self.base.is_none();
        let settled = self.look_before(new, is_first);
        if is_first || !self.is_kept() {
            self.hold(new.fate);
        }
        self.is_unheld = new.fate == Fate::Stays;
        settled
    }

    fn look_before(&mut self, new: Registration<'_>, is_first: bool) -> Option<Settled> {
        if is_first {
            let seen = disk::read(&self.path, self.depth);
            if self.base.as_ref().is_some_and(|base| !base.is_same(&seen)) {
                return self.change(seen, new.turns);
            }
            self.set_base(seen);
            return None;
        }
        let is_other = |writer: &Writer| writer.source.number() != new.source.number();
        if self.writers.iter().any(is_other) {
            let holders = Holders::look(self.sources());
            return self.settle(Some(&holders), new.turns, false);
        }
        let now = new.stamp.or_else(|| disk::stamp(&self.path));
        if self.may_have_changed(now) { self.settle(None, new.turns, false) } else { None }
    }

    /// Finds out whether the file was changed since the last look, and its author. With `holders`,
    /// forgets the writers that do not hold it any more. If `patient`, leaves a file that is being
    /// written.
    pub(super) fn settle(
        &mut self,
        holders: Option<&Holders>,
        turns: &Turns,
        patient: bool,
    ) -> Option<Settled> {
        let stamp = disk::stamp(&self.path);
        let is_mapped = holders.is_some_and(|holders| holders.map(&self.path));
        let (path, identity) = (Arc::clone(&self.path), stamp.map(|stamp| stamp.identity()));
        let holds = |writer: &Writer| {
            holders.is_none_or(|holders| holders.hold(&writer.source, &path, identity))
        };
        let is_young = self.writers.iter().all(|writer| writer.age() < UNFINISHED);
        let is_unfinished = is_young && self.writers.iter().any(&holds);
        if patient && (is_unfinished || self.writers.iter().any(Writer::is_requested)) {
            self.due = Instant::now() + SOON;
            self.not_before = self.due;
            return None;
        }
        let settled = if is_mapped || self.may_have_changed(stamp) {
            let now = disk::read(&self.path, self.depth);
            self.change(now, turns)
        } else {
            None
        };
        if let Some(holders) = holders {
            let gone = |writer: &mut Writer| {
                let source = writer.source.clone();
                !holds(writer) && !writer.is_in_flight(|process| holders.call(&source, process))
            };
            self.last = self.writers.extract_if(.., gone).last().or(self.last.take());
        }
        self.rest(settled.is_some());
        settled
    }

    /// Looks at a file without known writers. `is_new`: it was created just now.
    pub(super) fn notice(&mut self, is_new: bool) -> Option<Settled> {
        if self.base.is_none() {
            let now = disk::read(&self.path, self.depth);
            if !now.is_there() {
                return None;
            }
            let before = if is_new { Seen::default() } else { now.unknown() };
            self.base = Some(before);
            return self.change(now, &Turns::default());
        }
        self.settle(None, &Turns::default(), false)
    }

    /// Looks at a file of which the journal knows a state.
    pub(super) fn compare(&mut self, known: Option<FileState>) -> Option<Settled> {
        self.base = Some(Seen::known(known));
        let now = disk::read(&self.path, self.depth);
        self.change(now, &Turns::default())
    }

    /// Takes the present entry as the base. The journal has its content already.
    pub(super) fn accept(&mut self) {
        let mut now = disk::read(&self.path, self.depth);
        if let Some(base) = &self.base {
            self.room.leave(base.content_bytes());
        }
        if let Some(state) = &mut now.state {
            state.stored |= now.content.take().is_some();
        }
        (self.is_known, self.is_released) = (now.is_there(), false);
        self.from = None;
        self.base = Some(now);
    }

    fn may_have_changed(&self, now: Option<Stamp>) -> bool {
        self.base.as_ref().is_none_or(|base| !base.is_still(now))
    }

    /// Takes the present entry as the base; returns the change.
    fn change(&mut self, mut now: Seen, turns: &Turns) -> Option<Settled> {
        let Some(mut base) = self.base.take() else {
            self.set_base(now);
            self.hold(Fate::Stays);
            return None;
        };
        if base.is_same(&now) {
            // Only its times changed.
            (now.content, now.state) = (base.content.take(), base.state.take());
            self.base = Some(now);
            return None;
        }
        let from = self.from.take();
        let mut contents = Vec::new();
        self.room.leave(base.content_bytes());
        for (seen, was_held) in [(&mut base, true), (&mut now, false)] {
            if let (Some(state), Some(content)) = (&mut seen.state, seen.content.take())
                && let Some(hash) = state.hash.clone().filter(|_| !state.stored)
                && let Some(content) = self.room.record(&self.path, content, &hash, was_held)
            {
                state.stored = true;
                contents.push((hash, content));
            }
        }
        let (author, contested) = authors(&self.writers, &self.path, now.stamp, turns);
        let settled = Settled {
            path: Arc::clone(&self.path),
            from,
            order: self.order,
            before: base.state,
            after: now.state.clone(),
            contents,
            author,
            contested,
            changed_ns: now.stamp.map_or_else(disk::now_ns, |stamp| stamp.changed_ns()),
            stamps: [base.stamp, now.stamp].map(|stamp| Some(stamp?.of_content())),
            denied: self.depth == Depth::Stamp,
        };
        (self.is_known, self.is_released) = (true, false);
        self.base = Some(now);
        Some(settled)
    }

    fn set_base(&mut self, seen: Seen) {
        (self.base, self.is_released) = (Some(seen), false);
    }

    /// Holds the content of the base, which may be destroyed.
    fn hold(&mut self, fate: Fate) {
        // A file that may be open for writing is not safe under another name.
        let is_open = fate == Fate::Goes && !self.writers.is_empty();
        let fate = if is_open { Fate::Changes } else { fate };
        if let Some(mut base) = self.base.take() {
            if self.depth == Depth::Content {
                self.unkept = self.room.hold(&self.path, &mut base, fate).err();
            }
            self.base = Some(base);
        }
    }

    fn rest(&mut self, changed: bool) {
        let now = Instant::now();
        if changed {
            let state = self.base.as_ref().and_then(|base| base.state.as_ref());
            let size = state.map_or(0, |state| state.size);
            let rest = Duration::from_nanos(size.saturating_mul(REST_NS_PER_BYTE));
            self.patience = SOON;
            self.due = now + rest.clamp(SOON, LATEST);
            self.not_before = self.due;
        } else {
            self.from = None;
            self.patience = (self.patience * 2).min(LATEST);
            self.due = now + self.patience;
            self.not_before = now;
        }
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        if let Some(base) = &self.base {
            self.room.leave(base.content_bytes());
        }
    }
}
