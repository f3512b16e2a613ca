//! The events that wait for a client, in one stream for each session and one for the rest. A stream is read
//! by one request at a time; events that come meanwhile wait for the next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Bytes that may wait for a client before one more message; past that it is cut off.
const MAX_WAITING: usize = 64 << 20;

/// The streams of one client.
#[derive(Default)]
pub(super) struct AcpStreams(Mutex<StreamsState>);

#[derive(Default)]
struct StreamsState {
    /// By the session's id; None: what is for no session.
    all: HashMap<Option<String>, AcpStream>,
    waiting: usize,
    is_closed: bool,
}

/// One stream; it is there while it is read, or something waits in it.
struct AcpStream {
    sender: UnboundedSender<Bytes>,
    /// None: a request reads it.
    receiver: Option<UnboundedReceiver<Bytes>>,
}

/// The stream that one request reads.
pub(super) struct StreamLease {
    session: Option<String>,
    receiver: Option<UnboundedReceiver<Bytes>>,
    streams: Arc<AcpStreams>,
}

impl AcpStream {
    fn new() -> Self {
        let (sender, receiver) = unbounded_channel();
        Self { sender, receiver: Some(receiver) }
    }
}

impl AcpStreams {
    /// Adds an event; false if too much waits for the client.
    pub(super) fn push(&self, session: Option<String>, is_answer: bool, event: Bytes) -> bool {
        let mut state = self.state();
        if state.waiting > MAX_WAITING {
            return false;
        }
        // An answer comes behind what was said in its session. A client that does not listen there may
        // not know the session.
        let session = session.filter(|it| !is_answer || state.all.contains_key(&Some(it.clone())));
        state.waiting += event.len();
        let stream = state.all.entry(session).or_insert_with(AcpStream::new);
        // The receiver is here, or in a lease, which gives it back under the lock.
        let _ = stream.sender.send(event);
        true
    }

    /// Reads a stream from now on; None if another request does.
    pub(super) fn lease(self: &Arc<Self>, session: Option<&str>) -> Option<StreamLease> {
        let session = session.map(str::to_owned);
        let mut state = self.state();
        let receiver = if state.is_closed {
            // It ends at once.
            unbounded_channel().1
        } else {
            let stream = state.all.entry(session.clone()).or_insert_with(AcpStream::new);
            stream.receiver.take()?
        };
        Some(StreamLease { session, receiver: Some(receiver), streams: Arc::clone(self) })
    }

    /// Ends all streams behind what waits in them.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.all.clear();
    }

    fn state(&self) -> MutexGuard<'_, StreamsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamLease {
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        let event = self.receiver.as_mut()?.recv().await?;
        self.streams.state().waiting -= event.len();
        Some(event)
    }
}

impl Drop for StreamLease {
    fn drop(&mut self) {
        let mut state = self.streams.state();
        let Some(receiver) = self.receiver.take().filter(|_| !state.is_closed) else { return };
        let session = self.session.take();
        if receiver.is_empty() {
            state.all.remove(&session);
        } else if let Some(stream) = state.all.get_mut(&session) {
            stream.receiver = Some(receiver);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn what_is_not_read_waits_for_the_next_request() {
        let streams = Arc::new(AcpStreams::default());
        let push = |session: Option<&str>, is_answer, text: &'static str| {
            assert!(streams.push(
                session.map(str::to_owned),
                is_answer,
                Bytes::from_static(text.as_bytes())
            ));
        };
        let next = |lease: &mut StreamLease| lease.next().now_or_never().flatten();
        push(Some("s"), false, "said 1");
        push(Some("s"), false, "said 2");
        push(Some("s"), true, "answered");
        push(Some("t"), true, "unknown");
        let mut lease = streams.lease(Some("s")).unwrap();
        assert!(streams.lease(Some("s")).is_none());
        assert_eq!(next(&mut lease).unwrap(), "said 1");
        drop(lease);
        let mut lease = streams.lease(Some("s")).unwrap();
        assert_eq!(next(&mut lease).unwrap(), "said 2");
        assert_eq!(next(&mut lease).unwrap(), "answered");
        let mut rest = streams.lease(None).unwrap();
        assert_eq!(next(&mut rest).unwrap(), "unknown");
        push(None, false, "last");
        streams.close();
        assert_eq!(next(&mut rest).unwrap(), "last");
        assert!(rest.next().now_or_never().unwrap().is_none());
        assert!(streams.lease(None).unwrap().next().now_or_never().unwrap().is_none());
    }

    #[test]
    fn streams_are_kept_only_while_something_is_in_them() {
        let streams = Arc::new(AcpStreams::default());
        for at in 0..9 {
            drop(streams.lease(Some(&at.to_string())).unwrap());
        }
        assert_eq!(streams.state().all.len(), 0);
        let lease = streams.lease(Some("s")).unwrap();
        assert!(streams.push(Some("s".to_owned()), false, Bytes::from_static(b"said")));
        drop(lease);
        let state = streams.state();
        assert_eq!((state.all.len(), state.waiting), (1, 4));
    }

    #[test]
    fn so_much_waits_for_a_client_and_no_more() {
        let streams = Arc::new(AcpStreams::default());
        let event = Bytes::from(vec![b'x'; 33 << 20]);
        let push = |session: &str| streams.push(Some(session.to_owned()), false, event.clone());
        // The last one does not count: the client had no time for it.
        assert!(push("s") && push("t"));
        assert!(!push("u"));
        let mut lease = streams.lease(Some("s")).unwrap();
        assert!(lease.next().now_or_never().unwrap().is_some());
        assert!(push("u"));
    }
}
