//! Follows the bus for the journal: one task, which folds events and hands batches to the writer.
//! If the writer falls behind, this task waits, and the bus counts the events that it misses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, interval, sleep_until};

use super::fold::Fold;
use super::progress::FeedProgress;
use super::writer::Work;
use super::{AppendError, Quotas, Settings};
use crate::bus::{Received, Subscriber};

/// How long a row waits for others of its batch. With the time of a commit it stays below 250 ms.
const BATCH_TIME: Duration = Duration::from_millis(100);

/// Rows of a batch.
const BATCH_ROWS: usize = 1024;

/// How often the writer looks at the quotas.
const TICK: Duration = Duration::from_secs(60);

/// A wait for the events that were published before a number of the bus.
pub(super) type Settle = (u64, oneshot::Sender<Result<(), AppendError>>);

pub(super) struct Feed {
    fold: Fold,
    events: Subscriber,
    settles: mpsc::Receiver<Settle>,
    work: mpsc::Sender<Work>,
    waiting: Vec<Settle>,
    /// When the open batch is sent.
    due: Option<Instant>,
    has_quotas: bool,
}

impl Feed {
    pub(super) fn new(
        settings: &Settings,
        events: Subscriber,
        settles: mpsc::Receiver<Settle>,
        work: mpsc::Sender<Work>,
    ) -> Self {
        let (fold, has_quotas) =
            (Fold::new(settings.keep), settings.quotas.is_some_and(Quotas::are_set));
        Self { fold, events, settles, work, waiting: Vec::new(), due: None, has_quotas }
    }

    /// Follows the bus until it is closed.
    pub(super) async fn run(mut self, lost: Arc<AtomicUsize>, progress: &FeedProgress) {
        let mut tick = interval(TICK);
        loop {
            let due = self.due;
            tokio::select! {
                biased;
                _ = tick.tick(), if self.has_quotas => {
                    // A busy writer looks at the quotas a minute later.
                    let _ = self.work.try_send(Work::Tick);
                }
                Some(settle) = self.settles.recv() => self.waiting.push(settle),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.fold.flush();
                    self.send().await;
                }
                received = self.events.recv() => match received {
                    Some(received) => self.receive(received, progress),
                    None => break,
                }
            }
            self.drain(progress).await;
            progress.read_to(self.events.position());
            let lost = lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                self.fold.gap(lost as u64, "the disk was too slow");
                progress.gap(lost as u64);
            }
            self.answer().await;
        }
        self.fold.end();
        self.send().await;
        let (closed, is_closed) = oneshot::channel();
        let _ = self.work.send(Work::Close(closed)).await;
        let _ = is_closed.await;
    }

    /// Takes the events that wait on the bus, up to a batch.
    async fn drain(&mut self, progress: &FeedProgress) {
        while self.fold.row_count() < BATCH_ROWS
            && let Some(received) = self.events.try_recv()
        {
            self.receive(received, progress);
        }
        if self.fold.row_count() >= BATCH_ROWS {
            self.send().await;
        }
        if self.due.is_none() {
            self.due = Some(Instant::now() + BATCH_TIME).filter(|_| self.fold.is_waiting());
        }
    }

    fn receive(&mut self, received: Received, progress: &FeedProgress) {
        match received {
            Received::Event(_, event) => self.fold.event(&event),
            Received::Missed(missed) => {
                self.fold.gap(missed, "the journal fell behind");
                progress.gap(missed);
            }
        }
    }

    /// Sends the batch if a caller waits for its events.
    async fn answer(&mut self) {
        let position = self.events.position();
        if self.waiting.iter().any(|(until, _)| *until <= position) {
            self.fold.flush();
            self.send().await;
        }
    }

    async fn send(&mut self) {
        self.due = None;
        let position = self.events.position();
        let settled = self.waiting.extract_if(.., |(until, _)| *until <= position);
        let replies: Vec<_> = settled.map(|(_, reply)| reply).collect();
        let rows = self.fold.take();
        if !rows.is_empty() || !replies.is_empty() {
            let _ = self.work.send(Work::Batch { rows, replies }).await;
        }
    }
}
