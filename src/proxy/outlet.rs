use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use futures_util::FutureExt;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// The writing end of one direction: writes at once what the stream takes, keeps the rest. Bytes
/// for a stream that is closed are dropped; whoever reads the other end has gone.
pub(super) struct Outlet<W> {
    /// None once the stream broke or was closed.
    writer: Option<W>,
    queue: VecDeque<Bytes>,
    queued: usize,
    /// Written, but perhaps not yet on its way: some streams have a buffer of their own.
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

    /// Closes the stream once all that was pushed is written.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    /// Whether [`Self::flush`] has something to do.
    pub(super) fn has_work(&self) -> bool {
        self.writer.is_some() && (self.queued > 0 || self.unflushed || self.closing)
    }

    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Whether what is pushed still goes anywhere.
    pub(super) fn is_open(&self) -> bool {
        self.writer.is_some() && !self.closing
    }

    /// Whether nobody reads the other end any more.
    pub(super) fn is_broken(&self) -> bool {
        self.writer.is_none()
    }

    /// Whether the other side is to be read, where so much may wait here. Mostly nothing may: a slow
    /// reader slows its writer then as a pipe would, and what is read finds the memory of what was
    /// read before free again.
    pub(super) fn has_room(&self, may_wait: usize) -> bool {
        self.queued <= may_wait
    }

    /// Writes some of what waits, flushes, or closes the stream. Cancel safe.
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
                // Not all streams close by being dropped: half of a duplex one does not.
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
