//! Bodies of requests: read in whole where a call has to be known before it is sent, else passed on as they come.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::shapes::OwnAnswer;

/// Bytes of a body that is read in whole.
pub(super) const LONGEST_CALL: u64 = 64 << 20;

/// Bytes of a body that passes as it comes.
pub(super) const LONGEST_STREAM: u64 = 2 << 30;

/// KiB of all bodies that are in memory at once. Further requests wait until others are sent.
pub(super) const ROOM: usize = 512 << 10;

/// How long a request waits for room, and how long its body may take.
const WAIT: Duration = Duration::from_secs(60);
const DEADLINE: Duration = Duration::from_secs(300);

/// A body that is in memory, and its room.
pub(super) struct WholeBody {
    pub(super) bytes: Bytes,
    room: Option<OwnedSemaphorePermit>,
}

impl WholeBody {
    /// The same room with other bytes, which are about as many.
    pub(super) fn with(self, bytes: Bytes) -> Self {
        Self { bytes, ..self }
    }
}

/// Reads a body in whole.
pub(super) async fn read(
    mut body: Incoming,
    room: &Arc<Semaphore>,
) -> Result<WholeBody, OwnAnswer> {
    let known = body.size_hint().exact();
    if known.is_some_and(|known| known > LONGEST_CALL) {
        return Err(OwnAnswer::TooLong(LONGEST_CALL));
    }
    // All of it at once: two that have a half each would wait for each other.
    let kib = u32::try_from(known.unwrap_or(LONGEST_CALL).div_ceil(1024)).unwrap_or(u32::MAX);
    let permit = timeout(WAIT, Arc::clone(room).acquire_many_owned(kib)).await;
    let Ok(Ok(mut permit)) = permit else { return Err(OwnAnswer::Full) };
    let mut bytes = BytesMut::with_capacity(known.and_then(|it| it.try_into().ok()).unwrap_or(0));
    let reading = async {
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| OwnAnswer::Bad("eisen-core: the body was cut off"))?;
            let Ok(data) = frame.into_data() else { continue };
            if (bytes.len() + data.len()) as u64 > LONGEST_CALL {
                return Err(OwnAnswer::TooLong(LONGEST_CALL));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(())
    };
    let Ok(read) = timeout(DEADLINE, reading).await else {
        return Err(OwnAnswer::Bad("eisen-core: the body took more than five minutes"));
    };
    read?;
    let needed = bytes.len().div_ceil(1024);
    drop(permit.split((kib as usize).saturating_sub(needed)));
    Ok(WholeBody { bytes: bytes.freeze(), room: Some(permit) })
}

/// A body towards a provider.
pub(super) enum RequestBody {
    /// From memory. Its room is given back when it was sent.
    Whole(Full<Bytes>, #[allow(dead_code)] Option<OwnedSemaphorePermit>),
    /// As it comes, and how much more may come.
    Passing(Incoming, u64),
}

impl RequestBody {
    /// Whether more of it is to come from the agent.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Self::Passing(body, _) if !body.is_end_stream())
    }
}

impl From<WholeBody> for RequestBody {
    fn from(body: WholeBody) -> Self {
        Self::Whole(Full::new(body.bytes), body.room)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Whole(body, _) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Self::Passing(body, left) => {
                let polled = Pin::new(body).poll_frame(cx).map_err(Self::Error::from);
                if let Poll::Ready(Some(Ok(frame))) = &polled
                    && let Some(data) = frame.data_ref()
                {
                    match left.checked_sub(data.len() as u64) {
                        Some(rest) => *left = rest,
                        None => return Poll::Ready(Some(Err("the body is too long".into()))),
                    }
                }
                polled
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body, _) => body.is_end_stream(),
            Self::Passing(body, _) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body, _) => body.size_hint(),
            Self::Passing(body, _) => body.size_hint(),
        }
    }
}
