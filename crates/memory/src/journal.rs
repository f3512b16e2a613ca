//! The team's memory: an append-only log of events in one `SQLite` file, with the contents that they
//! name. Owns the schema (`docs/journal.md`), the fold of bus events into it, its writer and its
//! readers.
//!
//! ```text
//! bus ─▶ feed (fold: chunks → messages, updates → calls) ─▶ bounded queue ─▶ writer (one thread, one transaction a batch)
//! append ──────────────────────────────────────────────────────▲                    └▶ committed
//! ```
//!
//! To read a journal, open a [`Store`]: it needs no running team. To write one, [`start`] it, or
//! [`open()`] it where no team runs; then [`Journal::append`] and await the result.

mod chunks;
mod contents;
mod conversation;
mod database;
mod delivery;
mod earlier;
mod event;
mod feed;
mod fold;
mod gone;
mod ids;
mod kept;
mod migrations;
mod model_call;
mod names;
mod outside;
mod payload;
mod pins;
mod portable;
mod probe;
mod progress;
mod prune;
mod purge;
mod quotas;
mod reader;
mod search;
mod sessions;
mod spending;
mod trouble;
mod wal;
mod writer;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use self::earlier::RUN_AFTER;
use self::feed::Feed;
use self::progress::FeedProgress;
use self::writer::{Work, Writer};
use crate::bus::Subscriber;
use crate::model::{FileContent, FileContents, KeptFiles, KeptForm, OutsideFiles, Topic};

pub use conversation::Point;
pub use database::{APPLICATION_ID, ChangeError, OpenError, files_set_aside, is_written};
pub use delivery::{Numbered, Stretch};
pub use earlier::first_run;
pub use event::{Blob, Committed, EventType, Head, NewEvent, Place, hash_of};
pub use fold::user_text;
pub use gone::{excess, past, prune};
pub use kept::{HeldContent, KeptFolder};
pub use migrations::VERSION;
pub use names::NameError;
pub use outside::{OutsideContents, outside, remove_outside};
pub use payload::{
    BlockedPayload, CallPayload, MessagePayload, PathUsePayload, PlanPayload, SpawnPayload,
    StatePayload, TurnPayload, UpdatePayload, UsagePayload,
};
pub use pins::{Pin, PinKind, pin, unpin};
pub use portable::{PortError, export, import, team_of};
pub use probe::probe;
pub use progress::JournalProgress;
pub use prune::Pruned;
pub use purge::pattern::{MARK, Pattern, PatternError};
pub use purge::{Matches, find, purge};
pub use quotas::{Excess, Quotas};
pub use reader::{Event, Filter, Found, Page, Session, Store};
pub use rusqlite::InterruptHandle;
pub use search::is_searchable;
pub use spending::spending;
pub use trouble::Trouble;

/// Journals, and files beside them. Those that were set aside may be corrupt.
pub const KEPT: [KeptFiles; 3] = [
    KeptFiles::new(
        "journal",
        KeptForm::Journal,
        &["teams/*/journal.db", "teams/*/journal.db-wal", "teams/*/journal.db-shm"],
    ),
    KeptFiles::new("journal", KeptForm::Fixed, &["teams/*/journal.db*"]),
    KeptFiles::new("content of a file", KeptForm::Content, &["teams/*/journal.db*.kept/*"]),
];

/// Batches and single events that wait for the writer; beyond this the feed waits, and only the
/// bus's backlog grows.
const QUEUE: usize = 256;

/// Bytes of contents that wait for the writer; beyond this [`Journal::offer`] refuses more.
const MOST_QUEUED: usize = 64 << 20;

/// How long a sender waits for an event to be committed.
const PATIENCE: Duration = Duration::from_secs(5);

/// The data that the journal keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keep {
    /// Texts of prompts, messages, tool inputs and files.
    pub texts: bool,
    /// How much is kept of files outside the workspace.
    pub outside: OutsideFiles,
}

impl Default for Keep {
    fn default() -> Self {
        Self { texts: true, outside: OutsideFiles::default() }
    }
}

impl Keep {
    /// Whether the contents of files are kept: of those outside the workspace, or in it.
    pub fn contents(self, are_outside: bool) -> bool {
        self.texts && (!are_outside || self.outside == OutsideFiles::Content)
    }
}

