//! The thread that writes the journal: one transaction for all waiting work. It reports trouble
//! once; meanwhile it keeps rows up to a bound, and counts those that it drops.

mod batch;
mod insert;
mod recover;
mod texts;
mod upkeep;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::json;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot, watch};

use self::batch::{Batch, bytes_of, content_bytes};
use self::insert::State;
pub(super) use self::texts::insert_refs;
use self::upkeep::Upkeep;
use super::contents::insert_content;
use super::database::{Database, is_corrupt, note};
use super::event::{Blob, Committed, EventType, NewEvent, Place};
use super::fold::Row;
use super::kept;
use super::progress::FeedProgress;
use super::trouble::{Trouble, TroubleKind};
use super::{AppendError, Settings};

/// Rows of one transaction.
const MOST_ROWS: usize = 16_384;

/// Rows kept while nothing can be written; beyond this the oldest are dropped.
const MOST_KEPT: usize = 20_000;

/// Bytes of these rows.
const MOST_KEPT_BYTES: usize = 32 << 20;

/// How often a file that can't be written is tried again, and how often requests are answered
/// meanwhile.
const RETRY: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(50);

/// Appends one event to a journal that this process opened itself.
pub(super) fn append(connection: &mut Connection, event: NewEvent) -> rusqlite::Result<()> {
    State::default().write(connection, None, &[Row::Event(event)], &[]).map(drop)
}

type Reply<T> = oneshot::Sender<Result<T, AppendError>>;

#[derive(Debug)]
pub(super) enum Work {
    Batch {
        rows: Vec<Row>,
        replies: Vec<Reply<()>>,
    },
    Append {
        events: Vec<NewEvent>,
        reply: Reply<Vec<Committed>>,
    },
    /// The same, safe from a power cut.
    AppendSynced {
        events: Vec<NewEvent>,
        reply: Reply<Vec<Committed>>,
    },
    /// Contents that an event will name, safe from a power cut.
    Keep {
        blobs: Vec<Blob>,
        reply: Reply<()>,
    },
    Offer(Vec<NewEvent>),
    Open(Reply<()>),
    /// Time to look at the quotas.
    Tick,
    /// A value of `meta`.
    Note {
        key: &'static str,
        value: String,
    },
    Close(oneshot::Sender<()>),
}

pub(super) struct Writer {
    settings: Arc<Settings>,
    change: watch::Sender<Option<Trouble>>,
    wrote: watch::Sender<()>,
    queued: Arc<AtomicUsize>,
    progress: Arc<FeedProgress>,
    database: Option<Database>,
    state: State,
    upkeep: Upkeep,
    /// Rows that could not be written yet.
    kept: VecDeque<Row>,
    kept_bytes: usize,
    /// The number of dropped rows, and the reason.
    lost: u64,
    why_lost: String,
    /// Values of `meta` that are not written yet.
    notes: BTreeMap<&'static str, String>,
    tried: Option<Instant>,
}

impl Writer {
    pub(super) fn new(
        settings: Arc<Settings>,
        (change, notice, wrote): (
            watch::Sender<Option<Trouble>>,
            watch::Sender<Option<String>>,
            watch::Sender<()>,
        ),
        (queued, progress): (Arc<AtomicUsize>, Arc<FeedProgress>),
    ) -> Self {
        Self {
            upkeep: Upkeep::new(settings.quotas.unwrap_or_default(), notice),
            settings,
            change,
            wrote,
            queued,
            progress,
            database: None,
            state: State::default(),
            kept: VecDeque::new(),
            kept_bytes: 0,
            lost: 0,
            why_lost: String::new(),
            notes: BTreeMap::new(),
            tried: None,
        }
    }

