//! The listener of the web server, and its connections.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use eisen_base::task;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
#[cfg(target_os = "linux")]
use nix::sys::socket::{setsockopt, sockopt::TcpUserTimeout};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use super::bounded_writes::BoundedWrites;
use super::connection::{Connections, WebConnection};
use super::routes;
use super::served::Served;
use super::tls::{self, TlsError};

/// How long a client may take to send the head of a request, to stay without one, and to agree on
/// keys.
const HEAD_DEADLINE: Duration = Duration::from_secs(60);
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long what was sent may stay without a sign from the other machine, in milliseconds: one that is gone
/// would else keep a stream of events for a quarter of an hour.
#[cfg(target_os = "linux")]
const ACK_DEADLINE_MS: u32 = 90_000;

/// Bytes of the head of a request, and its fields.
const LONGEST_HEAD: usize = 64 * 1024;
const MOST_HEADERS: usize = 64;

/// How long to rest if no client can be accepted.
const REST: Duration = Duration::from_millis(100);

/// The web server of a team.
pub struct WebServer {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    trusted_proxy: Option<IpAddr>,
    router: Router,
    /// Cancelled when the team ends.
    cancel: CancellationToken,
}

impl WebServer {
    /// Serves all routes.
    pub fn new(listener: TcpListener, served: Served) -> Self {
        let cancel = served.cancel.clone();
        let router = routes::router(&Arc::new(served));
        Self { listener, tls: None, trusted_proxy: None, router, cancel }
    }

    /// Serves the gateway alone.
    pub fn of_gateway(listener: TcpListener, served: Served) -> Self {
        let cancel = served.cancel.clone();
        let router = routes::of_gateway(&Arc::new(served));
        Self { listener, tls: None, trusted_proxy: None, router, cancel }
    }

    /// Serves by TLS, with certificates and a key in PEM.
    pub fn with_tls(self, cert: &Path, key: &Path) -> Result<Self, TlsError> {
        Ok(Self { tls: Some(tls::acceptor(cert, key)?), ..self })
    }

    /// Serves only what connects from this address.
    #[must_use]
    pub fn behind(self, trusted_proxy: Option<IpAddr>) -> Self {
        Self { trusted_proxy, ..self }
    }

    /// Serves until the team ends.
    pub async fn run(self) {
        let connections = Connections::default();
        loop {
            let accepted = tokio::select! {
                () = self.cancel.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            let Ok((stream, peer)) = accepted else {
                sleep(REST).await;
                continue;
            };
            if self.trusted_proxy.is_some_and(|proxy| proxy != peer.ip().to_canonical()) {
                tracing::debug!(%peer, "a client of the web page is not the trusted proxy");
                continue;
            }
            let _ = stream.set_nodelay(true);
            #[cfg(target_os = "linux")]
            let _ = setsockopt(&stream, TcpUserTimeout, &ACK_DEADLINE_MS);
            let connection = connections.add(self.cancel.child_token());
            task::spawn(connect(stream, self.tls.clone(), self.router.clone(), connection));
        }
    }
}

/// Serves one connection until it ends, or is closed.
async fn connect(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    router: Router,
    connection: WebConnection,
) {
    let known = connection.clone();
    let serving = async {
        match tls {
            None => talk(stream, router, known).await,
            Some(tls) => match timeout(HANDSHAKE, tls.accept(stream)).await {
                Ok(Ok(stream)) => talk(stream, router, known).await,
                Ok(Err(error)) => tracing::debug!(%error, "no TLS with a client of the web page"),
                Err(_) => {
                    tracing::debug!("a client of the web page took too long to agree on keys");
                }
            },
        }
    };
    connection.run(serving).await;
}

async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    connection: WebConnection,
) {
    let stream = BoundedWrites::new(stream, connection.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(connection.clone());
        router.clone().call(request)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_DEADLINE)
        .max_buf_size(LONGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a client of the web page was cut off");
    }
}

#[cfg(test)]
mod tests;
