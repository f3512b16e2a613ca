//! The thread that owns the graph: reads changed files and publishes the graph's changes.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::disk::{Disk, DiskChange};
use super::inbox::{GraphTask, Write, Writes};
use super::pending::Changed;
use super::{GraphShared, GraphState, shown};
use crate::bus::{Bus, Demand, Rendered};
use crate::graph::{self, Change, Entry, Files, Listing, Only, Recent};
use crate::model::{Event, GraphSnapshot, TimestampMs, Topic};

/// Files whose change can add or remove other files.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// The time between an agent's claim of a write and its appearance on the disk.
const CLAIM: Duration = Duration::from_secs(5);

/// Time without a task after which memory is freed that only makes the next answer faster.
const REST: Duration = Duration::from_secs(30);

/// Called for each file written on disk.
pub type OnWritten = Box<dyn Fn(Arc<str>) + Send>;

/// Called at once for each change in a watched folder, with its paths, and whether they are new.
pub type OnChanged = Box<dyn Fn(&[PathBuf], bool) + Send>;

pub(super) struct UpdaterThread {
    pub(super) root: PathBuf,
    pub(super) settings: graph::Settings,
    pub(super) shared: Arc<GraphShared>,
    pub(super) bus: Bus,
    pub(super) on_written: OnWritten,
    pub(super) on_changed: Option<OnChanged>,
    pub(super) is_there: watch::Sender<bool>,
}

impl UpdaterThread {
    pub(super) fn run(self) {
        let mut updater = Updater::new(self);
        if let Err(error) = updater.begin() {
            return tracing::warn!(%error, "there is no code graph");
        }
        updater.run();
    }
}

struct Updater {
    thread: UpdaterThread,
    disk: Option<Disk>,
    demand: Demand,
    seq: u64,
    /// Writes recently claimed by agents: the disk may show them later.
    claims: HashMap<Arc<str>, (Write, Instant)>,
    /// Times of the agents' last writes, by node id.
    written: HashMap<Arc<str>, TimestampMs>,
    /// The last snapshot, until a change or [`REST`].
    shown: Option<Arc<Rendered<GraphSnapshot>>>,
    /// None until files change, and after [`REST`].
    recent: Option<Recent>,
}

impl Updater {
    fn new(mut thread: UpdaterThread) -> Self {
        let shared = Arc::clone(&thread.shared);
        let on_changed = thread.on_changed.take();
        let disk = Disk::new(move |change| {
            if let (Some(on_changed), DiskChange::Paths { paths, are_new }) = (&on_changed, &change)
            {
                on_changed(paths, *are_new);
            }
            shared.inbox.changed(change);
        });
        let disk = disk.inspect_err(|error| tracing::warn!(%error, "the code graph is not live"));
        Self {
            disk: disk.ok(),
            demand: thread.bus.demand(Topic::Graph),
            seq: 0,
            claims: HashMap::new(),
            written: HashMap::new(),
            shown: None,
            recent: None,
            thread,
        }
    }

    fn begin(&mut self) -> std::io::Result<()> {
        self.read_changes(&Changed::Everything, &BTreeSet::new())?;
        self.thread.is_there.send_replace(true);
        if self.demand.is_there() {
            self.thread.bus.publish(Event::Graph(self.snapshot()));
        }
        Ok(())
    }

    fn run(&mut self) {
        let shared = Arc::clone(&self.thread.shared);
        let lock = self.thread.root.join(".git/index.lock");
        loop {
            let rest = (self.recent.is_some() || self.shown.is_some()).then_some(REST);
            match shared.inbox.next(|| lock.exists(), rest) {
                GraphTask::Answer(reply) => {
                    // The receiver may be gone.
                    let _ = reply.send(self.state());
                }
                GraphTask::Read(changed, writes) => self.update(&changed, writes),
                GraphTask::Rest => (self.recent, self.shown) = (None, None),
                GraphTask::Stop => return,
            }
        }
    }

    fn update(&mut self, changed: &Changed, writes: Writes) {
        let claimed = writes.keys().map(|path| self.thread.root.join(&**path)).collect();
        self.claim(writes);
        match self.read_changes(changed, &claimed) {
            Ok(change) => self.publish(change),
            // The next change tries again.
            Err(error) => tracing::warn!(%error, "cannot look at the workspace"),
        }
    }

