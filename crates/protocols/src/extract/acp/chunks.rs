//! The fast path for message chunks, most of an agent's traffic: lines that equal an earlier line
//! except for their text need no parsing.
//!
//! A plain text between the same bytes cannot change the meaning of the rest of the line for any
//! parser, so neither the gate nor observation has to parse it.

use std::ops::Range;

use super::Acp;
use super::frame::Frame;
use super::gate::may_split;
use super::sessions::AcpSession;
use crate::extract::json::Members;
use crate::model::{SessionId, UpdateDetail};

/// Remembered shapes; a new one replaces the oldest. A stream has one shape, and agents rarely mix
/// more than messages and thoughts.
const MOST_SHAPES: usize = 4;
/// Bytes of the largest shape, its text not counted.
const LARGEST: usize = 4096;
/// Bytes of a merged update; the next chunk begins another.
const MOST_MERGED: usize = 64 * 1024;

#[derive(Default, Debug)]
pub(super) struct Chunks {
    shapes: Vec<Shape>,
    /// Index of the shape to replace next.
    oldest: usize,
    merged: Option<MergedUpdate>,
}

/// One update with the texts of chunks that followed each other.
#[derive(Debug)]
struct MergedUpdate {
    session: SessionId,
    /// Index of the shape of its chunks; None once shapes have changed.
    shape: Option<usize>,
    update: Vec<u8>,
}

/// A line without its text.
#[derive(Debug)]
struct Shape {
    before: Box<str>,
    after: Box<str>,
    session: SessionId,
    /// Bytes before and after its update.
    around_update: (usize, usize),
}

/// A parsed chunk.
struct Chunk<'a> {
    line: &'a str,
    /// A part of the line, quotes included.
    text: &'a str,
    update: &'a str,
}

impl Acp {
    /// Observes a line of a known shape; false if no shape matches.
    pub(super) fn observe_chunk(&mut self, line: &[u8]) -> bool {
        let Some((shape, text)) = self.chunks.like(line) else { return false };
        match self.updates {
            UpdateDetail::None => {}
            UpdateDetail::Merged if self.chunks.merge(shape, text) => {}
            UpdateDetail::Merged if is_mergeable(text) => {
                self.report_merged();
                self.chunks.begin_merged(shape, line);
            }
            UpdateDetail::Merged | UpdateDetail::Each => {
                self.report_merged();
                let shape = &self.chunks.shapes[shape];
                self.reported.add_update(&shape.session, shape.update(line));
            }
        }
        true
    }

    /// Reports the update whose chunks were merged.
    pub(super) fn report_merged(&mut self) {
        if let Some(MergedUpdate { session, update, .. }) = self.chunks.merged.take() {
            self.reported.add_update(&session, &update);
        }
    }

    /// Reports the merged update before the activities of the line that came after it.
    pub(super) fn report_merged_first(&mut self) {
        if !self.reported.0.is_empty() && self.chunks.merged.is_some() {
            let later = std::mem::take(&mut self.reported.0);
            self.report_merged();
            self.reported.0.extend(later);
        }
    }

    /// Remembers the shape of an observed chunk; `raw` is its update.
    pub(super) fn learn_chunk(
        &mut self,
        session: &SessionId,
        update: &Members<'_>,
        raw: &str,
        frame: &Frame<'_>,
    ) {
        // Then the text is needed, too.
        let is_read = self.sessions.get(session).is_some_and(AcpSession::reads_chunks);
        let content = update.get("content").and_then(Members::of);
        let text = content.and_then(|content| content.get("text"));
        if let Some(text) = text.filter(|text| !is_read && !frame.unclear && text.starts_with('"'))
        {
            self.chunks.remember(&Chunk { line: frame.text, text, update: raw }, session);
        }
    }

    pub(super) fn is_closed(&self, session: &SessionId) -> bool {
        self.sessions.get(session).is_some_and(|session| session.closed)
    }

    /// Keeps the beginning of the agent's message.
    pub(super) fn read_message(&mut self, session: &SessionId, update: &Members<'_>) {
        let known = self.sessions.get_mut(session).filter(|session| session.reads_chunks());
        let content = known.as_ref().and_then(|_| Members::of(update.get("content")?));
        let text = content.as_ref().and_then(|content| content.text("text"));
        if let (Some(known), Some(text)) = (known, text) {
            known.hear(&text);
        }
    }
}

