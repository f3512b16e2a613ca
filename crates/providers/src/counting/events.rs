//! Cuts an answer into what is JSON in it: the whole of it, or the data of its server-sent events.

use memchr::memchr2;

use super::scan::{Finder, Scan};

/// How lines of events begin that have data.
const DATA: &[u8] = b"data:";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Nothing but white space has come.
    Unknown,
    Json,
    Events,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SseLine {
    /// This many bytes have come, all of them those of [`DATA`].
    Start(usize),
    Data,
    Other,
}

/// A reader of an answer in pieces. It keeps no event, so an event has no bound.
pub(super) struct Events {
    form: Form,
    line: SseLine,
    /// A line feed that follows belongs to the end of the line before.
    is_after_return: bool,
    scan: Scan,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            form: Form::Unknown,
            line: SseLine::Start(0),
            is_after_return: false,
            scan: Scan::default(),
        }
    }
}

impl Events {
    /// Reads the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8], finder: &mut impl Finder) {
        let mut bytes = bytes;
        if self.form == Form::Unknown {
            let Some(at) = bytes.iter().position(|byte| !byte.is_ascii_whitespace()) else {
                return;
            };
            bytes = &bytes[at..];
            let is_json = matches!(bytes[0], b'{' | b'[');
            self.form = if is_json { Form::Json } else { Form::Events };
        }
        match self.form {
            Form::Json => self.scan.feed(bytes, finder),
            _ => self.lines(bytes, finder),
        }
    }

    /// Ends the answer: a number may be its last word.
    pub(super) fn end(&mut self, finder: &mut impl Finder) {
        self.scan.feed(b"\n", finder);
    }

    fn lines(&mut self, mut bytes: &[u8], finder: &mut impl Finder) {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.is_after_return) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            match self.line {
                SseLine::Start(come) if first == DATA[come] => {
                    let come = come + 1;
                    self.line =
                        if come == DATA.len() { SseLine::Data } else { SseLine::Start(come) };
                    bytes = &bytes[1..];
                }
                SseLine::Start(0) if first == b'\n' || first == b'\r' => {
                    // An empty line ends the event.
                    self.scan.reset();
                    self.is_after_return = first == b'\r';
                    bytes = &bytes[1..];
                }
                SseLine::Start(_) => self.line = SseLine::Other,
                SseLine::Data | SseLine::Other => {
                    let end = memchr2(b'\n', b'\r', bytes);
                    let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
                    if self.line == SseLine::Data {
                        self.scan.feed(part, finder);
                    }
                    bytes = rest;
                    if let Some((&end, rest)) = rest.split_first() {
                        if self.line == SseLine::Data {
                            self.scan.feed(b"\n", finder);
                        }
                        self.line = SseLine::Start(0);
                        self.is_after_return = end == b'\r';
                        bytes = rest;
                    }
                }
            }
        }
    }
}
