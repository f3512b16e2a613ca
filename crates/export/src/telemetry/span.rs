//! A span under way, and its form in the protocol. Bounds each attribute.

use super::names;
use super::traceparent::Traceparent;
use crate::model::TimestampMs;
use crate::otlp::{
    AnyValue, ArrayValue, KeyValue, Span, SpanKind, SpanLink, Status, StatusCode, Value, attribute,
    text_value,
};

/// Bytes of an attribute, and of a name.
const LONGEST: usize = 1024;

/// Bytes of an attribute with contents.
pub(super) const LONGEST_CONTENT: usize = 16 << 10;

/// The bits of a span's flags that say whether its parent, or a link, is of another process.
const KNOWS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// A span that has begun.
#[derive(Clone, Debug)]
pub(super) struct SpanDraft {
    pub(super) place: Traceparent,
    parent: Option<Traceparent>,
    name: String,
    kind: SpanKind,
    began: TimestampMs,
    attributes: Vec<KeyValue>,
    links: Vec<SpanLink>,
    error: Option<(&'static str, String)>,
}

impl SpanDraft {
    /// A span named by its operation, and by what that is done with.
    pub(super) fn new(
        operation: &str,
        what: &str,
        place: Traceparent,
        parent: Option<Traceparent>,
        began: TimestampMs,
    ) -> Self {
        Self {
            place,
            parent,
            name: cut(&format!("{operation} {what}"), LONGEST).to_owned(),
            kind: SpanKind::Internal,
            began,
            attributes: Vec::new(),
            links: Vec::new(),
            error: None,
        }
    }

    /// Makes it a call of another process.
    pub(super) fn of_client(mut self) -> Self {
        self.kind = SpanKind::Client;
        self
    }

    /// Makes it an operation of the conventions.
    pub(super) fn operation(mut self, operation: &str) -> Self {
        self.put(names::OPERATION_NAME, operation);
        self
    }

    pub(super) fn put(&mut self, name: &'static str, text: &str) {
        self.attribute(name, text_value(cut(text, LONGEST)));
    }

    pub(super) fn put_some(&mut self, name: &'static str, text: Option<&str>) {
        if let Some(text) = text {
            self.put(name, text);
        }
    }

    /// Adds a longer text.
    pub(super) fn put_content(&mut self, name: &'static str, text: &str) {
        self.attribute(name, text_value(cut(text, LONGEST_CONTENT)));
    }

    pub(super) fn put_all(&mut self, name: &'static str, texts: &[&str]) {
        let values =
            texts.iter().map(|text| AnyValue { value: Some(text_value(cut(text, LONGEST))) });
        self.attribute(name, Value::ArrayValue(ArrayValue { values: values.collect() }));
    }

    pub(super) fn put_number(&mut self, name: &'static str, number: Option<u64>) {
        if let Some(number) = number {
            self.attribute(name, Value::IntValue(i64::try_from(number).unwrap_or(i64::MAX)));
        }
    }

    pub(super) fn put_amount(&mut self, name: &'static str, amount: f64) {
        self.attribute(name, Value::DoubleValue(amount));
    }

    /// Says that something is so; what is not so is left out.
    pub(super) fn put_flag(&mut self, name: &'static str, holds: bool) {
        if holds {
            self.attribute(name, Value::BoolValue(true));
        }
    }

    pub(super) fn link(&mut self, to: Traceparent) {
        self.links.push(SpanLink {
            trace_id: to.trace.to_be_bytes().to_vec(),
            span_id: to.span.to_be_bytes().to_vec(),
            flags: flags(Some(to)),
        });
    }

    /// Makes it an error of a type; `message` is for people.
    pub(super) fn fail(&mut self, error: &'static str, message: &str) {
        self.error = Some((error, cut(message, LONGEST).to_owned()));
        self.put(names::ERROR_TYPE, error);
    }

    pub(super) fn end(self, at: TimestampMs) -> Span {
        let parent = self.parent;
        let status =
            self.error.map(|(_, message)| Status { message, code: StatusCode::Error.into() });
        Span {
            trace_id: self.place.trace.to_be_bytes().to_vec(),
            span_id: self.place.span.to_be_bytes().to_vec(),
            parent_span_id: parent.map_or(Vec::new(), |parent| parent.span.to_be_bytes().to_vec()),
            flags: flags(parent),
            name: self.name,
            kind: self.kind.into(),
            start_time_unix_nano: nanos(self.began),
            // Clocks go back.
            end_time_unix_nano: nanos(at.max(self.began)),
            attributes: self.attributes,
            links: self.links,
            status,
        }
    }

    fn attribute(&mut self, name: &'static str, value: Value) {
        let attribute = attribute(name, value);
        match self.attributes.iter_mut().find(|old| old.key == name) {
            Some(old) => *old = attribute,
            None => self.attributes.push(attribute),
        }
    }
}

/// The beginning of a text.
pub(super) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn flags(context: Option<Traceparent>) -> u32 {
    let remote = context.is_some_and(|context| context.is_remote);
    u32::from(super::traceparent::SAMPLED) | KNOWS_REMOTE | if remote { IS_REMOTE } else { 0 }
}

fn nanos(at: TimestampMs) -> u64 {
    at.saturating_mul(1_000_000)
}