    /// Reads the changed files, and those that only agents claimed, and updates the graph.
    fn read_changes(
        &mut self,
        changed: &Changed,
        claimed: &BTreeSet<PathBuf>,
    ) -> std::io::Result<Change> {
        let only = match changed {
            Changed::Paths(paths) => Some(paths | claimed),
            Changed::Everything => None,
        };
        let only = only.filter(|paths| !paths.iter().any(|path| is_ignore_file(path)));
        let only = only.map(Arc::new);
        let listing = self.list(only.as_ref())?;
        let mut files = self.gone(&listing, only.as_ref());
        let shared = &self.thread.shared;
        let settings = &self.thread.settings;
        let go_on = || !shared.inbox.is_closed();
        files.extend(match &only {
            Some(_) => {
                let recent = self.recent.get_or_insert_default();
                graph::reread(&listing.files, recent, settings.tokens, go_on)
            }
            // The cache for the next start needs the whole workspace.
            None => graph::read(&self.thread.root, &listing.files, settings, &|_, _| go_on()).0,
        });
        if shared.inbox.is_closed() {
            return Ok(Change::default());
        }
        let change = shared.graph.lock().update(files, settings.jobs);
        // Only now do queries return the symbols of the written text.
        if let Changed::Paths(paths) = changed {
            // A folder that is new was not watched when its files came.
            let came_with_folder = |file: &&Entry| {
                change.added.contains_key(&file.id)
                    && file.path.ancestors().any(|path| paths.contains(path))
            };
            let is_written = |file: &&Entry| paths.contains(&file.path) || came_with_folder(file);
            let written = listing.files.iter().filter(is_written);
            written.for_each(|file| (self.thread.on_written)(Arc::clone(&file.id)));
        }
        Ok(change)
    }

    /// Lists folders and files, after watching the folders, so that no change is missed.
    fn list(&mut self, only: Option<&Only>) -> std::io::Result<Listing> {
        let list = || graph::list(&self.thread.root, self.thread.settings.jobs, only);
        let listing = list()?;
        match &mut self.disk {
            Some(disk) if !listing.folders.is_empty() => {
                disk.watch(listing.folders.iter().map(PathBuf::as_path));
                list()
            }
            _ => Ok(listing),
        }
    }

    /// The files of the graph that are no longer on disk.
    fn gone(&self, listing: &Listing, only: Option<&Only>) -> Files {
        let there: BTreeSet<_> = listing.files.iter().map(|file| &file.id).collect();
        let graph = self.thread.shared.graph.lock();
        let gone = |id: &&Arc<str>| !there.contains(id);
        let Some(only) = only else {
            return graph.paths().filter(gone).map(|id| (Arc::clone(id), None)).collect();
        };
        let mut files = Files::new();
        for path in only.iter() {
            let below = path.strip_prefix(&self.thread.root).ok().and_then(Path::to_str);
            let known = below.into_iter().flat_map(|path| graph.files_at(path));
            files.extend(known.filter(gone).map(|id| (Arc::clone(id), None)));
        }
        files
    }

    /// Records agents' claims, even if the disk cannot be read now.
    fn claim(&mut self, writes: Writes) {
        let now = Instant::now();
        self.claims.retain(|_, (_, since)| now - *since < CLAIM);
        self.claims.extend(writes.into_iter().map(|(path, write)| (path, (write, now))));
    }

    /// Marks the symbols that agents wrote, and publishes the change.
    fn publish(&mut self, mut change: Change) {
        for id in &change.removed {
            self.written.remove(id);
        }
        {
            let graph = self.thread.shared.graph.lock();
            for (path, (write, _)) in &self.claims {
                for (id, node) in graph.nodes_at(path, write.lines.ranges()) {
                    let before = self.written.insert(Arc::clone(&id), write.timestamp_ms);
                    let is_new = before != Some(write.timestamp_ms);
                    if is_new && !change.added.contains_key(&id) {
                        change.changed.insert(id, node);
                    }
                }
            }
        }
        if change.is_empty() {
            return;
        }
        self.seq += 1;
        self.shown = None;
        if self.demand.is_there() {
            let delta = shown::delta(self.seq, change, &self.written);
            self.thread.bus.publish(Event::GraphDelta(delta));
        }
    }

    fn state(&mut self) -> GraphState {
        let graph = match &self.shown {
            Some(shown) => Arc::clone(shown),
            None => Arc::clone(self.shown.insert(Arc::new(Rendered::new(self.snapshot())))),
        };
        GraphState::There { as_of: self.thread.bus.position(), graph }
    }

    fn snapshot(&self) -> GraphSnapshot {
        shown::snapshot(self.seq, self.thread.shared.graph.lock().snapshot(), &self.written)
    }
}

fn is_ignore_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| IGNORE_FILES.iter().any(|known| name == *known))
}

#[cfg(test)]
mod tests;
