//! Both ends of the pipe to the agent: whole lines in, whole lines out. Does not parse JSON.

use std::collections::VecDeque;
use std::io;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::OwnedSemaphorePermit;

/// Longest line read; a longer one ends the host with an error. The relay in front has the tighter
/// bound; this one only bounds memory.
pub(super) const MAX_LINE: usize = 128 << 20;

/// Bytes queued for an agent that does not read. Above that the host ends: if it stopped reading
/// instead, two full pipes could wait for each other.
const MAX_WAITING: usize = 512 << 20;

/// Bytes queued before the host stops reading from editors, as a full pipe would.
const HIGH_WATER: usize = 8 << 20;

/// Reads lines without their newline.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    reader: BufReader<R>,
    /// The part of the next line that has been read.
    line: Vec<u8>,
    max: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(reader: R, max: usize) -> Self {
        Self { reader: BufReader::new(reader), line: Vec::new(), max }
    }

    /// Returns the next line; None at the end. A last line without a newline counts. Cancel safe.
    pub(super) async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let room = (self.max + 1).saturating_sub(self.line.len());
            let mut limited = (&mut self.reader).take(room as u64);
            let read = limited.read_until(b'\n', &mut self.line).await?;
            if self.line.last() == Some(&b'\n') {
                self.line.pop();
                return Ok(Some(std::mem::take(&mut self.line)));
            }
            if self.line.len() > self.max {
                let why = format!("a line of more than {} bytes", self.max);
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            if read == 0 {
                let last = std::mem::take(&mut self.line);
                return Ok((!last.is_empty()).then_some(last));
            }
        }
    }
}

/// Lines queued for the agent. Pushing never waits.
#[derive(Debug)]
pub(super) struct Outbox<W> {
    writer: W,
    waiting: VecDeque<(Bytes, Option<OwnedSemaphorePermit>)>,
    bytes: usize,
    unflushed: bool,
    open: bool,
}

impl<W: AsyncWrite + Unpin> Outbox<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { writer, waiting: VecDeque::new(), bytes: 0, unflushed: false, open: true }
    }

    /// Appends a line; `held` is released when the line has been written.
    pub(super) fn push(&mut self, line: Bytes, held: Option<OwnedSemaphorePermit>) {
        if self.open {
            self.bytes += line.len();
            self.waiting.push_back((line, held));
        }
    }

    /// Whether the agent's input is still open.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    pub(super) fn is_overfull(&self) -> bool {
        self.bytes > MAX_WAITING
    }

    /// Whether an editor's next line may be taken.
    pub(super) fn has_room(&self) -> bool {
        self.bytes < HIGH_WATER
    }

    /// Whether [`Outbox::write`] has something to do.
    pub(super) fn has_work(&self) -> bool {
        self.open && (self.unflushed || !self.waiting.is_empty())
    }

    /// Writes part of the queue. Cancel safe. After an error nothing more is written, while the
    /// agent's remaining output can still be read.
    pub(super) async fn write(&mut self) -> io::Result<()> {
        let wrote = self.write_some().await;
        if wrote.is_err() {
            self.open = false;
            self.waiting.clear();
            self.bytes = 0;
        }
        wrote
    }

    async fn write_some(&mut self) -> io::Result<()> {
        let Some((line, _)) = self.waiting.front_mut() else {
            self.writer.flush().await?;
            self.unflushed = false;
            return Ok(());
        };
        let written = self.writer.write(line).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        line.advance(written);
        if line.is_empty() {
            self.waiting.pop_front();
        }
        self.bytes -= written;
        self.unflushed = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    async fn lines(text: &'static [u8], max: usize) -> Vec<Result<String, String>> {
        let mut lines = LineReader::new(text, max);
        let mut read = Vec::new();
        loop {
            match lines.next().await {
                Ok(Some(line)) => read.push(Ok(String::from_utf8(line).unwrap())),
                Ok(None) => return read,
                Err(error) => {
                    read.push(Err(error.to_string()));
                    return read;
                }
            }
        }
    }

    #[tokio::test]
    async fn lines_are_split_and_bounded() {
        let ok = |line: &str| Ok(line.to_owned());
        assert_eq!(lines(b"a\n\nb\r\nc", 9).await, [ok("a"), ok(""), ok("b\r"), ok("c")]);
        assert_eq!(lines(b"", 9).await, []);
        assert_eq!(lines(b"123\n", 3).await, [ok("123")]);
        assert_eq!(lines(b"123", 3).await, [ok("123")]);
        let long = Err("a line of more than 3 bytes".to_owned());
        assert_eq!(lines(b"12\n1234\n", 3).await, [ok("12"), long]);
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
        assert_eq!(lines.next().await.unwrap().unwrap(), b"abcdef");
    }

    #[tokio::test]
    async fn a_closed_writer_takes_no_more() {
        let (far, near) = tokio::io::duplex(64);
        let mut out = Outbox::new(near);
        drop(far);
        out.push(Bytes::from_static(b"x\n"), None);
        assert!(out.write().await.is_err());
        assert!(!out.is_open());
        out.push(Bytes::from_static(b"y\n"), None);
        assert!(!out.has_work());
    }
}
