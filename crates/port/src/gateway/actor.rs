//! The one task of a gateway: it owns clients, attachments and sessions, and reads all their lines.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, FuturesUnordered, SelectAll};
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, DuplexStream, split};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::dial::Dialed;
use super::outlet::Outlets;
use super::session::{
    AgentLink, AgentQuestion, ClientOffers, GatewayClient, GatewaySession, LinkOf, OpenRequest,
};
use super::setup::AgentSetup;
use super::{GatewayTeam, Peer};
use crate::line::{LineReader, MAX_LINE};

/// Clients at once; one more is disconnected.
const MAX_CLIENTS: usize = 64;

/// Time between looks for requests that agents do not answer.
const BETWEEN_LOOKS: Duration = Duration::from_secs(5);

/// The task's state.
pub(super) struct GatewayActor {
    pub(super) team: Arc<dyn GatewayTeam>,
    pub(super) clients: HashMap<u64, GatewayClient>,
    pub(super) links: HashMap<u64, AgentLink>,
    pub(super) sessions: HashMap<String, GatewaySession>,
    /// Ids of sessions, the oldest first.
    pub(super) order: Vec<String>,
    /// Requests to agents, by our ids.
    pub(super) asked: HashMap<u64, OpenRequest>,
    /// Requests to clients, by our ids.
    pub(super) questions: HashMap<u64, AgentQuestion>,
    pub(super) outlets: Outlets,
    /// The work beside the task.
    pub(super) work: FuturesUnordered<BoxFuture<'static, ActorDone>>,
    lines: SelectAll<BoxStream<'static, (Peer, Option<Bytes>)>>,
    arrivals: mpsc::Receiver<DuplexStream>,
    last_id: u64,
}

/// The result of work beside the task.
pub(super) enum ActorDone {
    Dialed {
        purpose: Purpose,
        outcome: Result<Dialed, String>,
    },
    /// A command has its output, for all clients of a session.
    Said {
        client: u64,
        id: Box<RawValue>,
        session: String,
        text: String,
    },
}

/// The reason why an attachment is made.
pub(super) enum Purpose {
    Introduce {
        client: u64,
        id: Box<RawValue>,
        params: Box<RawValue>,
    },
    New {
        client: u64,
        id: Box<RawValue>,
        params: Box<RawValue>,
    },
    Load {
        client: u64,
        id: Box<RawValue>,
        line: Bytes,
        session: String,
        ticket: u64,
    },
    /// For a request that names no session.
    Control {
        client: u64,
        id: Box<RawValue>,
        line: Bytes,
    },
    Move {
        session: String,
        ticket: u64,
    },
}

impl GatewayActor {
    pub(super) fn new(team: Arc<dyn GatewayTeam>, arrivals: mpsc::Receiver<DuplexStream>) -> Self {
        Self {
            team,
            clients: HashMap::new(),
            links: HashMap::new(),
            sessions: HashMap::new(),
            order: Vec::new(),
            asked: HashMap::new(),
            questions: HashMap::new(),
            outlets: Outlets::default(),
            work: FuturesUnordered::new(),
            lines: SelectAll::new(),
            arrivals,
            last_id: 0,
        }
    }

    /// Works until the last handle is gone.
    pub(super) async fn run(mut self) {
        let mut late = interval(BETWEEN_LOOKS);
        late.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // Lines come last: a peer that floods keeps nothing else from being done.
            tokio::select! {
                biased;
                broken = poll_fn(|cx| self.outlets.poll(cx)) => self.cut_off(broken),
                arrived = self.arrivals.recv() => match arrived {
                    Some(stream) => self.admit(stream),
                    None => return,
                },
                Some(done) = self.work.next() => self.on_done(done),
                _ = late.tick(), if !self.asked.is_empty() => self.end_late(),
                Some((peer, line)) = self.lines.next() => match (peer, line) {
                    (Peer::Client(client), Some(line)) => self.on_client_line(client, &line),
                    (Peer::Link(link), Some(line)) => self.on_agent_line(link, &line),
                    (peer, None) => self.left(peer),
                },
            }
        }
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn admit(&mut self, stream: DuplexStream) {
        if self.clients.len() >= MAX_CLIENTS {
            // One that left may wait for answers that never come.
            let left = self.clients.iter().find(|(_, client)| client.leaving).map(|(id, _)| *id);
            if let Some(left) = left {
                self.clients.remove(&left);
                self.outlets.remove(Peer::Client(left));
            }
        }
        if self.clients.len() >= MAX_CLIENTS {
            tracing::warn!("a client of the gateway is refused: there are {MAX_CLIENTS}");
            return;
        }
        let (reader, writer) = split(stream);
        let (client, cut) = (self.next_id(), CancellationToken::new());
        self.outlets.add(Peer::Client(client), writer);
        self.read(Peer::Client(client), LineReader::new(reader, MAX_LINE), cut.clone());
        let state = GatewayClient {
            introduction: None,
            introducing: false,
            held: VecDeque::new(),
            control: None,
            offers: ClientOffers::default(),
            open: 0,
            leaving: false,
            cut,
            left: CancellationToken::new(),
        };
        self.clients.insert(client, state);
    }

    /// Adds an attachment.
    pub(super) fn link(&mut self, dialed: Dialed, of: LinkOf) -> u64 {
        let (link, cut) = (self.next_id(), CancellationToken::new());
        self.outlets.add(Peer::Link(link), dialed.writer);
        self.read(Peer::Link(link), dialed.lines, cut.clone());
        let Dialed { agent, offers, .. } = dialed;
        let setup = AgentSetup::default();
        let state = AgentLink { agent, of, target: None, offers, setup, cut };
        self.links.insert(link, state);
        link
    }

    /// Reads a stream's lines, and its end as None.
    fn read(
        &mut self,
        peer: Peer,
        lines: LineReader<impl AsyncRead + Unpin + Send + 'static>,
        cut: CancellationToken,
    ) {
        let lines = stream::unfold(Some((lines, cut)), move |open| async move {
            let (mut lines, cut) = open?;
            let next = tokio::select! {
                biased;
                () = cut.cancelled() => None,
                next = lines.next_whole() => next.unwrap_or_else(|error| {
                    tracing::debug!(%error, "cannot read from a client or an agent of the gateway");
                    None
                }),
            };
            Some(match next {
                Some(line) => ((peer, Some(line)), Some((lines, cut))),
                None => ((peer, None), None),
            })
        });
        self.lines.push(lines.boxed());
    }

    /// Ends a stream that broke, or whose reader is too slow.
    fn cut_off(&mut self, peer: Peer) {
        tracing::debug!(?peer, "a client or an agent of the gateway is cut off");
        let cut = match peer {
            Peer::Client(client) => self.clients.get(&client).map(|client| &client.cut),
            Peer::Link(link) => self.links.get(&link).map(|link| &link.cut),
        };
        if let Some(cut) = cut {
            cut.cancel();
        }
        self.outlets.remove(peer);
    }

    fn left(&mut self, peer: Peer) {
        match peer {
            Peer::Client(client) => self.client_left(client),
            Peer::Link(link) => self.link_ended(link),
        }
    }

    pub(super) fn send_to_client(&mut self, client: u64, line: Bytes) {
        self.outlets.push(Peer::Client(client), line);
    }

    pub(super) fn send_to_link(&mut self, link: u64, line: Bytes) {
        self.outlets.push(Peer::Link(link), line);
    }
}
