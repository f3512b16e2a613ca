//! A call that was admitted, and is reported when it ends, in whatever way.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tokio::time::Instant;

use crate::counting::ProviderSetback;
use crate::counting::{AskedSizes, CallEnd, CallReport, CallTally, CallTimes, RecordedCall};
use crate::provider::ModelProvider;

/// Bytes of a recorded request, and of its answer.
const LONGEST_RECORD: usize = 1 << 20;

/// A call that runs. Dropped, it was cut by the agent.
pub(super) struct OpenCall {
    provider: Arc<str>,
    asked_model: Option<Arc<str>>,
    tally: CallTally,
    status: Option<StatusCode>,
    begun: Instant,
    times: CallTimes,
    record: Option<RecordedCall>,
    settle: Option<Box<dyn FnOnce(CallReport) + Send>>,
}

impl OpenCall {
    /// Begins one. `settle` takes its report.
    pub(super) fn new(
        provider: &ModelProvider,
        asked_model: Option<Arc<str>>,
        sizes: AskedSizes,
        request: Option<&Bytes>,
        settle: impl FnOnce(CallReport) + Send + 'static,
    ) -> Self {
        let record = provider.record.then(|| {
            let request = request.map(|bytes| &bytes[..]).unwrap_or_default();
            let kept = &request[..request.len().min(LONGEST_RECORD)];
            RecordedCall {
                request: Bytes::copy_from_slice(kept),
                answer: Vec::new(),
                request_is_cut: kept.len() < request.len(),
                answer_is_cut: false,
            }
        });
        Self {
            provider: Arc::clone(&provider.name),
            asked_model,
            tally: CallTally::new(provider.kind, sizes),
            status: None,
            begun: Instant::now(),
            times: CallTimes::default(),
            record,
            settle: Some(Box::new(settle)),
        }
    }

    /// Takes the head of the answer.
    pub(super) fn head(&mut self, status: StatusCode, headers: &HeaderMap) {
        self.status = Some(status);
        self.tally.head(status, headers);
    }

    /// Takes the next bytes of the answer.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if self.times.first_byte.is_none() {
            self.times.first_byte = Some(self.begun.elapsed());
        }
        self.tally.feed(bytes);
        if let Some(record) = &mut self.record {
            let room = LONGEST_RECORD - record.answer.len();
            record.answer.extend_from_slice(&bytes[..bytes.len().min(room)]);
            record.answer_is_cut |= bytes.len() > room;
        }
    }

    /// Reports it, once.
    pub(super) fn end(&mut self, end: CallEnd) {
        let Some(settle) = self.settle.take() else { return };
        // A number that was cut off is another number.
        if end == CallEnd::Whole {
            self.tally.end();
        }
        self.times.whole = self.begun.elapsed();
        let setback = match end {
            CallEnd::Unsent | CallEnd::Unanswered => Some(ProviderSetback::away()),
            CallEnd::Whole | CallEnd::CutByAgent | CallEnd::CutByProvider => self.tally.setback(),
        };
        settle(CallReport {
            provider: Arc::clone(&self.provider),
            asked_model: self.asked_model.clone(),
            spending: self.tally.spending(end, self.asked_model.as_ref()),
            end,
            status: self.status.map(|status| status.as_u16()),
            setback,
            times: self.times,
            record: self.record.take(),
        });
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.end(CallEnd::CutByAgent);
    }
}
