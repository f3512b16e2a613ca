//! The state that all sources of changes share: the files, their writers, and the way to the
//! journal.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;

use super::change::{Registration, Settled};
use super::disk::{Depth, Fate, Stamp};
use super::holders::Holders;
use super::links::HardLinks;
use super::own::OwnPaths;
use super::publish::change_of;
use super::room::Room;
use super::scope::CaptureScope;
use super::source::{Cause, WriteSource};
use super::table::{File, FileTable, locked};
use super::tracked::Tracked;
use super::turns::Turns;
use crate::journal::{EventType, NewEvent, Place};
use crate::model::{AgentId, FileCause, FileKind, FileState, SessionId, SessionKey};
use crate::tracker::TrackerHandle;

/// How long a call waits until its file can be followed, and how often it is looked.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How a writer touches a path.
#[derive(Clone, Copy, Default)]
pub(super) struct Touched<'a> {
    /// The entry's stamp, if the entry is known to exist.
    pub(super) stamp: Option<Stamp>,
    /// The path from which a file comes here.
    pub(super) from: Option<&'a Arc<Path>>,
    pub(super) fate: Fate,
}

pub(super) struct CaptureTeam {
    pub(super) scope: Arc<CaptureScope>,
    pub(super) table: FileTable,
    pub(super) own: OwnPaths,
    pub(super) links: HardLinks,
    pub(super) room: Arc<Room>,
    tracker: TrackerHandle,
    turns: Mutex<Arc<Turns>>,
    /// Runs of agents that the kernel does not confine.
    pub(super) unconfined: AtomicUsize,
    /// The log has a warning that there are too many files.
    is_full: AtomicBool,
    /// The number of changes that were left out, and that no event reports yet.
    left_out: AtomicUsize,
}

impl CaptureTeam {
    pub(super) fn new(scope: Arc<CaptureScope>, room: Room, tracker: TrackerHandle) -> Self {
        Self {
            scope,
            table: FileTable::default(),
            own: OwnPaths::default(),
            links: HardLinks::default(),
            room: Arc::new(room),
            tracker,
            turns: Mutex::default(),
            unconfined: AtomicUsize::new(0),
            is_full: AtomicBool::new(false),
            left_out: AtomicUsize::new(0),
        }
    }

    /// Registers a possible writer of a path, and keeps the present content: also under the file's
    /// other known names. Returns whether it is the first path that waits to be settled.
    pub(super) fn register(
        &self,
        source: &WriteSource,
        cause: Cause<'_>,
        path: &Path,
        what: Touched<'_>,
    ) -> bool {
        let stamp = what.stamp;
        let mut is_first = self.register_one(source, cause, path, what);
        if let Some(linked) = stamp.filter(Stamp::is_linked) {
            let mut others = self.table.other_names(path, linked.identity());
            let searched = self.links.others(&self.scope, path, linked);
            others.extend(searched.iter().map(|other| Arc::from(other.as_path())));
            others.sort();
            others.dedup();
            for other in others {
                let what = Touched { stamp, fate: what.fate, from: None };
                is_first |= self.register_one(source, cause, &other, what);
            }
        }
        is_first
    }

    fn register_one(
        &self,
        source: &WriteSource,
        cause: Cause<'_>,
        path: &Path,
        what: Touched<'_>,
    ) -> bool {
        if self.scope.leaves_out(path) {
            return false;
        }
        let Some(file) = self.file(path) else { return false };
        let Touched { stamp, from, fate } = what;
        let turns = &*self.turns();
        let mut tracked = locked(&file);
        let order = self.table.next_order();
        let epoch = source.epoch();
        let registration = Registration { source, cause, epoch, stamp, from, fate, order, turns };
        let settled = tracked.register(registration);
        let unkept = tracked.take_unkept();
        let is_first = self.table.add_dirty(&tracked.path(), &file);
        if let Some(settled) = settled {
            self.publish(vec![settled]);
        }
        drop(tracked);
        if let Some(unkept) = unkept {
            self.warn_of_loss(source, path, &unkept);
        }
        is_first
    }

