//! The body of an answer: the endpoint's own, or the provider's as it comes, of which a copy is counted.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use tokio::time::{Instant, Sleep, sleep};

use super::open_call::OpenCall;
use super::provider_body::ProviderBody;
use crate::counting::CallEnd;

/// How long a provider may be silent within an answer: at least this, and less than twice this.
const SILENCE: Duration = Duration::from_secs(30 * 60);

/// The body of an answer.
pub(super) enum AnswerBody {
    /// The endpoint's own.
    Own(Full<Bytes>),
    /// A provider's.
    Passing(Box<Passing>),
}

/// A provider's answer on its way to an agent.
pub(super) struct Passing {
    body: ProviderBody,
    /// None: it is not counted.
    call: Option<OpenCall>,
    /// Something came since the deadline was set. A clock that is read for each frame would cost as much as all else.
    is_heard: bool,
    /// Runs from the first wait on.
    deadline: Option<Pin<Box<Sleep>>>,
    /// The error that ends it.
    failed: Option<BodyError>,
}

/// Why a body ends before its end.
type BodyError = Box<dyn std::error::Error + Send + Sync>;

impl AnswerBody {
    pub(super) fn passing(body: ProviderBody, call: Option<OpenCall>) -> Self {
        Self::Passing(Box::new(Passing {
            body,
            call,
            is_heard: false,
            deadline: None,
            failed: None,
        }))
    }
}

impl Passing {
    fn end(&mut self, end: CallEnd) {
        if let Some(mut call) = self.call.take() {
            call.end(end);
        }
    }

    /// Whether the provider has been silent for too long.
    fn is_silent(&mut self, cx: &mut Context<'_>) -> bool {
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(SILENCE)));
        while deadline.as_mut().poll(cx).is_ready() {
            if !std::mem::take(&mut self.is_heard) {
                return true;
            }
            deadline.as_mut().reset(Instant::now() + SILENCE);
        }
        false
    }

    /// Ends it by an error, which the server is told at its next look: so it first sends what it has.
    fn fail(
        &mut self,
        error: BodyError,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.end(CallEnd::CutByProvider);
        self.failed = Some(error);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.is_heard = true;
                if let (Some(call), Some(data)) = (&mut self.call, frame.data_ref()) {
                    call.feed(data);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => {
                self.end(CallEnd::Whole);
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(error))) => self.fail(error.into(), cx),
            Poll::Pending if self.is_silent(cx) => self.fail("the provider is silent".into(), cx),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        // A body whose length is known is not asked for its end.
        if self.body.is_end_stream() {
            self.end(CallEnd::Whole);
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Own(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Self::Passing(passing) => passing.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(body) => body.is_end_stream(),
            Self::Passing(passing) => passing.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(body) => body.size_hint(),
            Self::Passing(passing) => passing.body.size_hint(),
        }
    }
}
