//! Sends spans to a collector by OTLP over HTTP, beside the events: one request at a time, again
//! after a while if the collector is away.

use std::sync::Arc;
use std::time::Duration;

use eisen_base::task;
use prost::Message;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::complaints::{Complaints, reason};
use super::outbox::{BATCH, Outbox, encode};
use crate::model::one_line;
use crate::otlp::{ExportTraceServiceResponse, Span};
use crate::post::{Post, PostFailed};

/// How long a span waits for others.
const LINGER: Duration = Duration::from_secs(1);

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The first and the longest pause after a failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The longest pause that a collector gets by asking for it.
const LONGEST_ASKED: Duration = Duration::from_mins(5);

/// Where spans are sent.
#[derive(Clone, Debug)]
pub(super) struct Collector {
    pub(super) url: String,
    /// Their values may be secret.
    pub(super) headers: Arc<[(String, String)]>,
    pub(super) team: String,
}

type Posting = JoinHandle<Result<Vec<u8>, PostFailed>>;

pub(super) struct Sender {
    collector: Collector,
    outbox: Outbox,
    under_way: Option<(Vec<Span>, Posting)>,
    /// When the next request begins.
    due: Option<Instant>,
    /// The pause after the next failure.
    pause: Duration,
    /// The last request failed.
    is_failing: bool,
    /// A failure was logged since the last success.
    is_told: bool,
    complaints: Complaints,
    /// The log has said that the collector refused some.
    is_partial: bool,
    timeout: Duration,
}

impl Sender {
    pub(super) fn new(collector: Collector) -> Self {
        Self {
            collector,
            outbox: Outbox::default(),
            under_way: None,
            due: None,
            pause: FIRST_PAUSE,
            is_failing: false,
            is_told: false,
            complaints: Complaints::default(),
            is_partial: false,
            timeout: TIMEOUT,
        }
    }

    pub(super) fn add(&mut self, spans: Vec<Span>) {
        if spans.is_empty() {
            return;
        }
        self.outbox.add(spans);
        let now = Instant::now();
        let due = *self.due.get_or_insert(now + LINGER);
        if self.outbox.len() >= BATCH && !self.is_failing {
            self.due = Some(due.min(now));
        }
    }

    /// Waits for the next step, and does it. Cancel safe.
    pub(super) async fn progress(&mut self) {
        if let Some((_, posting)) = &mut self.under_way {
            let outcome = posting.await;
            let outcome =
                outcome.unwrap_or_else(|error| Err(PostFailed::for_good(error.to_string())));
            if let Some((batch, _)) = self.under_way.take() {
                self.sent(batch, outcome);
            }
        } else if let Some(due) = self.due {
            sleep_until(due).await;
            self.send();
        } else {
            std::future::pending::<()>().await;
        }
    }

    /// Sends what waits, within a time; tries nothing twice.
    pub(super) async fn finish(mut self, limit: Duration) {
        let deadline = Instant::now() + limit;
        while self.under_way.is_some() || self.outbox.len() > 0 {
            if self.under_way.is_none() {
                self.due = Some(Instant::now());
                self.timeout = deadline.saturating_duration_since(Instant::now());
                self.is_failing = false;
            }
            let is_late = timeout_at(deadline, self.progress()).await.is_err();
            if is_late || self.is_failing {
                break;
            }
        }
        let under_way = self.under_way.take().map_or(0, |(batch, _)| batch.len());
        self.outbox.drop_spans(under_way + self.outbox.len());
        self.say_dropped();
    }

    fn send(&mut self) {
        self.due = None;
        let batch = self.outbox.take();
        if batch.is_empty() {
            return;
        }
        let (collector, timeout) = (self.collector.clone(), self.timeout);
        let body = encode(&collector.team, &batch);
        let posting = task::spawn_blocking(move || {
            let Collector { url, headers, .. } = &collector;
            Post { url, headers, body: &body, timeout, redirects: 0 }.send()
        });
        self.under_way = Some((batch, posting));
    }

    fn sent(&mut self, batch: Vec<Span>, outcome: Result<Vec<u8>, PostFailed>) {
        let pause = match outcome {
            Ok(answer) => {
                self.accepted(&answer);
                Duration::ZERO
            }
            Err(failed) => self.failed(batch, &failed),
        };
        self.due = (self.outbox.len() > 0).then(|| Instant::now() + pause);
    }

    fn accepted(&mut self, answer: &[u8]) {
        self.is_failing = false;
        if std::mem::take(&mut self.is_told) {
            tracing::info!(url = self.collector.url, "the collector takes spans again");
            self.say_dropped();
        }
        self.pause = FIRST_PAUSE;
        // Anything else in the answer has no meaning here.
        let answer = ExportTraceServiceResponse::decode(answer).unwrap_or_default();
        let partial = answer.partial_success.unwrap_or_default();
        let (rejected, why) = (partial.rejected_spans, one_line(&partial.error_message));
        if (rejected > 0 || !why.is_empty()) && !std::mem::replace(&mut self.is_partial, true) {
            let url = &self.collector.url;
            tracing::warn!(url, rejected, why, "the collector did not take all spans");
        }
    }

    /// Returns how long to wait before the next request.
    fn failed(&mut self, batch: Vec<Span>, failed: &PostFailed) -> Duration {
        self.is_failing = true;
        // Of the refusals these alone are repeated, as the protocol has it.
        let is_kept = match failed.status {
            Some(status) => matches!(status, 429 | 502 | 503 | 504),
            None => failed.is_transient,
        };
        let (url, why) = (&self.collector.url, reason(&self.collector.url, failed));
        if self.complaints.is_due(&why, Instant::now()) {
            self.is_told = true;
            let what = if is_kept { "kept for later" } else { "dropped" };
            tracing::warn!(url, why, "the collector does not take spans: they are {what}");
        }
        if is_kept {
            self.outbox.put_back(batch);
        } else {
            self.outbox.drop_spans(batch.len());
        }
        let asked = failed.retry_after.unwrap_or_default().min(LONGEST_ASKED);
        let pause = self.pause.max(asked);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        pause
    }

    fn say_dropped(&mut self) {
        let spans = self.outbox.take_dropped();
        if spans > 0 {
            tracing::warn!(url = self.collector.url, spans, "spans were dropped");
        }
    }
}
