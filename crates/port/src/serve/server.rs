//! Owns the listener: binds, accepts, and ends its connections.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use eisen_base::task::{self, TaskSet};
use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info, warn};

use super::gateway::Gateway;
use super::places::{ConnectionSlot, ConnectionSlots};
use super::reasons::ExplainByJournal;
use super::run_file::live_teams;
use super::shared::{Limits, Shared};
use super::{Sources, Team, Tokens, Traffic, owner_questions, reader, tools_http};
use crate::bus::Bus;
use crate::serve::{Refused, lines};

/// How long the listener waits when the system has no more descriptors, or the port no slot.
const REST: Duration = Duration::from_millis(100);

/// Seconds of silence before a TCP keepalive probe, and between two probes.
#[cfg(target_os = "linux")]
const KEEP_ALIVE_S: u32 = 15;

#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("port {} is taken by the team `{team}` (pid {pid})", .address.port())]
    Team { address: SocketAddr, team: String, pid: u32 },
    #[error("port {} is taken by a team of another EISEN_DIR or of another user; --port 0 takes a \
             free one", .address.port())]
    OthersTeam { address: SocketAddr },
    #[error("port {} is taken by another program; --port 0 takes a free one", .address.port())]
    Taken { address: SocketAddr },
    #[error("cannot listen on {address}: {cause}")]
    Failed { address: SocketAddr, cause: io::Error },
}

/// Binds the port. If a team of `eisen_dir` has it, the error names that team.
pub async fn bind(address: SocketAddr, eisen_dir: &Path) -> Result<TcpListener, BindError> {
    let cause = match TcpListener::bind(address).await {
        Ok(listener) => return Ok(listener),
        Err(cause) if cause.kind() != io::ErrorKind::AddrInUse => {
            return Err(BindError::Failed { address, cause });
        }
        Err(cause) => cause,
    };
    let teams = live_teams(eisen_dir).unwrap_or_default();
    match teams.into_iter().find(|team| overlap(team.address, address)) {
        Some(team) => Err(BindError::Team { address, team: team.team, pid: team.pid }),
        None if is_team(address).await => Err(BindError::OthersTeam { address }),
        None => {
            tracing::debug!(%address, %cause, "the port is taken");
            Err(BindError::Taken { address })
        }
    }
}

/// Whether a team answers at an address: at a port that asks for a token, whether anybody does.
pub async fn answers(address: SocketAddr) -> bool {
    if address.ip().to_canonical().is_loopback() {
        return is_team(address).await;
    }
    let connect = TcpStream::connect(super::client::reachable(address));
    matches!(timeout(MOMENT, connect).await, Ok(Ok(_)))
}

/// Whether the program that listens at an address greets like a team.
async fn is_team(address: SocketAddr) -> bool {
    const GREETING: &[u8] = b"{\"type\":\"";
    let greeting = async {
        let mut stream = TcpStream::connect(super::client::reachable(address)).await.ok()?;
        let mut start = [0; GREETING.len()];
        stream.read_exact(&mut start).await.ok()?;
        Some(start == GREETING)
    };
    timeout(MOMENT, greeting).await.ok().flatten().unwrap_or(false)
}

/// How long a team may take to greet.
const MOMENT: Duration = Duration::from_millis(500);

/// Whether only one of the two addresses can be listened on.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let (a, b) = (one.ip().to_canonical(), other.ip().to_canonical());
    one.port() == other.port() && (a == b || a.is_unspecified() || b.is_unspecified())
}

/// The port of a team.
pub struct Server {
    listener: TcpListener,
    /// Where the tools are served over HTTP.
    tools: Option<TcpListener>,
    places: Arc<ConnectionSlots>,
    shared: Arc<Shared>,
}

impl Server {
    pub fn new(
        listener: TcpListener,
        bus: Bus,
        sources: Arc<dyn Sources>,
        team: Arc<dyn Team>,
        tokens: Tokens,
        limits: Limits,
    ) -> io::Result<Self> {
        let guarded = !listener.local_addr()?.ip().to_canonical().is_loopback();
        let shared = Shared::new(bus, sources, team, tokens, limits, guarded);
        let places = Arc::new(ConnectionSlots::new(limits.max_connections));
        let shared = Arc::new(shared);
        shared.sources.explain_by(Box::new(ExplainByJournal(Arc::downgrade(&shared))));
        Ok(Self { listener, tools: None, places, shared })
    }

