//! Spans that wait to be sent: bounded in number and bytes, the oldest are dropped and counted.
//! Encodes a batch of them.

use std::collections::VecDeque;

use prost::Message;

use super::names;
use crate::otlp::{
    ExportTraceServiceRequest, InstrumentationScope, Resource, ResourceSpans, ScopeSpans, Span,
    attribute, text_value,
};

/// Spans that wait, and their bytes.
const MOST: usize = 8_192;
const MOST_BYTES: usize = 16 << 20;

/// Spans of one request, and their bytes.
pub(super) const BATCH: usize = 512;
const BATCH_BYTES: usize = 2 << 20;

/// The name of the service, and of the instrumentation.
const SERVICE: &str = "eisen-core";

#[derive(Default)]
pub(super) struct Outbox {
    waiting: VecDeque<Span>,
    bytes: usize,
    dropped: u64,
}

impl Outbox {
    pub(super) fn add(&mut self, spans: Vec<Span>) {
        for span in spans {
            self.bytes += span.encoded_len();
            self.waiting.push_back(span);
        }
        self.bound();
    }

    /// Takes the oldest spans, for one request.
    pub(super) fn take(&mut self) -> Vec<Span> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH
            && bytes < BATCH_BYTES
            && let Some(span) = self.waiting.pop_front()
        {
            bytes += span.encoded_len();
            batch.push(span);
        }
        self.bytes -= bytes;
        batch
    }

    /// Puts a batch back that could not be sent.
    pub(super) fn put_back(&mut self, batch: Vec<Span>) {
        for span in batch.into_iter().rev() {
            self.bytes += span.encoded_len();
            self.waiting.push_front(span);
        }
        self.bound();
    }

    /// Counts spans that are not sent.
    pub(super) fn drop_spans(&mut self, spans: usize) {
        self.dropped = self.dropped.saturating_add(spans as u64);
    }

    /// The spans that were dropped since the last call.
    pub(super) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    fn bound(&mut self) {
        while (self.waiting.len() > MOST || self.bytes > MOST_BYTES)
            && let Some(span) = self.waiting.pop_front()
        {
            self.bytes -= span.encoded_len();
            self.drop_spans(1);
        }
    }
}

/// The body of a request.
pub(super) fn encode(team: &str, spans: &[Span]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let attributes = [
        (names::SERVICE_NAME, SERVICE),
        (names::SERVICE_VERSION, version),
        (names::TEAM_NAME, team),
    ];
    let attributes = attributes.map(|(name, text)| attribute(name, text_value(text))).to_vec();
    let scope = InstrumentationScope { name: SERVICE.to_owned(), version: version.to_owned() };
    let spans = ScopeSpans { scope: Some(scope), spans: spans.to_vec() };
    let resource = Some(Resource { attributes });
    let spans = ResourceSpans { resource, scope_spans: vec![spans] };
    ExportTraceServiceRequest { resource_spans: vec![spans] }.encode_to_vec()
}
