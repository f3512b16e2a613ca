//! The client towards providers: HTTP/1.1, by TLS where the address says so. It follows no redirects, knows no
//! proxies, and adds no headers.

use std::error::Error;
use std::iter::successors;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::timeout;

use super::EndpointError;
use super::bodies::RequestBody;
use super::shapes::OwnAnswer;
use super::tls;
use crate::counting::CallEnd;

/// How long a connection may take, and an answer. Providers think for minutes; agents wait less.
const CONNECT: Duration = Duration::from_secs(15);
const HEAD: Duration = Duration::from_secs(30 * 60);

/// Connections that are kept for later calls, of each provider, and for how long.
const MOST_IDLE: usize = 64;
const IDLE: Duration = Duration::from_secs(50);

/// Bytes that are read of a connection at once. A head has to fit.
const BUFFER: usize = 16 * 1024;

/// The client.
pub(super) struct Upstream(Client<HttpsConnector<HttpConnector>, RequestBody>);

/// A call without an answer.
pub(super) struct NoAnswer {
    pub(super) answer: OwnAnswer,
    pub(super) end: CallEnd,
}

impl Upstream {
    pub(super) fn new() -> Result<Self, EndpointError> {
        let tls = tls::config()?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        // HTTP/2 would put all calls of a provider on one connection: those past its number of streams would wait
        // for whole answers, and all would break together.
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MOST_IDLE)
            .http1_read_buf_exact_size(BUFFER)
            .set_host(false)
            .build(connector);
        Ok(Self(client))
    }

    /// Sends a request once, and waits for the head of its answer.
    pub(super) async fn send(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, NoAnswer> {
        let failed = |why, end| NoAnswer { answer: OwnAnswer::Away(why), end };
        let Ok(answer) = timeout(HEAD, self.0.request(request)).await else {
            let why = "eisen-core: the provider did not answer within 30 minutes";
            return Err(failed(why, CallEnd::Unanswered));
        };
        answer.map_err(|error| {
            let texts = successors(error.source(), |error| (*error).source());
            let texts: Vec<_> = texts.map(ToString::to_string).collect();
            tracing::debug!(why = texts.last(), "a provider did not answer");
            let is_distrusted = texts.iter().any(|text| text.contains("invalid peer certificate"));
            if is_distrusted {
                let why = "eisen-core: the provider's certificate is not trusted";
                failed(why, CallEnd::Unsent)
            } else if error.is_connect() {
                failed("eisen-core: the provider can't be reached", CallEnd::Unsent)
            } else {
                let why = "eisen-core: the connection to the provider ended before an answer";
                failed(why, CallEnd::Unanswered)
            }
        })
    }
}
