//! One try to deliver what comes next: reads it, delivers it, and remembers that. What could not be
//! delivered is kept for the next try, as it was. Also tries to deliver history. Blocks its thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use super::batch::{Batch, Reading, ScopeFilter, StreamLine};
use super::cursor::Cursor;
use super::file::RotatingFile;
use super::health::Failure;
use super::sink::Sink;
use crate::journal::{OpenError, Store};
use crate::model::now_ms;

/// How often a receiver refuses a batch before its lines go one by one, and a line before it is given up.
const REFUSALS: u32 = 5;

/// Events that are passed over before the cursor is written again.
const UNSAVED: u64 = 1_000;

/// Bytes of a file with what was given up.
const DEAD_BYTES: u64 = 64 << 20;

/// A stream's own parts.
#[derive(Debug)]
pub(super) struct Delivery {
    reading: Reading,
    sink: Sink,
    scope: ScopeFilter,
    place: PathBuf,
    dead: RotatingFile,
    from_start: bool,
    /// None: not looked for yet.
    at: Option<Cursor>,
    /// The number in the cursor's file.
    saved: u64,
    unsent: Unsent,
    /// The receiver took something since an event was given up that it may not have refused for itself.
    is_proven: bool,
}

/// The batch that could not be delivered yet.
#[derive(Default, Debug)]
struct Unsent {
    pending: Option<Batch>,
    refusals: u32,
    /// The lines of `pending` go one by one.
    is_single: bool,
}

/// A session that is delivered again.
#[derive(Debug)]
pub(super) struct History {
    pub(super) replay_id: Arc<str>,
    /// Its id in the journal.
    pub(super) session: String,
    /// The number in the journal up to which it is delivered, and up to which it is to be.
    at: u64,
    until: u64,
    unsent: Unsent,
    /// Events that were delivered.
    pub(super) events: u64,
    /// Events that the receiver refused for good.
    pub(super) dead: u64,
}

impl History {
    pub(super) fn new(replay_id: Arc<str>, session: String, until: u64) -> Self {
        let (at, unsent, events, dead) = (0, Unsent::default(), 0, 0);
        Self { replay_id, session, at, until, unsent, events, dead }
    }
}

/// The outcome of a try.
#[derive(Default, Debug)]
pub(super) struct Attempted {
    /// Events.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) dead: u64,
    pub(super) position: Option<u64>,
    /// Something was delivered, or given up.
    pub(super) has_progress: bool,
    /// There is more to deliver.
    pub(super) more: bool,
    pub(super) failure: Option<Failure>,
}

#[derive(Serialize)]
struct DeadLine<'a> {
    stream: &'a str,
    reason: &'a str,
    timestamp: u64,
    event: &'a RawValue,
}

impl Delivery {
    pub(super) fn new(
        (reading, sink): (Reading, Sink),
        scope: ScopeFilter,
        folder: &Path,
        name: &str,
        from_start: bool,
    ) -> Self {
        let place = place(folder, name);
        let dead = RotatingFile::new(folder.join(format!("{name}.dead.ndjson")), DEAD_BYTES, 1);
        let (at, saved, unsent, is_proven) = (None, 0, Unsent::default(), false);
        Self { reading, sink, scope, place, dead, from_start, at, saved, unsent, is_proven }
    }

    /// Looks for the cursor: where the stream begins, if it is new.
    pub(super) fn locate(&mut self) -> Result<(), OpenError> {
        if self.at.is_some() {
            return Ok(());
        }
        let known = Cursor::read(&self.place).unwrap_or_else(|error| {
            let file = self.place.display();
            tracing::warn!("the stream begins anew, as {file} can't be read: {error}");
            self.from_start = true;
            None
        });
        let store = Store::open(&self.reading.journal).inspect_err(|error| {
            // What is in it once it is there was not delivered.
            self.from_start |= matches!(error, OpenError::Missing(_));
        })?;
        let at = match known {
            Some(known) => known,
            None if self.from_start => Cursor::start(&store)?,
            None => Cursor::end(&store)?,
        };
        self.save(&at);
        self.at = Some(at);
        Ok(())
    }

    /// Delivers what comes next in the journal, and a canary line if that is wanted.
    pub(super) fn next(&mut self, canary: bool) -> Attempted {
        let mut attempted = Attempted::default();
        let batch = match self.read(canary) {
            Ok(Some(batch)) => batch,
            Ok(None) => return attempted,
            Err(error) => {
                attempted.failure = Some(Failure::new(error));
                return attempted;
            }
        };
        let (after, lost, more) = (batch.after.clone(), batch.lost, batch.more);
        let has_lines = !batch.lines.is_empty();
        let mut unsent = std::mem::take(&mut self.unsent);
        attempted.failure = self.deliver(&mut unsent, batch, &mut attempted).err();
        self.unsent = unsent;
        if attempted.failure.is_none() {
            if has_lines || after.number.abs_diff(self.saved) >= UNSAVED {
                self.save(&after);
            }
            (attempted.lost, attempted.more) = (lost, more);
            self.at = Some(after);
        }
        attempted.position = self.at.as_ref().map(|at| at.number);
        attempted
    }

