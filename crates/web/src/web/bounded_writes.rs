//! A stream on which what is written has to be taken in time. hyper waits for ever for a client that
//! does not read its answer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::connection::WebConnection;

/// How long a client may take to take all of an answer, once it holds it up. It counts from the first
/// wait to the end: one that takes a byte now and then gains nothing.
const WRITE_DEADLINE: Duration = Duration::from_secs(60);

/// The stream of a connection.
pub(super) struct BoundedWrites<S> {
    stream: S,
    /// A WebSocket has a deadline for each frame, see [`super::socket`].
    connection: WebConnection,
    /// Runs while something waits for the client.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> BoundedWrites<S> {
    pub(super) fn new(stream: S, connection: WebConnection) -> Self {
        Self { stream, connection, deadline: None }
    }

    /// Passes a step on; an error if it waits for too long.
    fn in_time<T>(
        &mut self,
        cx: &mut Context<'_>,
        step: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if step.is_ready() || self.connection.is_socket() {
            return step;
        }
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(WRITE_DEADLINE)));
        deadline.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    /// The same for a step after which nothing waits.
    fn last_in_time(
        &mut self,
        cx: &mut Context<'_>,
        step: Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        if step.is_ready() {
            self.deadline = None;
        }
        self.in_time(cx, step)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BoundedWrites<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BoundedWrites<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let step = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.in_time(cx, step)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let step = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.in_time(cx, step)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let step = Pin::new(&mut self.stream).poll_flush(cx);
        self.last_in_time(cx, step)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let step = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.last_in_time(cx, step)
    }
}