/// The settings of a team's journal.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The team's name, which a new file notes in `meta`.
    pub team: String,
    /// The file of the journal, `journal.db`. The files beside it begin with its name.
    pub path: PathBuf,
    /// The texts and contents that are recorded.
    pub keep: Keep,
    /// None: the stored quotas of the last run stay, and nothing is removed.
    pub quotas: Option<Quotas>,
}

/// Why an event was not committed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AppendError {
    /// The file can't be written now; the text says why.
    #[error("the journal can't be written: {0}")]
    Trouble(String),
    /// The event names a session or an event that the journal does not have; the text names it.
    #[error("the journal has no such {0}")]
    Unknown(String),
    /// No answer came within 5 s. The event may be committed later.
    #[error("the journal did not answer in time")]
    Late,
    /// The journal was closed, or its thread has ended.
    #[error("the journal is closed")]
    Closed,
}

/// Adds events to a journal; cheap to clone.
#[derive(Clone, Debug)]
pub struct Journal {
    settings: Arc<Settings>,
    work: mpsc::Sender<Work>,
    settle: mpsc::Sender<feed::Settle>,
    queued: Arc<AtomicUsize>,
    lost: Arc<AtomicUsize>,
    progress: Arc<FeedProgress>,
    trouble: watch::Receiver<Option<Trouble>>,
    notice: watch::Receiver<Option<String>>,
    written: watch::Receiver<()>,
    is_new: bool,
}

/// Starts a journal that follows the bus. The future ends once the bus is closed and all its events
/// are committed.
pub fn start(settings: Settings, events: Subscriber) -> (Journal, impl Future<Output = ()> + Send) {
    let (journal, settles, ended) = spawn(settings);
    let mut events = events;
    events.want(Topic::Record);
    events.want(Topic::Report);
    events.want(Topic::Task);
    let feed = Feed::new(&journal.settings, events, settles, journal.work.clone());
    let (lost, progress) = (Arc::clone(&journal.lost), Arc::clone(&journal.progress));
    let following = async move {
        feed.run(lost, &progress).await;
        // Fails only if the writer's thread panicked.
        let _ = ended.await;
    };
    (journal, following)
}

/// Opens a journal for appending while no team runs; fails if one does.
pub async fn open(settings: Settings) -> Result<Journal, AppendError> {
    let (journal, _, _) = spawn(settings);
    journal.opened().await?;
    Ok(journal)
}

fn spawn(settings: Settings) -> (Journal, mpsc::Receiver<feed::Settle>, oneshot::Receiver<()>) {
    let (work, queue) = mpsc::channel(QUEUE);
    let (settle, settles) = mpsc::channel(QUEUE);
    let (change, trouble) = watch::channel(None);
    let (announce, notice) = watch::channel(None);
    let (wrote, written) = watch::channel(());
    let (queued, lost) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let is_new = !settings.path.exists();
    let (settings, progress) = (Arc::new(settings), Arc::<FeedProgress>::default());
    let (end, ended) = oneshot::channel();
    let counts = (Arc::clone(&queued), Arc::clone(&progress));
    let writer = Writer::new(Arc::clone(&settings), (change, announce, wrote), counts);
    let started = std::thread::Builder::new().name("journal".to_owned()).spawn(move || {
        writer.run(queue);
        let _ = end.send(());
    });
    if let Err(error) = started {
        tracing::warn!(%error, "cannot start the journal's thread: nothing is recorded");
    }
    let journal = Journal {
        settings,
        work,
        settle,
        queued,
        lost,
        progress,
        trouble,
        notice,
        written,
        is_new,
    };
    (journal, settles, ended)
}

impl Journal {
    /// The settings that it was started or opened with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether its file was missing when it was started: it has nothing of earlier runs.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Waits until the file is open, and the remains of a killed run are in it.
    pub async fn opened(&self) -> Result<(), AppendError> {
        let (opened, is_open) = oneshot::channel();
        let sent = self.work.send(Work::Open(opened)).await;
        sent.map_err(|_| AppendError::Closed)?;
        is_open.await.map_err(|_| AppendError::Closed)?
    }

    /// Appends an event and waits until it is committed; fails if that takes too long.
    pub async fn append(&self, event: NewEvent) -> Result<Committed, AppendError> {
        self.append_all(vec![event]).await?.pop().ok_or(AppendError::Closed)
    }