    /// Writes until the last sender is gone, or one asks to close.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Work>) {
        self.open();
        // Contents of this run may come as soon as it writes.
        self.database.iter().for_each(|database| kept::sweep(&database.connection));
        while let Some(batch) = self.next(&mut queue) {
            let is_tick = batch.is_tick;
            let closes = self.write(batch);
            self.keep_up(is_tick);
            if !closes.is_empty() {
                self.close();
                for closed in closes {
                    let _ = closed.send(());
                }
                return;
            }
        }
        self.close();
    }

    fn close(&mut self) {
        if let Some(database) = self.database.take() {
            database.close(&self.settings.path);
        }
    }

    /// Takes all waiting work, up to a bound; in trouble, waits at most until the next try.
    fn next(&mut self, queue: &mut mpsc::Receiver<Work>) -> Option<Batch> {
        let mut batch = Batch::default();
        let is_calm = self.kept.is_empty() && self.change.borrow().is_none();
        if is_calm && !self.upkeep.is_busy() {
            batch.add(queue.blocking_recv()?);
        }
        while batch.rows.len() < MOST_ROWS {
            match queue.try_recv() {
                Ok(work) => batch.add(work),
                Err(TryRecvError::Disconnected) if batch.is_empty() => return None,
                Err(_) if batch.is_empty() && !self.may_try() => std::thread::sleep(POLL),
                Err(_) => break,
            }
        }
        Some(batch)
    }

    fn may_try(&self) -> bool {
        self.tried.is_none_or(|tried| tried.elapsed() >= RETRY)
    }

    fn write(&mut self, batch: Batch) -> Vec<oneshot::Sender<()>> {
        let has_nothing = batch.is_empty() && self.kept.is_empty();
        if has_nothing && self.database.is_some() && self.change.borrow().is_none() {
            return Vec::new();
        }
        let Batch { rows, replies, appends, blobs, is_synced, closes, notes, is_tick: _ } = batch;
        self.notes.extend(notes);
        let bytes: usize = rows.iter().map(bytes_of).sum();
        let offered = rows.iter().map(content_bytes).sum::<usize>();
        let appended = appends.iter().flat_map(|(events, _)| events).map(NewEvent::content_bytes);
        self.queued.fetch_sub(offered + appended.sum::<usize>(), Ordering::Relaxed);
        self.kept_bytes += bytes;
        self.kept.extend(rows);
        if !self.may_try() && closes.is_empty() {
            self.refuse(replies, appends);
            return closes;
        }
        let had_file = self.database.is_some();
        let mut written = self.commit(&appends, &blobs, is_synced);
        let is_corrupt = |trouble: &Trouble| trouble.kind == TroubleKind::Corrupt;
        if had_file && self.database.is_none() && written.as_ref().is_err_and(is_corrupt) {
            // It was set aside, and a new one begins.
            written = self.commit(&appends, &blobs, is_synced);
        }
        match written {
            Ok(committed) => {
                for reply in replies {
                    let _ = reply.send(Ok(()));
                }
                for ((_, reply), committed) in appends.into_iter().zip(committed) {
                    drop(reply.send(committed));
                }
            }
            Err(trouble) => {
                self.fail(trouble);
                self.refuse(replies, appends);
            }
        }
        closes
    }

    fn refuse(
        &mut self,
        replies: Vec<Reply<()>>,
        appends: Vec<(Vec<NewEvent>, Reply<Vec<Committed>>)>,
    ) {
        let trouble = self.change.borrow().as_ref().map(ToString::to_string).unwrap_or_default();
        let refused = || AppendError::Trouble(trouble.clone());
        for reply in replies {
            let _ = reply.send(Err(refused()));
        }
        for (_, reply) in appends {
            let _ = reply.send(Err(refused()));
        }
        while self.kept.len() > MOST_KEPT || self.kept_bytes > MOST_KEPT_BYTES {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.kept_bytes -= bytes_of(&oldest);
            self.lost += 1;
            self.progress.lost(1);
        }
    }

    /// Writes all kept rows and the appended events, or nothing.
    fn commit(
        &mut self,
        appends: &[(Vec<NewEvent>, Reply<Vec<Committed>>)],
        blobs: &[Blob],
        is_synced: bool,
    ) -> Result<Vec<Result<Vec<Committed>, AppendError>>, Trouble> {
        self.tried = Some(Instant::now());
        let path = &self.settings.path;
        if self.database.as_ref().is_some_and(|database| database.was_moved(path)) {
            tracing::warn!("the journal {} was moved or removed: a new one begins", path.display());
            self.database = None;
        }
        if self.database.is_none() {
            self.open();
        }
        let Some(database) = &mut self.database else {
            let trouble = self.change.borrow().clone();
            return Err(trouble.unwrap_or_else(|| {
                Trouble::new(TroubleKind::Other, &self.settings.path, "it is closed")
            }));
        };
        database.bound_log(&self.settings.path)?;
        if is_synced {
            database.sync_if_new(&self.settings.path)?;
        }
        while let Some((key, value)) = self.notes.pop_first() {
            // A note that fails is not tried again.
            let _ = note(&database.connection, key, &value);
        }
        let gap = (self.lost > 0).then(|| {
            let payload = json!({ "events": self.lost, "reason": &self.why_lost });
            NewEvent::new(Place::Team, EventType::GAP, &payload)
        });
        let rows = self.kept.make_contiguous();
        let written = synced(&mut database.connection, is_synced, |connection| {
            if !blobs.is_empty() {
                let transaction = connection.transaction()?;
                blobs.iter().try_for_each(|blob| insert_content(&transaction, blob))?;
                transaction.commit()?;
            }
            self.state.write(connection, gap.as_ref(), rows, appends)
        });
        match written {
            Ok(committed) => {
                self.progress.gap_is_written(self.lost);
                self.wrote.send_replace(());
                self.kept.clear();
                (self.kept_bytes, self.lost, self.tried) = (0, 0, None);
                if self.change.borrow().is_some() {
                    tracing::info!("the journal {} is written again", self.settings.path.display());
                    self.change.send_replace(None);
                }
                Ok(committed)
            }
            Err(error) => {
                self.state = State::default();
                self.give_up(&error)
            }
        }
    }

    /// Keeps the journal within its quotas, a little at a time.
    fn keep_up(&mut self, is_tick: bool) {
        let path = &self.settings.path;
        let Some(database) = self.database.as_mut().filter(|_| self.change.borrow().is_none())
        else {
            return;
        };
        let connection = &mut database.connection;
        let ticked = if is_tick { self.upkeep.tick(connection, path) } else { Ok(()) };
        let stepped = ticked.and_then(|()| {
            if !self.upkeep.is_busy() {
                return Ok(None);
            }
            // A remembered session may be one that goes.
            self.state.forget();
            self.upkeep.step(connection, path)
        });
        let kept = match stepped {
            Ok(event) => database.bound_log(path).map(|()| event),
            Err(error) => self.give_up(&error),
        };
        match kept {
            Ok(event) => {
                let row = event.map(Row::Event);
                self.kept_bytes += row.as_ref().map_or(0, bytes_of);
                self.kept.extend(row);
            }
            Err(trouble) => self.fail(trouble),
        }
    }

    /// Handles an error of the database.
    fn give_up<T>(&mut self, error: &rusqlite::Error) -> Result<T, Trouble> {
        let path = &self.settings.path;
        let trouble = Trouble::of_sqlite(path, error);
        if is_corrupt(error)
            && let Some(database) = self.database.take()
        {
            database.set_aside(path, &error.to_string())?;
        }
        if matches!(trouble.kind, TroubleKind::ReadOnly | TroubleKind::Other) {
            self.database = None;
        }
        Err(trouble)
    }

    fn open(&mut self) {
        self.tried = Some(Instant::now());
        self.state = std::mem::take(&mut self.state).reopened();
        let opened = Database::open(&self.settings.path).and_then(|mut database| {
            let recovered = self.state.recover(&mut database.connection, &self.settings);
            let resumed = recovered.and_then(|()| self.upkeep.resume(&database.connection));
            resumed.map_err(|error| Trouble::of_sqlite(&self.settings.path, &error))?;
            Ok(database)
        });
        match opened {
            Ok(database) => {
                self.database = Some(database);
                self.tried = None;
            }
            Err(trouble) => self.fail(trouble),
        }
    }

    /// Reports the trouble once.
    fn fail(&mut self, trouble: Trouble) {
        let is_known = self.change.borrow().as_ref().is_some_and(|last| last.kind == trouble.kind);
        if !is_known {
            tracing::warn!("{trouble}");
        }
        trouble.why.clone_into(&mut self.why_lost);
        self.change.send_replace(Some(trouble));
    }
}

/// Makes the transactions of `write` wait for the disk.
fn synced<T>(
    connection: &mut Connection,
    is_synced: bool,
    write: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    if !is_synced {
        return write(connection);
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    let written = write(connection);
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    written
}
