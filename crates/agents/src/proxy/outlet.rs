//! The writing end of one direction of a relay: writes without waiting and queues the rest.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use futures_util::FutureExt;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// A writer with a queue. Bytes for a closed stream are dropped, since it has no reader.
pub(super) struct Outlet<W> {
    /// `None` once the stream failed or was closed.
    writer: Option<W>,
    queue: VecDeque<Bytes>,
    queued: usize,
    /// Bytes were written that the stream may still buffer.
    unflushed: bool,
    closing: bool,
}

impl<W: AsyncWrite + Unpin> Outlet<W> {
    pub(super) fn new(writer: W) -> Self {
        Self {
            writer: Some(writer),
            queue: VecDeque::new(),
            queued: 0,
            unflushed: false,
            closing: false,
        }
    }

    pub(super) fn push(&mut self, bytes: Bytes) {
        if self.is_open() && !bytes.is_empty() {
            self.queued += bytes.len();
            self.queue.push_back(bytes);
            while self.has_work() && self.flush().now_or_never().is_some() {}
        }
    }

    /// Closes the stream once the queue is written.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    /// Whether [`Self::flush`] has work to do.
    pub(super) fn has_work(&self) -> bool {
        self.writer.is_some() && (self.queued > 0 || self.unflushed || self.closing)
    }

    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Whether pushed bytes are still written.
    pub(super) fn is_open(&self) -> bool {
        self.writer.is_some() && !self.closing
    }

    /// Whether the stream failed or was closed.
    pub(super) fn is_broken(&self) -> bool {
        self.writer.is_none()
    }

    /// Whether to read the other side while `may_wait` bytes may be queued here. Mostly none may: a
    /// slow reader then slows its writer as a pipe would, and read buffers are reused.
    pub(super) fn has_room(&self, may_wait: usize) -> bool {
        self.queued <= may_wait
    }

    /// Writes some of the queue, flushes, or closes the stream. Cancel safe.
    pub(super) async fn flush(&mut self) {
        let Some(writer) = &mut self.writer else { return };
        let Some(front) = self.queue.front_mut() else {
            if self.unflushed {
                let flushed = writer.flush().await;
                self.unflushed = false;
                if flushed.is_err() {
                    self.writer = None;
                }
            } else if self.closing {
                // Some streams do not close when dropped: half of a duplex one, for instance.
                let _ = writer.shutdown().await;
                self.writer = None;
            }
            return;
        };
        match writer.write(front).await {
            Ok(written) if written > 0 => {
                front.advance(written);
                self.queued -= written;
                self.unflushed = true;
                if front.is_empty() {
                    self.queue.pop_front();
                }
            }
            Ok(_) | Err(_) => {
                self.writer = None;
                self.queue.clear();
                self.queued = 0;
            }
        }
    }
}
