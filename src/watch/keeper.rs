//! The thread that owns the graph: looks at what changed, and tells of it.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::disk::Disk;
use super::inbox::{GraphTask, Write, Writes};
use super::pending::Changed;
use super::{GraphShared, GraphState, shown};
use crate::bus::{Bus, Demand, Rendered};
use crate::graph::{self, Change, Files, Listing, Only, Recent};
use crate::model::{Event, GraphSnapshot, TimestampMs, Topic};

/// Files that say which others are looked at.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// How long what an agent said it wrote may take to show on the disk.
const CLAIM: Duration = Duration::from_secs(5);

/// How long nothing happens before memory is freed that only makes the next answer faster.
const REST: Duration = Duration::from_secs(30);

/// Is told of each file that the disk shows written.
pub type OnWritten = Box<dyn Fn(Arc<str>) + Send>;

pub(super) struct Keeper {
    pub(super) root: PathBuf,
    pub(super) settings: graph::Settings,
    pub(super) shared: Arc<GraphShared>,
    pub(super) bus: Bus,
    pub(super) on_written: OnWritten,
    pub(super) is_there: watch::Sender<bool>,
}

impl Keeper {
    pub(super) fn run(self) {
        let mut kept = Kept::new(self);
        if let Err(error) = kept.begin() {
            return tracing::warn!(%error, "there is no code graph");
        }
        kept.keep();
    }
}

struct Kept {
    keeper: Keeper,
    disk: Option<Disk>,
    demand: Demand,
    seq: u64,
    /// What agents told of lately: the disk may show it only later.
    claims: HashMap<Arc<str>, (Write, Instant)>,
    /// When agents of the team last wrote what, by id.
    written: HashMap<Arc<str>, TimestampMs>,
    /// What was last shown, until something changes or [`REST`].
    shown: Option<Arc<Rendered<GraphSnapshot>>>,
    /// None until files change, and after [`REST`].
    recent: Option<Recent>,
}

impl Kept {
    fn new(keeper: Keeper) -> Self {
        let told = Arc::clone(&keeper.shared);
        let disk = Disk::new(move |change| told.inbox.changed(change));
        let disk = disk.inspect_err(|error| tracing::warn!(%error, "the code graph is not live"));
        Self {
            disk: disk.ok(),
            demand: keeper.bus.demand(Topic::Graph),
            seq: 0,
            claims: HashMap::new(),
            written: HashMap::new(),
            shown: None,
            recent: None,
            keeper,
        }
    }

    fn begin(&mut self) -> std::io::Result<()> {
        self.look(&Changed::Everything, &BTreeSet::new())?;
        self.keeper.is_there.send_replace(true);
        if self.demand.is_there() {
            self.keeper.bus.publish(Event::Graph(self.snapshot()));
        }
        Ok(())
    }

    fn keep(&mut self) {
        let shared = Arc::clone(&self.keeper.shared);
        let lock = self.keeper.root.join(".git/index.lock");
        loop {
            let rest = (self.recent.is_some() || self.shown.is_some()).then_some(REST);
            match shared.inbox.next(|| lock.exists(), rest) {
                GraphTask::Answer(reply) => {
                    // Who asked may have gone.
                    let _ = reply.send(self.state());
                }
                GraphTask::Look(changed, writes) => self.follow(&changed, writes),
                GraphTask::Rest => (self.recent, self.shown) = (None, None),
                GraphTask::Stop => return,
            }
        }
    }

    fn follow(&mut self, changed: &Changed, writes: Writes) {
        let claimed = writes.keys().map(|path| self.keeper.root.join(&**path)).collect();
        self.claim(writes);
        match self.look(changed, &claimed) {
            Ok(change) => self.take(change),
            // It may come again, and is looked at then.
            Err(error) => tracing::warn!(%error, "cannot look at the workspace"),
        }
    }

