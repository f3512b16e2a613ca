//! Owns the lines that wait for the agent to read them, and their bounds. Does not parse JSON.

use std::collections::VecDeque;
use std::io;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::OwnedSemaphorePermit;

use super::answer_line::AnswerLine;
use crate::model::UsedMemory;

/// Longest line read; a longer one ends the host with an error. The relay in front has the tighter
/// bound; this one only bounds memory.
pub(super) const MAX_LINE: usize = 128 << 20;

/// Bytes queued for an agent that does not read. Above that the host ends: if it stopped reading
/// instead, two full pipes could wait for each other.
const MAX_WAITING: usize = 512 << 20;

/// Bytes queued before the host stops reading from editors, as a full pipe would.
const HIGH_WATER: usize = 8 << 20;

/// The memory that is released when a piece has been written.
#[derive(Default, Debug)]
#[expect(dead_code, reason = "they count until they are dropped")]
struct LineHold {
    memory: Option<UsedMemory>,
    place: Option<OwnedSemaphorePermit>,
}

/// Lines queued for the agent. Pushing never waits.
#[derive(Debug)]
pub(super) struct Outbox<W> {
    writer: W,
    waiting: VecDeque<(Bytes, LineHold)>,
    bytes: usize,
    unflushed: bool,
    open: bool,
}

impl<W: AsyncWrite + Unpin> Outbox<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { writer, waiting: VecDeque::new(), bytes: 0, unflushed: false, open: true }
    }

    /// Appends a line.
    pub(super) fn push(&mut self, line: Bytes) {
        self.add(line, LineHold::default());
    }

    /// Appends a large answer; `place` is released when it has been written.
    pub(super) fn push_answer(&mut self, answer: AnswerLine, place: OwnedSemaphorePermit) {
        for (piece, memory) in answer.into_pieces() {
            self.add(piece, LineHold { memory: Some(memory), place: None });
        }
        if let Some((_, held)) = self.waiting.back_mut() {
            held.place = Some(place);
        }
    }

    fn add(&mut self, bytes: Bytes, held: LineHold) {
        if self.open {
            self.bytes += bytes.len();
            self.waiting.push_back((bytes, held));
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

    /// Whether [`Outbox::write`] has work to do.
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

    #[tokio::test]
    async fn a_closed_writer_takes_no_more() {
        let (far, near) = tokio::io::duplex(64);
        let mut out = Outbox::new(near);
        drop(far);
        out.push(Bytes::from_static(b"x\n"));
        assert!(out.write().await.is_err());
        assert!(!out.is_open());
        out.push(Bytes::from_static(b"y\n"));
        assert!(!out.has_work());
    }
}
