//! Owns the lines on their way to one client: batches them into vectored writes, with a deadline.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::wire::replayed;

/// Lines in one write; the kernel's limit is 1,024.
const LINES: usize = 512;

/// Bytes that are worth a write.
const BATCH: usize = 128 * 1024;

pub(super) struct Outgoing<W> {
    writer: W,
    deadline: Duration,
    /// Each line shows an earlier run.
    replays: bool,
    lines: VecDeque<Bytes>,
    bytes: usize,
}

impl<W: AsyncWrite + Unpin> Outgoing<W> {
    pub(super) fn new(writer: W, deadline: Duration, replays: bool) -> Self {
        Self { writer, deadline, replays, lines: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn push(&mut self, line: Bytes) {
        let line = if self.replays { replayed(&line) } else { line };
        self.bytes += line.len();
        self.lines.push_back(line);
    }

    /// Whether the owner must flush before it pushes more.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= BATCH
    }

    /// Writes all waiting lines. Error kind `TimedOut`: the client accepted no byte within the
    /// deadline.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        while !self.lines.is_empty() {
            let slices: Vec<_> =
                self.lines.iter().take(LINES).map(|line| IoSlice::new(line)).collect();
            match timeout(self.deadline, self.writer.write_vectored(&slices)).await?? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => self.advance(written),
            }
        }
        Ok(())
    }

    /// Writes all waiting lines, and closes.
    pub(super) async fn close(&mut self) -> io::Result<()> {
        self.flush().await?;
        self.writer.shutdown().await
    }

    fn advance(&mut self, mut written: usize) {
        self.bytes -= written;
        while let Some(line) = self.lines.front_mut() {
            if line.len() > written {
                line.advance(written);
                return;
            }
            written -= line.len();
            self.lines.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tokio::io::AsyncReadExt as _;
    use tokio::time::Instant;

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn lines_come_out_in_order_through_any_pipe() {
        let (near, mut far) = tokio::io::duplex(7);
        let mut outgoing = Outgoing::new(near, DEADLINE, false);
        let lines = (0..2_000).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        for line in lines.split_inclusive('\n') {
            outgoing.push(Bytes::copy_from_slice(line.as_bytes()));
        }
        let mut read = String::new();
        let (closed, received) = tokio::join!(outgoing.close(), far.read_to_string(&mut read));
        closed.unwrap();
        received.unwrap();
        assert!(read == lines, "the bytes differ");
        assert_eq!(outgoing.bytes, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_accepts_nothing_is_cut_after_the_deadline() {
        let (near, _far) = tokio::io::duplex(16);
        let mut outgoing = Outgoing::new(near, DEADLINE, false);
        outgoing.push(Bytes::from_static(&[b'x'; 17]));
        let start = Instant::now();
        assert_eq!(outgoing.flush().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed(), DEADLINE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_is_not_cut() {
        let (near, mut far) = tokio::io::duplex(1);
        let mut outgoing = Outgoing::new(near, DEADLINE, false);
        outgoing.push(Bytes::from_static(&[b'x'; 10]));
        let reading = async {
            for _ in 0..10 {
                tokio::time::sleep(DEADLINE * 9 / 10).await;
                far.read_u8().await.unwrap();
            }
        };
        let (flushed, ()) = tokio::join!(outgoing.flush(), reading);
        flushed.unwrap();
    }
}
