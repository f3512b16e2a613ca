//! Bounded reading of lines: a [`Framer`] cuts bytes into blocks of whole
//! lines, unchanged; a [`LineReader`] reads a stream line by line; [`text`] and [`read`] are for who reads one;
//! [`lenient`] is for fields of other programs.
//! Doesn't know what a line means.

mod lenient;
mod readable;
mod reader;

use bytes::{Bytes, BytesMut};

pub use lenient::{lenient, lenient_list, or_default};
pub use readable::{integer, read, readable, text};
pub use reader::{Line, LineReader};

/// Bytes of the longest relayed line, without its end.
pub const MAX_LINE: usize = 64 * 1024 * 1024;

/// Bytes of one read; also the capacity that a framer keeps between lines.
const CHUNK: usize = 64 * 1024;

/// The direction of a line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// The client sent the line.
    ToAgent,
    /// The agent sent the line.
    ToClient,
}

/// A line is longer than the framer's limit.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a line is longer than {limit} bytes")]
pub struct TooLong {
    /// The limit in bytes, without the line feed.
    pub limit: usize,
}

/// Cuts a stream of bytes into blocks of whole lines; keeps a torn line for the next read.
#[derive(Debug)]
pub struct Framer {
    buffer: BytesMut,
    /// Bytes at the start of `buffer` that hold no newline.
    scanned: usize,
    limit: usize,
}

impl Framer {
    /// Begins a stream whose lines may have `limit` bytes each, without their line feeds.
    pub fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), scanned: 0, limit }
    }

    /// Bytes of a line whose end was not read yet.
    pub fn torn(&self) -> usize {
        self.buffer.len()
    }

    /// Returns the buffer for the next read, with room for a chunk.
    pub fn space(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < CHUNK / 2 {
            // Doubling bounds the number of copies of a long line.
            self.buffer.reserve(CHUNK.max(self.buffer.len()));
        }
        &mut self.buffer
    }

    /// Returns all whole lines read so far, as one block that ends in a newline.
    pub fn block(&mut self) -> Result<Option<Bytes>, TooLong> {
        let Some(last) = memchr::memrchr(b'\n', &self.buffer[self.scanned..]) else {
            self.scanned = self.buffer.len();
            return self.check_length(&self.buffer).map(|()| None);
        };
        let length = self.scanned + last + 1;
        if length > self.limit {
            lines(&self.buffer[..length]).try_for_each(|line| self.check_length(line))?;
        }
        let block = self.buffer.split_to(length).freeze();
        self.scanned = self.buffer.len();
        Ok(Some(block))
    }

    /// Returns whole lines read so far, and of a line past the limit its first bytes, up to the
    /// limit, at the end of the block. Call it until it returns None.
    pub fn block_or_part(&mut self) -> Option<Bytes> {
        self.block().unwrap_or_else(|TooLong { limit }| {
            let is_short = |line: &&[u8]| content(line).len() <= limit;
            let before: usize = lines(&self.buffer).take_while(is_short).map(<[u8]>::len).sum();
            self.scanned = 0;
            Some(self.buffer.split_to(before + limit).freeze())
        })
    }

    /// Returns the bytes after the last newline, at the end of the stream.
    pub fn rest(&mut self) -> Option<Bytes> {
        self.scanned = 0;
        (!self.buffer.is_empty()).then(|| self.buffer.split().freeze())
    }

    fn check_length(&self, line: &[u8]) -> Result<(), TooLong> {
        if content(line).len() > self.limit { Err(TooLong { limit: self.limit }) } else { Ok(()) }
    }
}

/// Returns the lines of a block, each with its newline if it has one.
pub fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = block;
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        let (line, behind) = rest.split_at(end);
        rest = behind;
        (!line.is_empty()).then_some(line)
    })
}

/// Returns a line without its end (`\n` or `\r\n`).
pub fn content(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bytes::BufMut;
    use proptest::prelude::*;

    use super::*;

    fn read(framer: &mut Framer, bytes: &[u8]) -> Result<Option<Bytes>, TooLong> {
        framer.space().put_slice(bytes);
        framer.block()
    }

    #[test]
    fn a_torn_line_waits_for_its_end() {
        let mut framer = Framer::new(100);
        assert_eq!(read(&mut framer, b"{\"a\"").unwrap(), None);
        assert_eq!(
            read(&mut framer, b":1}\n{\"b\":2}\r\n{").unwrap().unwrap(),
            "{\"a\":1}\n{\"b\":2}\r\n"
        );
        assert_eq!(framer.rest().unwrap(), "{");
        assert_eq!(framer.rest(), None);
    }

    #[test]
    fn a_line_over_the_limit_is_an_error_whole_or_torn() {
        let mut framer = Framer::new(4);
        assert_eq!(read(&mut framer, b"1234\r").unwrap(), None);
        assert_eq!(read(&mut framer, b"\n1234\n").unwrap().unwrap(), "1234\r\n1234\n");
        assert_eq!(read(&mut framer, b"123\n12345\n"), Err(TooLong { limit: 4 }));
        let mut framer = Framer::new(4);
        assert_eq!(read(&mut framer, b"12345"), Err(TooLong { limit: 4 }));
    }

    #[test]
    fn a_line_over_the_limit_comes_in_parts_where_that_serves() {
        let mut framer = Framer::new(4);
        framer.space().put_slice(b"1\n123456789\n12\n3");
        for part in ["1\n1234", "5678", "9\n12\n"] {
            assert_eq!(framer.block_or_part().unwrap(), part);
        }
        assert_eq!(framer.block_or_part(), None);
        assert_eq!(framer.rest().unwrap(), "3");
    }

    #[test]
    fn line_ends_are_stripped_once() {
        assert_eq!(content(b"a\r\n"), b"a");
        assert_eq!(content(b"a\r\r\n"), b"a\r");
        assert_eq!(content(b"a"), b"a");
    }

    proptest! {
        #[test]
        fn framing_changes_no_byte(chunks in proptest::collection::vec(proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..50), 0..20)) {
            let mut framer = Framer::new(MAX_LINE);
            let mut framed = Vec::new();
            for chunk in &chunks {
                if let Some(block) = read(&mut framer, chunk).unwrap() {
                    prop_assert_eq!(block.last(), Some(&b'\n'));
                    for line in lines(&block) {
                        prop_assert_eq!(memchr::memchr(b'\n', line), Some(line.len() - 1));
                        framed.extend_from_slice(line);
                    }
                }
            }
            framed.extend(framer.rest().unwrap_or_default());
            prop_assert_eq!(framed, chunks.concat());
        }
    }
}
