//! Owns the relay's side of a plugin that reads along: queues lines for its task, and waits for it
//! where a zone asks for that.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::{Common, ExtractorRequest, weight};
use crate::extract::{Ask, Extractor, Gate, Refusal};
use crate::line::{Direction, lines};
use crate::model::{Activity, SessionId, UpdateDetail};

/// Bytes of memory of lines that may wait for the plugin; further lines are dropped unread.
const MOST_UNREAD: usize = 64 * 1024 * 1024;

/// Why lines of a zoned agent are stopped after its plugin was given up.
const UNREAD: &str = "no plugin reads it";

/// How long reading an agent's last lines may take.
const LAST_LINES: Duration = Duration::from_secs(10);

/// The relay's side of the plugin: an [`Extractor`] that sends requests to the task.
pub struct PluginExtractor {
    requests: mpsc::UnboundedSender<ExtractorRequest>,
    common: Arc<Common>,
    gated: bool,
    /// Closes with the task.
    over: Receiver<()>,
    /// Lines dropped since the last line that was sent.
    missed: usize,
}

impl PluginExtractor {
    pub(super) fn new(
        requests: mpsc::UnboundedSender<ExtractorRequest>,
        common: Arc<Common>,
        gated: bool,
        over: Receiver<()>,
    ) -> Self {
        Self { requests, common, gated, over, missed: 0 }
    }

    /// Queues a line for the plugin.
    fn queue(&mut self, direction: Direction, line: &[u8]) {
        // A plugin that was given up reads no more lines.
        if self.requests.is_closed() {
            return;
        }
        if self.common.unread.load(Ordering::Relaxed) > MOST_UNREAD {
            if self.missed == 0 {
                tracing::warn!("a plugin is far behind its agent: lines are dropped unread");
            }
            self.missed += 1;
            return;
        }
        if self.missed > 0 {
            tracing::warn!(lines = self.missed, "a plugin did not get lines of its agent");
            self.missed = 0;
        }
        let line = whole(line);
        self.common.unread.fetch_add(weight(&line), Ordering::Relaxed);
        let _ = self.requests.send(ExtractorRequest::Line(direction, line));
    }

    /// Sends a request and waits for its answer; None if the plugin was given up.
    fn ask<T>(&self, request: impl FnOnce(SyncSender<T>) -> ExtractorRequest) -> Option<T> {
        let (reply, answer) = sync_channel(1);
        self.requests.send(request(reply)).ok()?;
        answer.recv().ok()
    }
}

impl Extractor for PluginExtractor {
    fn observe(&mut self, direction: Direction, line: &[u8], activities: &mut Vec<Activity>) {
        // A gated line was read by the gate.
        if !self.gated || direction == Direction::ToAgent {
            lines(line).for_each(|line| self.queue(direction, line));
        }
        self.catch_up(activities);
    }

    fn gate(&mut self, line: &[u8]) -> Gate {
        if !self.gated {
            return Gate::Pass;
        }
        let gate = self.ask(|reply| ExtractorRequest::Gate(whole(line), reply));
        gate.unwrap_or(Gate::Ambiguous { why: UNREAD, replies: Vec::new() })
    }

    fn catch_up(&mut self, activities: &mut Vec<Activity>) {
        activities.append(&mut self.common.activities.lock());
    }

    fn report_updates(&mut self, detail: UpdateDetail) {
        self.common.wants_updates.store(detail != UpdateDetail::None, Ordering::Relaxed);
    }

    fn refuse(&self, ask: &Ask, refusal: &Refusal) -> Option<Bytes> {
        self.ask(|reply| ExtractorRequest::Refuse(ask.clone(), refusal.clone(), reply)).flatten()
    }

    /// A plugin has no call to answer the agent in its client's place.
    fn answer(&self, _ask: &Ask, _content: &str) -> Option<Bytes> {
        None
    }

    fn cancel(&self, session: &SessionId) -> Bytes {
        self.ask(|reply| ExtractorRequest::Cancel(session.clone(), reply)).unwrap_or_default()
    }

    fn awaits(&self) -> bool {
        self.common.awaits.load(Ordering::Relaxed)
    }

    fn end(&mut self, reason: &str, activities: &mut Vec<Activity>) {
        let (reply, ended) = sync_channel(1);
        if self.requests.send(ExtractorRequest::End(reason.to_owned(), reply)).is_ok() {
            // Lines that are unread by then yield no activities.
            if ended.recv_timeout(LAST_LINES) == Err(RecvTimeoutError::Timeout) {
                self.common.over.notify_one();
                let _ = self.over.recv();
            }
        }
        self.catch_up(activities);
    }
}

/// A line with its newline, as a plugin reads it.
fn whole(line: &[u8]) -> Bytes {
    let mut whole = Vec::with_capacity(line.len() + 1);
    whole.extend_from_slice(line);
    if !line.ends_with(b"\n") {
        whole.push(b'\n');
    }
    whole.into()
}
