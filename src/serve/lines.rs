//! Splits a client's bytes into lines; the client may be hostile, torn or endless.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes read at once.
const CHUNK: usize = 8 * 1024;

/// A line past this many times the limit ends the connection.
const PATIENCE: usize = 16;

#[derive(PartialEq, Eq, Debug)]
pub(super) enum Line {
    /// Without its line feed, which the last one may lack.
    Whole(Bytes),
    /// A line past the limit, as far as it was read; the rest is skipped.
    TooLong(Bytes),
    /// The client ended its side.
    End,
}

/// Splits a client's bytes; holds at most one line of `limit` bytes and a chunk.
pub(super) struct LineSplitter<R> {
    reader: R,
    limit: usize,
    buffer: BytesMut,
    /// Bytes from the buffer's start without a line feed.
    scanned: usize,
    /// Bytes skipped of a line that is too long.
    skipping: Option<usize>,
}

impl<R: AsyncRead + Unpin> LineSplitter<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self { reader, limit, buffer: BytesMut::new(), scanned: 0, skipping: None }
    }

    /// Returns the bytes read behind the last line, and the stream.
    pub(super) fn into_rest(self) -> (BytesMut, R) {
        (self.buffer, self.reader)
    }

    pub(super) fn get_ref(&self) -> &R {
        &self.reader
    }

    /// Returns the next line; an error for a line without end. Cancel-safe.
    pub(super) async fn next(&mut self) -> io::Result<Line> {
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
                if *skipped > self.limit.saturating_mul(PATIENCE) {
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

/// Whether the line could be an HTTP request line: method, target and version, in any case. No JSON
/// looks like that.
pub(super) fn speaks_http(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let method = words.next().unwrap_or_default();
    let version = words.next_back().unwrap_or_default();
    method.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
        && version.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"HTTP/"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    async fn split(limit: usize, pieces: &[&[u8]]) -> Vec<String> {
        let reader = pieces
            .iter()
            .fold(Box::new(tokio::io::empty()) as Box<dyn AsyncRead + Unpin>, |before, piece| {
                Box::new(before.chain(*piece))
            });
        let mut lines = LineSplitter::new(reader, limit);
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
    async fn lines_come_whole_however_they_are_torn() {
        assert_eq!(split(8, &[b"a", b"b\nc", b"\n\nd"]).await, ["ab", "c", "", "d"]);
        assert_eq!(split(8, &[b"12345678\n"]).await, ["12345678"]);
        assert_eq!(split(8, &[]).await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn a_line_past_the_limit_is_told_once_and_skipped() {
        assert_eq!(split(4, &[b"12345\nok\n"]).await, ["too long", "ok"]);
        assert_eq!(split(4, &[b"12", b"345", b"678", b"9\nok\n"]).await, ["too long", "ok"]);
        assert_eq!(split(4, &[b"12345", b"67"]).await, ["too long"]);
    }

    #[tokio::test]
    async fn an_endless_line_is_given_up() {
        let mut lines = LineSplitter::new(tokio::io::repeat(b'x'), 100);
        assert!(matches!(lines.next().await.unwrap(), Line::TooLong(_)));
        assert_eq!(lines.next().await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn http_is_known_by_its_request_line() {
        for http in [
            "GET / HTTP/1.1\r",
            "post /x?{\"type\":\"rpc\"} http/1.0",
            "PRI * HTTP/2.0\r",
            "M-SEARCH  *\tHTTP/1.1",
            "  GET / HTTP/1.1",
            "GET HTTP/1.1",
        ] {
            assert!(speaks_http(http.as_bytes()), "{http}");
        }
        for other in
            ["", "{\"type\":\"rpc\"}", "{} / HTTP/1.1", "HTTP/1.1", "GET / HTTPS", "hello there"]
        {
            assert!(!speaks_http(other.as_bytes()), "{other}");
        }
    }
}