    /// The counts of its clients.
    pub fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.shared.traffic)
    }

    /// Serves the tools over HTTP, too, on this listener.
    #[must_use]
    pub fn with_tools(self, listener: Option<TcpListener>) -> Self {
        Self { tools: listener, ..self }
    }

    /// The way in for clients of the web server.
    pub fn gateway(&self) -> Gateway {
        Gateway { shared: Arc::clone(&self.shared), places: Arc::clone(&self.places) }
    }

    /// Serves until `cancel`. Then it accepts no clients, answers running requests with an error,
    /// and sends each client its waiting lines; it returns after the last connection ends, at the
    /// latest after the write deadline.
    pub async fn run(mut self, cancel: CancellationToken) {
        let mut connections = TaskSet::default();
        let tools = self.tools.take();
        let _answering = self.shared.sources.take_questions().map(|questions| {
            AbortOnDropHandle::new(task::spawn(owner_questions::answer(
                Arc::clone(&self.shared),
                questions,
            )))
        });
        let _tools = tools.map(|listener| {
            let serving = tools_http::serve(Arc::clone(&self.shared), listener, cancel.clone());
            AbortOnDropHandle::new(task::spawn(serving))
        });
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                Some(ended) = connections.join_next() => report(ended),
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        let Some(place) = self.place(&mut connections).await else {
                            warn!(%peer, "client refused: the port has reached its limit of clients");
                            self.refuse(stream);
                            continue;
                        };
                        prepare(&stream, self.shared.limits.write_deadline);
                        let (shared, cancel) = (Arc::clone(&self.shared), cancel.clone());
                        connections.spawn(reader::serve(stream, place, shared, cancel));
                    }
                    Err(error) => {
                        warn!(%error, "cannot accept a client");
                        sleep(REST).await;
                    }
                },
            }
        }
        drop(self.listener);
        info!(clients = connections.len(), "port closed");
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
    }

    /// Finds a slot for a new client; None if none will be free soon.
    async fn place(&self, connections: &mut TaskSet) -> Option<Arc<ConnectionSlot>> {
        let place = self.places.take();
        if place.is_some() {
            return place;
        }
        self.shared.crowded.send_replace(());
        if let Ok(Some(ended)) = timeout(REST, connections.join_next()).await {
            report(ended);
        }
        self.places.take()
    }

    fn refuse(&self, stream: TcpStream) {
        let message = format!(
            "the port serves {} clients, which is its limit",
            self.shared.limits.max_connections
        );
        let line = lines::answer(None, Err(&Refused::new(500, message)));
        // A new socket accepts one line without blocking; on a failure the client is gone.
        let _ = stream.into_std().and_then(|mut stream| stream.write_all(&line));
    }
}

fn prepare(stream: &TcpStream, deadline: Duration) {
    // Lines are batched here; Nagle's algorithm would only delay them.
    let _ = stream.set_nodelay(true);
    // In a quiet team nothing is written. A client that vanished, or seems to have closed only one
    // side, would keep its slot for ever.
    let _ = setsockopt(stream, sockopt::KeepAlive, &true);
    #[cfg(target_os = "linux")]
    {
        let _ = setsockopt(stream, sockopt::TcpKeepIdle, &KEEP_ALIVE_S);
        let _ = setsockopt(stream, sockopt::TcpKeepInterval, &KEEP_ALIVE_S);
        let _ = setsockopt(stream, sockopt::TcpKeepCount, &4);
        // Without it the kernel retries unacknowledged lines for a quarter of an hour.
        let deadline = u32::try_from(deadline.as_millis()).unwrap_or(u32::MAX);
        let _ = setsockopt(stream, sockopt::TcpUserTimeout, &deadline);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = deadline;
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        error!(%error, "a connection failed");
    }
}
