//! The endpoint: an HTTP server on loopback that stands in for the providers of models. It knows who calls by a
//! [`Callers`], puts the key in, and counts what passes.

mod answer;
mod asked;
mod bodies;
mod callers;
mod connection;
mod forward;
mod headers;
mod open_call;
mod pool;
mod provider_body;
mod route;
mod shapes;
mod shared;
mod tls;
mod upstream;

pub use callers::{AgentConnection, CallRefusal, Callers, ProviderCall};
pub use shared::ProviderSwitch;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::provider::ModelProvider;
use shared::EndpointParts;

/// How long a client may take to send the head of a request, and to stay without one.
const HEAD_DEADLINE: Duration = Duration::from_secs(60);

/// Bytes of the head of a request, and of what waits in memory of a connection; and the fields of a head.
const LONGEST_HEAD: usize = 32 * 1024;
const MOST_HEADERS: usize = 100;

/// Connections at once; further ones wait until one ends.
const MOST_CONNECTIONS: usize = 4096;

/// How long to rest if no client can be accepted.
const REST: Duration = Duration::from_millis(100);

/// Why there is no endpoint.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The address is reached from elsewhere.
    #[error("{0} is not a loopback address: whoever reaches the endpoint could call models")]
    NotLoopback(SocketAddr),
    /// The address can't be listened on.
    #[error("can't listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// The certificates that are trusted can't be read.
    #[error("{0}")]
    Certificates(String),
}

/// An endpoint that listens, and serves when it runs.
pub struct Endpoint<C: Callers> {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<EndpointParts<C>>,
}

impl<C: Callers> Endpoint<C> {
    /// Listens on a loopback address; its port may be 0.
    pub async fn bind(
        address: SocketAddr,
        providers: Vec<ModelProvider>,
        callers: C,
    ) -> Result<Self, EndpointError> {
        if !address.ip().is_loopback() {
            return Err(EndpointError::NotLoopback(address));
        }
        let shared = Arc::new(EndpointParts::new(providers, callers)?);
        let failed = |error| EndpointError::Listen(address, error);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, shared })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL of a provider here, which stands in for the provider's own.
    pub fn base_url(&self, provider: &str) -> String {
        format!("http://{}/{provider}", self.address)
    }

    /// A handle that exchanges the providers while the endpoint runs.
    pub fn providers(&self) -> ProviderSwitch {
        self.shared.providers.clone()
    }

    /// Serves until it is cancelled. Calls that run then are cut, and counted before it returns.
    pub async fn run(self, cancel: CancellationToken) {
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let tasks = TaskTracker::new();
        let mut id = 0;
        loop {
            let accepted = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (place, self.listener.accept().await)
            };
            let Some((place, accepted)) = cancel.run_until_cancelled(accepted).await else { break };
            let Ok((stream, peer)) = accepted else {
                let _ = cancel.run_until_cancelled(sleep(REST)).await;
                continue;
            };
            if !peer.ip().is_loopback() {
                continue;
            }
            id += 1;
            let from = AgentConnection { id, peer, local: self.address };
            let (shared, cancel) = (Arc::clone(&self.shared), cancel.clone());
            tasks.spawn(async move {
                let _ = cancel.run_until_cancelled(talk(stream, shared, from)).await;
                drop(place);
            });
        }
        tasks.close();
        tasks.wait().await;
    }
}

/// Serves one connection until it ends.
async fn talk<C: Callers>(stream: TcpStream, shared: Arc<EndpointParts<C>>, from: AgentConnection) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(forward::answer(&shared, from, request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_DEADLINE)
        .max_buf_size(LONGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        // A stream that a provider cut ends here too: the agent sees the same.
        tracing::debug!(%error, connection = from.id, "a connection of an agent was cut off");
    }
}

#[cfg(test)]
mod tests;
