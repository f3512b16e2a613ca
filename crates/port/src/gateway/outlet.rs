//! Lines that wait to be written to clients and agents. Writing never waits: each outlet writes as much as
//! its stream takes now, and keeps the rest.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncWrite as _, DuplexStream, WriteHalf};

use super::Peer;

/// Bytes that may wait for one reader before one more line; past that it is cut off.
const MAX_WAITING: usize = 64 << 20;

/// Every stream that is written to.
#[derive(Default)]
pub(super) struct Outlets {
    all: HashMap<Peer, PeerOutlet>,
    /// The outlets with something to do.
    busy: Vec<Peer>,
}

struct PeerOutlet {
    stream: WriteHalf<DuplexStream>,
    waiting: VecDeque<Bytes>,
    bytes: usize,
    /// The stream ends once everything is written.
    closing: bool,
}

impl Outlets {
    pub(super) fn add(&mut self, peer: Peer, stream: WriteHalf<DuplexStream>) {
        let outlet = PeerOutlet { stream, waiting: VecDeque::new(), bytes: 0, closing: false };
        self.all.insert(peer, outlet);
    }

    /// Appends a line.
    pub(super) fn push(&mut self, peer: Peer, line: Bytes) {
        if let Some(outlet) = self.all.get_mut(&peer).filter(|outlet| !outlet.closing) {
            outlet.bytes += line.len();
            outlet.waiting.push_back(line);
            self.is_busy(peer);
        }
    }

    /// Whether a stream takes no more lines for now.
    pub(super) fn is_full(&self, peer: Peer) -> bool {
        self.all.get(&peer).is_none_or(|outlet| outlet.bytes > MAX_WAITING)
    }

    /// Ends a stream behind what waits.
    pub(super) fn close(&mut self, peer: Peer) {
        if let Some(outlet) = self.all.get_mut(&peer) {
            outlet.closing = true;
            self.is_busy(peer);
        }
    }

    pub(super) fn remove(&mut self, peer: Peer) {
        self.all.remove(&peer);
        self.busy.retain(|other| *other != peer);
    }

    fn is_busy(&mut self, peer: Peer) {
        if !self.busy.contains(&peer) {
            self.busy.push(peer);
        }
    }

    /// Writes what can be written; ready only with a stream that broke, or whose reader is too slow.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Peer> {
        let mut broken = None;
        let all = &mut self.all;
        self.busy.retain(|peer| {
            let Some(outlet) = all.get_mut(peer) else { return false };
            match outlet.poll(cx) {
                Poll::Ready(Ok(())) => {
                    if outlet.closing {
                        all.remove(peer);
                    }
                    false
                }
                Poll::Ready(Err(error)) => {
                    tracing::debug!(%error, "a stream of the gateway broke");
                    broken = Some(*peer);
                    false
                }
                Poll::Pending if outlet.before_last() > MAX_WAITING => {
                    broken = Some(*peer);
                    true
                }
                Poll::Pending => true,
            }
        });
        broken.map_or(Poll::Pending, Poll::Ready)
    }
}

impl PeerOutlet {
    /// Bytes that wait before the last line, whose own length does not count: a reader had no time for it.
    fn before_last(&self) -> usize {
        self.bytes - self.waiting.back().map_or(0, Bytes::len)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(line) = self.waiting.front_mut() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, line))?;
            line.advance(written);
            self.bytes -= written;
            if line.is_empty() {
                self.waiting.pop_front();
            }
        }
        if self.closing {
            Pin::new(&mut self.stream).poll_shutdown(cx)
        } else {
            Poll::Ready(Ok(()))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::future::poll_fn;

    use futures_util::FutureExt as _;
    use tokio::io::{AsyncReadExt as _, duplex, split};

    use super::*;

    #[tokio::test]
    async fn a_reader_may_take_two_long_lines_at_once_and_is_cut_off_past_the_limit() {
        let (near, mut far) = duplex(64 * 1024);
        let (peer, line) = (Peer::Client(1), Bytes::from(vec![b'x'; 33 << 20]));
        let mut outlets = Outlets::default();
        outlets.add(peer, split(near).1);
        outlets.push(peer, line.clone());
        outlets.push(peer, line.clone());
        assert_eq!(poll_fn(|cx| outlets.poll(cx)).now_or_never(), None);
        let mut all = vec![0; 2 * line.len()];
        tokio::select! {
            peer = poll_fn(|cx| outlets.poll(cx)) => unreachable!("{peer:?} is cut off"),
            read = far.read_exact(&mut all) => assert_eq!(read.unwrap(), all.len()),
        }
        for _ in 0..3 {
            outlets.push(peer, line.clone());
        }
        assert_eq!(poll_fn(|cx| outlets.poll(cx)).now_or_never(), Some(peer));
    }
}
