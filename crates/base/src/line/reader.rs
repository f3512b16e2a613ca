//! Reads a stream line by line, within a limit. The peer may be hostile, torn or endless.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes read at once.
const CHUNK: usize = 8 * 1024;

/// A line past this many times the limit is an error: its end is not waited for.
const SKIPPED_LIMITS: usize = 16;

/// The next line of a stream, or its end.
#[derive(PartialEq, Eq, Debug)]
pub enum Line {
    /// Without its line feed, which the last line may lack.
    Whole(Bytes),
    /// The start of a line past the limit; the rest of it is skipped.
    TooLong(Bytes),
    /// The stream has ended.
    End,
}

/// Reads lines; holds at most one line of `limit` bytes and a chunk.
#[derive(Debug)]
pub struct LineReader<R> {
    reader: R,
    limit: usize,
    buffer: BytesMut,
    /// Bytes from the buffer's start without a line feed.
    scanned: usize,
    /// Bytes skipped of a line that is too long.
    skipping: Option<usize>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads lines of at most `limit` bytes each, without their line feeds.
    pub fn new(reader: R, limit: usize) -> Self {
        Self { reader, limit, buffer: BytesMut::new(), scanned: 0, skipping: None }
    }

    /// Returns the bytes read behind the last line, and the stream.
    pub fn into_rest(self) -> (BytesMut, R) {
        (self.buffer, self.reader)
    }

    /// The stream itself. Bytes that were read ahead are not in it any more.
    pub fn get_ref(&self) -> &R {
        &self.reader
    }

    /// Returns the next line, or None at the end; a line past the limit is an error. Cancel-safe.
    pub async fn next_whole(&mut self) -> io::Result<Option<Bytes>> {
        match self.next().await? {
            Line::Whole(line) => Ok(Some(line)),
            Line::TooLong(_) => {
                let error = format!("a line of more than {} bytes", self.limit);
                Err(io::Error::new(io::ErrorKind::InvalidData, error))
            }
            Line::End => Ok(None),
        }
    }

    /// Returns the next line; a line without end is an error. Cancel-safe.
    pub async fn next(&mut self) -> io::Result<Line> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
                let length = self.scanned + at;
                let line = self.buffer.split_to(length + 1).freeze();
                self.scanned = 0;
                if self.skipping.take().is_some() {
                    continue;
                }
                return Ok(if length > self.limit {
                    Line::TooLong(line.slice(..self.limit))
                } else {
                    Line::Whole(line.slice(..length))
                });
            }
            self.scanned = self.buffer.len();
            if let Some(skipped) = &mut self.skipping {
                *skipped += self.scanned;
                self.buffer.clear();
                self.scanned = 0;
                if *skipped > self.limit.saturating_mul(SKIPPED_LIMITS) {
                    let error = "a line without an end";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            } else if self.scanned > self.limit {
                self.skipping = Some(0);
                self.scanned = 0;
                return Ok(Line::TooLong(self.buffer.split().freeze()));
            }
            self.buffer.reserve(CHUNK);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                self.scanned = 0;
                let rest = self.buffer.split().freeze();
                return Ok(if rest.is_empty() { Line::End } else { Line::Whole(rest) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    async fn split(limit: usize, pieces: &[&[u8]]) -> Vec<String> {
        let reader = pieces
            .iter()
            .fold(Box::new(tokio::io::empty()) as Box<dyn AsyncRead + Unpin>, |before, piece| {
                Box::new(before.chain(*piece))
            });
        let mut lines = LineReader::new(reader, limit);
        let mut seen = Vec::new();
        loop {
            match lines.next().await.unwrap() {
                Line::Whole(line) => seen.push(String::from_utf8_lossy(&line).into_owned()),
                Line::TooLong(head) => {
                    assert!(head.len() <= limit + CHUNK);
                    seen.push("too long".to_owned());
                }
                Line::End => return seen,
            }
        }
    }

    #[tokio::test]
    async fn torn_lines_are_joined() {
        assert_eq!(split(8, &[b"a", b"b\nc", b"\n\nd"]).await, ["ab", "c", "", "d"]);
        assert_eq!(split(8, &[b"a\r\n"]).await, ["a\r"]);
        assert_eq!(split(8, &[b"12345678\n"]).await, ["12345678"]);
        assert_eq!(split(8, &[]).await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn a_line_past_the_limit_is_reported_once_and_skipped() {
        assert_eq!(split(4, &[b"12345\nok\n"]).await, ["too long", "ok"]);
        assert_eq!(split(4, &[b"12", b"345", b"678", b"9\nok\n"]).await, ["too long", "ok"]);
        assert_eq!(split(4, &[b"12345", b"67"]).await, ["too long"]);
    }

    #[tokio::test]
    async fn a_line_without_end_is_an_error() {
        let mut lines = LineReader::new(tokio::io::repeat(b'x'), 100);
        assert!(matches!(lines.next().await.unwrap(), Line::TooLong(_)));
        assert_eq!(lines.next().await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[tokio::test]
    async fn a_line_past_the_limit_is_an_error_where_all_lines_are_needed() {
        let mut lines = LineReader::new(&b"12\n1234\n"[..], 3);
        assert_eq!(lines.next_whole().await.unwrap().unwrap(), "12");
        let error = lines.next_whole().await.unwrap_err();
        assert_eq!(error.to_string(), "a line of more than 3 bytes");
        assert_eq!(lines.next_whole().await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_line_in_pieces_survives_dropped_futures() {
        let (mut far, near) = tokio::io::duplex(64);
        let mut lines = LineReader::new(near, 64);
        for piece in ["ab", "cd", "ef"] {
            far.write_all(piece.as_bytes()).await.unwrap();
            tokio::select! {
                biased;
                line = lines.next() => panic!("no line yet: {line:?}"),
                () = tokio::task::yield_now() => {}
            }
        }
        far.write_all(b"\n").await.unwrap();
        assert_eq!(lines.next_whole().await.unwrap().unwrap(), "abcdef");
    }
}