    /// Looks at the disk, also at what only agents told of, and brings the graph up to date with it.
    fn look(&mut self, changed: &Changed, claimed: &BTreeSet<PathBuf>) -> std::io::Result<Change> {
        let only = match changed {
            Changed::Paths(paths) => Some(paths | claimed),
            Changed::Everything => None,
        };
        let only = only.filter(|paths| !paths.iter().any(|path| is_ignore_file(path)));
        let only = only.map(Arc::new);
        let listing = self.list(only.as_ref())?;
        let mut files = self.gone(&listing, only.as_ref());
        let shared = &self.keeper.shared;
        let settings = &self.keeper.settings;
        let go_on = || !shared.inbox.is_closed();
        files.extend(match &only {
            Some(_) => {
                let recent = self.recent.get_or_insert_default();
                graph::reread(&listing.files, recent, settings.tokens, go_on)
            }
            // What is kept for the next start is of the whole workspace.
            None => graph::read(&self.keeper.root, &listing.files, settings, &|_, _| go_on()).0,
        });
        if shared.inbox.is_closed() {
            return Ok(Change::default());
        }
        let change = shared.graph().update(files, settings.jobs);
        // Whoever asks for symbols of what was written finds those that it has now.
        if let (Changed::Paths(paths), Some(_)) = (changed, &only) {
            let written = listing.files.iter().filter(|file| paths.contains(&file.path));
            written.for_each(|file| (self.keeper.on_written)(Arc::clone(&file.id)));
        }
        Ok(change)
    }

    /// Lists folders and files after the folders are watched, so that nothing comes in unseen.
    fn list(&mut self, only: Option<&Only>) -> std::io::Result<Listing> {
        let list = || graph::list(&self.keeper.root, self.keeper.settings.jobs, only);
        let listing = list()?;
        match &mut self.disk {
            Some(disk) if !listing.folders.is_empty() => {
                disk.watch(listing.folders.iter().map(PathBuf::as_path));
                list()
            }
            _ => Ok(listing),
        }
    }

    /// The files that the graph has, and the disk has no longer where it was looked at.
    fn gone(&self, listing: &Listing, only: Option<&Only>) -> Files {
        let there: BTreeSet<_> = listing.files.iter().map(|file| &file.id).collect();
        let graph = self.keeper.shared.graph();
        let gone = |id: &&Arc<str>| !there.contains(id);
        let Some(only) = only else {
            return graph.paths().filter(gone).map(|id| (Arc::clone(id), None)).collect();
        };
        let mut files = Files::new();
        for path in only.iter() {
            let below = path.strip_prefix(&self.keeper.root).ok().and_then(Path::to_str);
            let known = below.into_iter().flat_map(|path| graph.files_at(path));
            files.extend(known.filter(gone).map(|id| (Arc::clone(id), None)));
        }
        files
    }

    /// Notes what agents told of, also if the disk cannot be looked at right now.
    fn claim(&mut self, writes: Writes) {
        let now = Instant::now();
        self.claims.retain(|_, (_, since)| now - *since < CLAIM);
        self.claims.extend(writes.into_iter().map(|(path, write)| (path, (write, now))));
    }

    /// Marks what agents wrote, and tells what all that changed.
    fn take(&mut self, mut change: Change) {
        for id in &change.removed {
            self.written.remove(id);
        }
        {
            let graph = self.keeper.shared.graph();
            for (path, (write, _)) in &self.claims {
                for (id, node) in graph.nodes_at(path, write.lines.ranges()) {
                    let before = self.written.insert(Arc::clone(&id), write.timestamp_ms);
                    let is_news = before != Some(write.timestamp_ms);
                    if is_news && !change.added.contains_key(&id) {
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
            self.keeper.bus.publish(Event::GraphDelta(delta));
        }
    }

    fn state(&mut self) -> GraphState {
        let graph = match &self.shown {
            Some(shown) => Arc::clone(shown),
            None => Arc::clone(self.shown.insert(Arc::new(Rendered::new(self.snapshot())))),
        };
        GraphState::There { as_of: self.keeper.bus.position(), graph }
    }

    fn snapshot(&self) -> GraphSnapshot {
        shown::snapshot(self.seq, self.keeper.shared.graph().snapshot(), &self.written)
    }
}

fn is_ignore_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| IGNORE_FILES.iter().any(|known| name == *known))
}

#[cfg(test)]
mod tests;