impl Chunks {
    /// Returns the index of a line's shape, and its text. The gate passes the line; its only
    /// activity is its update.
    fn like<'a>(&self, line: &'a [u8]) -> Option<(usize, &'a [u8])> {
        let texts = self.shapes.iter().map(|shape| shape.text(line)).enumerate();
        texts.filter_map(|(at, text)| Some((at, text?))).find(|(_, text)| is_plain(text))
    }

    fn begin_merged(&mut self, shape: usize, line: &[u8]) {
        let (session, update) =
            (self.shapes[shape].session.clone(), self.shapes[shape].update(line));
        self.merged = Some(MergedUpdate { session, shape: Some(shape), update: update.to_vec() });
    }

    pub(super) fn merges(&self) -> bool {
        self.merged.is_some()
    }

    /// Adds a text to the merged update; false if it does not belong there.
    fn merge(&mut self, shape: usize, text: &[u8]) -> bool {
        let Self { shapes, merged, .. } = self;
        let Some(merged) = merged.as_mut().filter(|merged| merged.shape == Some(shape)) else {
            return false;
        };
        if merged.update.len() + text.len() > MOST_MERGED || !is_mergeable(text) {
            return false;
        }
        let end = shapes[shape].end_of_update();
        merged.update.truncate(merged.update.len() - end.len());
        merged.update.extend_from_slice(text);
        merged.update.extend_from_slice(end.as_bytes());
        true
    }

    /// Remembers a shape. Only for lines that the gate passes and whose only activity is their
    /// update: the session is open, and its texts are not read.
    fn remember(&mut self, chunk: &Chunk<'_>, session: &SessionId) {
        let (line, text) = (chunk.line, chunk.text);
        if line.len() - text.len() > LARGEST || may_split(line) {
            return;
        }
        let (text, update) = (range_of(line, text), range_of(line, chunk.update));
        let shape = Shape {
            before: line[..=text.start].into(),
            after: line[text.end - 1..].into(),
            session: session.clone(),
            around_update: (update.start, line.len() - update.end),
        };
        self.end_merging();
        if self.shapes.len() < MOST_SHAPES {
            self.shapes.push(shape);
        } else {
            self.shapes[self.oldest] = shape;
            self.oldest = (self.oldest + 1) % MOST_SHAPES;
        }
    }

    /// Forgets the shapes of a session, before its lines change their meaning.
    pub(super) fn forget(&mut self, session: &SessionId) {
        self.shapes.retain(|shape| shape.session != *session);
        self.end_merging();
    }

    fn end_merging(&mut self) {
        self.merged.iter_mut().for_each(|merged| merged.shape = None);
    }
}

impl Shape {
    /// The update of a line of this shape.
    fn update<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        &line[self.around_update.0..line.len() - self.around_update.1]
    }

    /// The part of the update behind its text.
    fn end_of_update(&self) -> &str {
        &self.after[..self.after.len() - self.around_update.1]
    }

    /// The text of a line of this shape, without quotes.
    fn text<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        line.strip_prefix(self.before.as_bytes())?.strip_suffix(self.after.as_bytes())
    }
}

/// Whether every parser takes this, between quotes, as one string.
fn is_plain(text: &[u8]) -> bool {
    // A full scan is faster than one that stops early.
    let least = text.iter().copied().fold(u8::MAX, u8::min);
    if least < b' ' || !has_plain_escapes(text) {
        return false;
    }
    text.is_ascii() || simdutf8::basic::from_utf8(text).is_ok_and(|text| !may_split(text))
}

/// Whether a text can be joined with others: half of a surrogate pair would change the other's.
fn is_mergeable(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"\\u").is_none()
}

/// Whether every escape is valid and every quote is escaped.
fn has_plain_escapes(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        rest = match &rest[at..] {
            [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', rest @ ..] => rest,
            [b'\\', b'u', a, b, c, d, rest @ ..]
                if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) =>
            {
                rest
            }
            _ => return false,
        };
    }
    true
}

/// The range of a part within its text.
fn range_of(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ends_where_the_string_ends_is_plain() {
        for text in ["", "a", "é–", r"\n\u00e9\\", r#"say \"x\""#, r"\ud800", "\u{7f}"] {
            assert!(is_plain(text.as_bytes()), "{text}");
        }
        for text in ["\"", "a\tb", "a\rb", "\\", r"\\\", r"\x", r"\u12g4", r"\u123", "a\u{2028}b"] {
            assert!(!is_plain(text.as_bytes()), "{text}");
        }
        assert!(!is_plain(b"\xff"));
        assert!(!is_plain(b"\xc2\x85"));
    }
}