    /// Delivers what comes next of a session; without more there, it is over.
    pub(super) fn history(&mut self, history: &mut History) -> Attempted {
        let mut attempted = Attempted::default();
        let pending = history.unsent.pending.take().map(Ok);
        let batch = pending.unwrap_or_else(|| {
            let History { replay_id, session, at, until, .. } = &*history;
            self.reading.again(replay_id, session, (*at, *until), self.sink.most())
        });
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => {
                attempted.failure = Some(Failure::new(error));
                return attempted;
            }
        };
        let (number, more) = (batch.after.number, batch.more);
        attempted.failure = self.deliver(&mut history.unsent, batch, &mut attempted).err();
        history.events += std::mem::take(&mut attempted.delivered);
        history.dead += std::mem::take(&mut attempted.dead);
        if attempted.failure.is_none() {
            (history.at, attempted.more) = (number, more);
        }
        attempted
    }

    /// Remembers how far it is, at the end.
    pub(super) fn rest(&mut self) {
        if let Some(at) = self.at.clone().filter(|at| at.number != self.saved) {
            self.save(&at);
        }
    }

    /// Reads the batch that was not delivered yet, or the next one; None without a journal.
    fn read(&mut self, canary: bool) -> Result<Option<Batch>, OpenError> {
        if let Some(pending) = self.unsent.pending.take() {
            return Ok(Some(pending));
        }
        match self.locate() {
            // It begins with the first event.
            Err(OpenError::Missing(_)) => return Ok(None),
            located => located?,
        }
        let Some(at) = &self.at else { return Ok(None) };
        let mut batch = self.reading.next(at, &mut self.scope, self.sink.most())?;
        if canary {
            batch.lines.push(self.reading.canary(batch.after.number));
        }
        Ok(Some(batch))
    }

    /// Delivers a batch, or keeps what is left of it.
    fn deliver(
        &mut self,
        unsent: &mut Unsent,
        mut batch: Batch,
        attempted: &mut Attempted,
    ) -> Result<(), Failure> {
        while !batch.lines.is_empty() {
            let count = if unsent.is_single { 1 } else { batch.lines.len() };
            let Err(failure) = self.sink.deliver(&batch.lines[..count]) else {
                (unsent.refusals, attempted.has_progress) = (0, true);
                self.is_proven = true;
                let lines = batch.lines.drain(..count);
                attempted.delivered += lines.filter(|line| line.is_event).count() as u64;
                continue;
            };
            unsent.refusals = unsent.refusals.saturating_add(failure.is_refusal.into());
            let is_broken = count == 1 && failure.is_doubtful && !self.is_proven;
            if unsent.refusals < REFUSALS || is_broken {
                unsent.pending = Some(batch);
                return Err(failure);
            }
            unsent.refusals = 0;
            if count > 1 {
                unsent.is_single = true;
                continue;
            }
            if let Err(failure) = self.give_up(&batch.lines[0], &failure.why) {
                unsent.pending = Some(batch);
                return Err(failure);
            }
            self.is_proven &= !failure.is_doubtful;
            attempted.dead += 1;
            attempted.has_progress = true;
            batch.lines.remove(0);
        }
        unsent.is_single = false;
        Ok(())
    }

    fn give_up(&mut self, line: &StreamLine, reason: &str) -> Result<(), Failure> {
        let event = RawValue::from_string(line.json.clone()).map_err(Failure::new)?;
        let stream = &*self.reading.stream;
        let dead = DeadLine { stream, reason, timestamp: now_ms(), event: &event };
        let dead = serde_json::to_string(&dead).map_err(Failure::new)?;
        tracing::warn!(stream, event = line.id, "the stream's receiver refuses an event: {reason}");
        self.dead.append([&*dead].into_iter()).map_err(Failure::new)
    }

    /// Writes the cursor. If it can't be written, more is delivered twice after a restart.
    fn save(&mut self, at: &Cursor) {
        match at.write(&self.place) {
            Ok(()) => self.saved = at.number,
            Err(error) => {
                let file = self.place.display();
                tracing::warn!("cannot note in {file} how far the stream is: {error}");
            }
        }
    }
}

/// The file of a stream's cursor.
pub(super) fn place(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.cursor"))
}