    /// The file of a path; waits until it can be followed, for a while.
    fn file(&self, path: &Path) -> Option<File> {
        let until = Instant::now() + LONGEST_WAIT;
        let make = |path| {
            let path: Arc<Path> = path;
            let depth = match () {
                () if self.scope.denies(&path) => Depth::Stamp,
                () if self.room.keep().contents(self.scope.is_outside(&path)) => Depth::Content,
                () => Depth::Hash,
            };
            Tracked::new(path, depth, Arc::clone(&self.room))
        };
        loop {
            let file = self.table.file(path, make);
            if file.is_some() {
                return file;
            }
            if Instant::now() >= until || !self.room.must_keep(path) {
                self.leave_out(1);
                return None;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Counts changes that can't be followed.
    pub(super) fn leave_out(&self, changes: usize) {
        self.left_out.fetch_add(changes, Ordering::Relaxed);
        if !self.is_full.swap(true, Ordering::Relaxed) {
            tracing::warn!("more files are written at a time than the journal can follow");
        }
    }

    /// Records how many changes were left out since the last call.
    pub(super) fn record_left_out(&self) {
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        if left_out > 0 {
            let payload = json!({ "events": left_out, "reason": "too many files at a time" });
            let gap = NewEvent::new(Place::Team, EventType::GAP, &payload);
            self.room.journal().offer(gap);
        }
    }

    /// Settles the files with writers that are due.
    pub(super) fn settle_due(&self) {
        let now = Instant::now();
        let is_due = |file: &File| locked(file).is_due(now);
        let (mut due, mut others): (Vec<_>, Vec<_>) =
            self.table.dirty().into_iter().partition(is_due);
        // A file that moved is settled at its old place and at its new one together.
        loop {
            let ends = |file: &File| {
                let tracked = locked(file);
                [tracked.from().cloned(), Some(tracked.path())]
            };
            let paths: HashSet<_> = due.iter().flat_map(ends).flatten().collect();
            let is_end = |file: &mut File| {
                let tracked = locked(file);
                paths.contains(&tracked.path())
                    || tracked.from().is_some_and(|from| paths.contains(from))
            };
            let joined: Vec<_> = others.extract_if(.., is_end).collect();
            if joined.is_empty() {
                break;
            }
            due.extend(joined);
        }
        self.settle_files(&due, &self.turns(), true);
    }

    /// Settles all files with writers: of one agent, or of all.
    pub(super) fn settle(&self, agent: Option<&AgentId>) {
        let mut files = self.table.dirty();
        files.retain(|file| agent.is_none_or(|agent| locked(file).is_of(agent)));
        self.settle_files(&files, &self.turns(), false);
    }

    /// The client host has written a path for a session: settles it.
    pub(super) fn request_done(&self, source: &WriteSource, session: &SessionId, path: &Path) {
        if let Some(file) = self.table.find(path) {
            locked(&file).request_done(source, session);
            self.settle_files(&[file], &self.turns(), false);
        }
    }

    /// A turn of an agent begins at a time. Call it before the agent gets the prompt.
    pub(super) fn announce_turn(&self, agent: &AgentId, session: &SessionId, at: i128) {
        self.change_turns(|turns| turns.announce(agent.clone(), session.clone(), at));
    }

    /// A turn of an agent began: settles earlier writes.
    pub(super) fn turn_began(&self, agent: &AgentId, session: SessionId, epoch: u64) {
        let files = self.earlier(agent, epoch);
        self.settle_files(&files, &self.turns(), false);
        self.change_turns(|turns| turns.add(agent.clone(), session));
    }

    /// A turn of an agent has ended: settles its writes.
    pub(super) fn turn_ended(&self, agent: &AgentId, session: &SessionId, epoch: u64) {
        let files = self.earlier(agent, epoch);
        self.settle_files(&files, &self.turns(), false);
        let mut is_over = false;
        self.change_turns(|turns| is_over = turns.remove(agent, session));
        for file in files.iter().filter(|_| is_over) {
            locked(file).carry_over(agent, session);
        }
    }

    /// A run of an agent is over.
    pub(super) fn run_over(&self, agent: &AgentId) {
        self.settle(Some(agent));
        self.change_turns(|turns| turns.forget(agent));
    }

    /// The files that an agent writes, except those that it already writes in a later turn: their
    /// earlier changes were settled then.
    fn earlier(&self, agent: &AgentId, epoch: u64) -> Vec<File> {
        let mut files = self.table.dirty();
        files.retain(|file| {
            let tracked = locked(file);
            tracked.is_of(agent) && !tracked.is_later(agent, epoch)
        });
        files
    }

    fn turns(&self) -> Arc<Turns> {
        Arc::clone(&self.turns.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change_turns(&self, change: impl FnOnce(&mut Turns)) {
        change(Arc::make_mut(&mut self.turns.lock().unwrap_or_else(PoisonError::into_inner)));
    }

    fn settle_files(&self, files: &[File], turns: &Turns, patient: bool) {
        if files.is_empty() {
            return;
        }
        let sources = files.iter().flat_map(|file| locked(file).sources().collect::<Vec<_>>());
        let holders = Holders::look(sources);
        let mut sorted: Vec<_> = files.iter().collect();
        sorted.sort_by_key(|file| locked(file).order());
        let (moved, alone) = moved_and_alone(&sorted);
        // Published under its lock: events of one file come in the order of its contents.
        for file in alone {
            let mut tracked = locked(file);
            let settled = tracked.settle(Some(&holders), turns, patient);
            self.publish(settled.into_iter().collect());
        }
        // A file that moved is one event with the place that it left. Locks are taken by path.
        let mut moved: Vec<_> = moved.into_values().map(|file| locked(file)).collect();
        let settled = moved.iter_mut().filter_map(|it| it.settle(Some(&holders), turns, patient));
        let settled = settled.collect();
        self.publish(settled);
        drop(moved);
        // Only now: a caller that finds no file with writers relies on recorded changes.
        for file in files {
            let mut tracked = locked(file);
            if !tracked.has_writers() {
                if !tracked.is_known() {
                    tracked.release();
                }
                self.table.clean(&tracked.path(), tracked.is_known());
            }
        }
    }

    /// Looks at a path that changed on the disk. `is_new`: it was created.
    pub(super) fn noticed(&self, path: &Path, is_new: bool) {
        if self.scope.leaves_out(path) || self.own.has(path) {
            return;
        }
        let Some(file) = self.file(path) else { return };
        let mut tracked = locked(&file);
        if tracked.has_writers() {
            return;
        }
        let settled = tracked.notice(is_new);
        if !tracked.is_known() {
            self.table.clean(path, false);
        }
        self.publish(settled.into_iter().collect());
    }

    /// Compares a path with the state that the journal knows.
    pub(super) fn compare(&self, path: &Path, known: Option<FileState>) {
        let is_unread = |state: &FileState| state.hash.is_none() && state.kind == FileKind::File;
        let is_left = self.scope.leaves_out(path) || self.scope.denies(path);
        if is_left || known.as_ref().is_some_and(is_unread) {
            return;
        }
        let Some(file) = self.file(path) else { return };
        let mut tracked = locked(&file);
        let settled = tracked.compare(known);
        self.publish(settled.into_iter().collect());
    }

    /// Takes the present content of a path as known, without an event.
    pub(super) fn accept(&self, path: &Path) {
        if self.scope.leaves_out(path) {
            return;
        }
        let Some(file) = self.file(path) else { return };
        let mut tracked = locked(&file);
        tracked.accept();
        if !tracked.has_writers() && !tracked.is_known() {
            self.table.clean(path, false);
        }
    }

    /// Records changes, in the order in which they were registered.
    fn publish(&self, mut all: Vec<Settled>) {
        all.sort_by_key(|settled| settled.order);
        let mut moved: HashMap<Arc<Path>, Settled> = HashMap::new();
        let gone: Vec<_> =
            all.iter().filter(|it| it.after.is_none()).map(|it| it.path.clone()).collect();
        let is_move = |it: &Settled| {
            it.before.is_none()
                && it.after.is_some()
                && it.from.as_ref().is_some_and(|from| gone.contains(from))
        };
        let sources: Vec<_> =
            all.iter().filter(|it| is_move(it)).filter_map(|it| it.from.clone()).collect();
        for settled in all.extract_if(.., |it| it.after.is_none() && sources.contains(&it.path)) {
            moved.insert(Arc::clone(&settled.path), settled);
        }
        for mut settled in all {
            let from = settled.from.take().and_then(|from| moved.remove(&from));
            if let Some(from) = from {
                (settled.before, settled.stamps[0]) = (from.before, from.stamps[0]);
                settled.contents.extend(from.contents);
                settled.from = Some(from.path);
            }
            self.record(settled);
        }
    }

    fn record(&self, settled: Settled) {
        let is_folder = [&settled.before, &settled.after]
            .into_iter()
            .flatten()
            .any(|state| state.kind == FileKind::Folder);
        let ignored = self.scope.ignores(&settled.path, is_folder);
        let cause = match &settled.author {
            Some(_) => FileCause::Agent,
            None if self.unconfined.load(Ordering::Relaxed) > 0 => FileCause::Unknown,
            None => FileCause::Outside,
        };
        let author = settled.author.as_ref();
        let session = author.and_then(|author| author.session.clone());
        let agent = author.map_or_else(|| AgentId::new(""), |author| author.agent.clone());
        let key = SessionKey::new(agent, session.unwrap_or_else(|| SessionId::new("")));
        let change = change_of(settled, cause, ignored, &self.scope, self.room.journal());
        self.tracker.file_changed(key, change);
    }
}

/// The files that moved, with the places that they left, by path; and the others.
fn moved_and_alone<'a>(files: &[&'a File]) -> (BTreeMap<Arc<Path>, &'a File>, Vec<&'a File>) {
    let left: HashSet<_> = files.iter().filter_map(|file| locked(file).from().cloned()).collect();
    let (mut moved, mut alone) = (BTreeMap::new(), Vec::new());
    for &file in files {
        let path = locked(file).path();
        if left.contains(&path) || locked(file).from().is_some() {
            moved.insert(path, file);
        } else {
            alone.push(file);
        }
    }
    (moved, alone)
}