    /// Appends events in one transaction: all of them, or none.
    pub async fn append_all(&self, events: Vec<NewEvent>) -> Result<Vec<Committed>, AppendError> {
        let (reply, committed) = oneshot::channel();
        self.count_in(&events);
        let appending = async {
            let sent = self.work.send(Work::Append { events, reply }).await;
            sent.map_err(|_| AppendError::Closed)?;
            committed.await.map_err(|_| AppendError::Closed)?
        };
        timeout(PATIENCE, appending).await.unwrap_or(Err(AppendError::Late))
    }

    /// Appends events and waits, without a time limit, until they are committed and safe from a
    /// power cut, or have failed.
    /// Several events go in one transaction, and the first is returned.
    pub async fn append_synced(&self, events: Vec<NewEvent>) -> Result<Committed, AppendError> {
        let (reply, committed) = oneshot::channel();
        self.count_in(&events);
        let sent = self.work.send(Work::AppendSynced { events, reply }).await;
        sent.map_err(|_| AppendError::Closed)?;
        let committed = committed.await.map_err(|_| AppendError::Closed)??;
        committed.into_iter().next().ok_or(AppendError::Closed)
    }

    /// Stores contents that an event will name, safe from a power cut.
    pub async fn keep(&self, blobs: Vec<Blob>) -> Result<(), AppendError> {
        let (reply, kept) = oneshot::channel();
        let sent = self.work.send(Work::Keep { blobs, reply }).await;
        sent.map_err(|_| AppendError::Closed)?;
        kept.await.map_err(|_| AppendError::Closed)?
    }

    /// Offers an event without waiting, from any thread. False if there is no room: then a `gap`
    /// counts it.
    pub fn offer(&self, event: NewEvent) -> bool {
        let has_room = self.has_room();
        let events = vec![event];
        self.count_in(&events);
        let taken = has_room && self.work.try_send(Work::Offer(events)).is_ok();
        if !taken {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    /// Whether more contents may wait for the writer.
    pub fn has_room(&self) -> bool {
        self.queued.load(Ordering::Relaxed) < MOST_QUEUED
    }

    /// Contents for an event that will be published on the bus.
    pub fn contents(&self, contents: Vec<(Arc<str>, FileContent)>) -> FileContents {
        FileContents::new(contents, Arc::clone(&self.queued))
    }

    /// Notes the folder that paths are relative to, in `meta`.
    pub fn note_workspace(&self, workspace: &Path) {
        let value = workspace.display().to_string();
        // If the queue is full, the old value stays.
        let _ = self.work.try_send(Work::Note { key: "workspace", value });
    }

    /// Notes the event behind which those of the run are; None: the run ended.
    pub fn note_run(&self, after: Option<String>) {
        // If the queue is full, the old value stays.
        let _ = self.work.try_send(Work::Note { key: RUN_AFTER, value: after.unwrap_or_default() });
    }

    /// Waits until all events published on the bus before number `position` are committed.
    pub async fn settled(&self, position: u64) -> Result<(), AppendError> {
        let (reply, settled) = oneshot::channel();
        let settling = async {
            let sent = self.settle.send((position, reply)).await;
            sent.map_err(|_| AppendError::Closed)?;
            settled.await.map_err(|_| AppendError::Closed)?
        };
        timeout(PATIENCE, settling).await.unwrap_or(Err(AppendError::Late))
    }

    /// Closes the file; events that are appended later are lost.
    pub async fn close(&self) {
        let (closed, is_closed) = oneshot::channel();
        if self.work.send(Work::Close(closed)).await.is_ok() {
            let _ = is_closed.await;
        }
    }

    /// How it keeps up with its team.
    pub fn progress(&self) -> JournalProgress {
        let queued = self.work.max_capacity() - self.work.capacity();
        self.progress.of(queued, self.queued.load(Ordering::Relaxed))
    }

    /// Why nothing can be written now.
    pub fn trouble(&self) -> Option<Trouble> {
        self.trouble.borrow().clone()
    }

    /// The notice of a coming deletion, or the reason that a file stays too large.
    pub fn notice(&self) -> Option<String> {
        self.notice.borrow().clone()
    }

    /// Changes when events were committed by this process; ends when the last ones are.
    pub fn written(&self) -> watch::Receiver<()> {
        self.written.clone()
    }

    fn count_in(&self, events: &[NewEvent]) {
        let bytes = events.iter().map(NewEvent::content_bytes).sum();
        self.queued.fetch_add(bytes, Ordering::Relaxed);
    }
}
