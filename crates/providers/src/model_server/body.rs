//! Bodies: those of requests within their bounds, and those of answers that wait, break and hang.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::frames::Frame;
use super::tally::{PlayedEnd, RunningCall};

/// Bytes of a request, packed and unpacked: a conversation with pictures.
const LONGEST_REQUEST: usize = 64 << 20;

/// Reads the body of a request, and unpacks it.
pub(super) async fn read(headers: &HeaderMap, body: Incoming) -> Result<Vec<u8>, String> {
    let most = LONGEST_REQUEST >> 20;
    let packed = Limited::new(body, LONGEST_REQUEST).collect().await;
    let packed = packed.map_err(|error| format!("the body cannot be read: {error}"))?.to_bytes();
    let encoding = headers.get(CONTENT_ENCODING).map(http::HeaderValue::as_bytes);
    let unpacked = match encoding.unwrap_or(b"identity") {
        b"identity" | b"" => return Ok(packed.into()),
        b"gzip" => unpack(flate2::read::GzDecoder::new(&packed[..])),
        b"zstd" => zstd::Decoder::with_buffer(&packed[..]).and_then(unpack),
        _ => return Err("the server unpacks `gzip` and `zstd`, and no other encoding".to_owned()),
    };
    let unpacked = unpacked.map_err(|error| format!("the body cannot be unpacked: {error}"))?;
    if unpacked.len() > LONGEST_REQUEST {
        return Err(format!("the body has more than {most} MiB"));
    }
    Ok(unpacked)
}

fn unpack(packed: impl Read) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    packed.take(LONGEST_REQUEST as u64 + 1).read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

/// Whether a connection closes as soon as all is written.
#[derive(Clone, Default)]
pub(super) struct Closing(Arc<AtomicBool>);

/// The body of an answer.
pub(super) struct PlayedBody {
    frames: VecDeque<Frame>,
    /// The call, if it is one of a model.
    call: Option<RunningCall>,
    end: PlayedEnd,
    closing: Closing,
    wait: Option<Pin<Box<Sleep>>>,
    /// The length, where the head of the answer says it.
    length: Option<u64>,
}

impl PlayedBody {
    /// The body of a call.
    pub(super) fn of_call(
        frames: Vec<Frame>,
        call: RunningCall,
        end: PlayedEnd,
        closing: Closing,
    ) -> Self {
        Self { frames: frames.into(), call: Some(call), end, closing, wait: None, length: None }
    }

    /// A body that is sent at once.
    pub(super) fn whole(bytes: Bytes) -> Self {
        let length = Some(bytes.len() as u64);
        let frames = [Frame::Send(bytes, None)].into();
        let closing = Closing::default();
        Self { frames, call: None, end: PlayedEnd::Whole, closing, wait: None, length }
    }

    /// Says the length of the whole body in the head of the answer, even if less is sent.
    pub(super) fn with_length(self, length: u64) -> Self {
        Self { length: Some(length), ..self }
    }

    fn over(&mut self, end: PlayedEnd) {
        if let Some(call) = &mut self.call {
            call.end(end);
        }
    }
}

impl Body for PlayedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        loop {
            if let Some(wait) = &mut self.wait {
                ready!(wait.as_mut().poll(context));
                self.wait = None;
            }
            match self.frames.front() {
                Some(Frame::Hang) => return Poll::Pending,
                Some(Frame::Cut) => {
                    self.over(PlayedEnd::Cut);
                    self.closing.0.store(true, Ordering::Release);
                    // The connection writes all that it has, and then sees that it is closing.
                    return Poll::Pending;
                }
                _ => {}
            }
            match self.frames.pop_front() {
                Some(Frame::Send(bytes, reported)) => {
                    if let (Some(call), Some(tokens)) = (&mut self.call, reported) {
                        call.reports(tokens);
                    }
                    if self.frames.is_empty() {
                        let end = self.end;
                        self.over(end);
                    }
                    if !bytes.is_empty() {
                        return Poll::Ready(Some(Ok(http_body::Frame::data(bytes))));
                    }
                }
                Some(Frame::Wait(time)) => {
                    self.wait = Some(Box::pin(sleep_until(Instant::now() + time)));
                }
                Some(Frame::Cut | Frame::Hang) | None => {
                    let end = self.end;
                    self.over(end);
                    return Poll::Ready(None);
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map(SizeHint::with_exact).unwrap_or_default()
    }
}

/// A connection that closes once an answer says so.
pub(super) struct Closable<S> {
    stream: S,
    closing: Closing,
}

impl<S> Closable<S> {
    pub(super) fn new(stream: S, closing: Closing) -> Self {
        Self { stream, closing }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Closable<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Closable<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    /// The HTTP side calls it after it has written all that it had.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        let is_closing = self.closing.0.load(Ordering::Acquire);
        Poll::Ready(if is_closing { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) })
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
