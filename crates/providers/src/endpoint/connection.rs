//! Connections to providers. The task that waits for an answer drives its connection. With a task for each of the two,
//! each event of a stream would wake both, and be written by itself.

use std::task::{Context, Poll, Waker};

use eisen_base::task;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, poll_fn};
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::Connection as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::bodies::RequestBody;

/// Bytes of one read from a connection. The head of an answer has to fit.
const BUFFER: usize = 16 * 1024;

/// The bytes from and to a provider.
type ProviderStream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// A connection to a provider.
pub(super) struct ProviderConnection {
    sender: RequestSender,
    /// Reads and writes while it is polled. None: the connection has ended.
    driver: Option<BoxFuture<'static, ()>>,
}

enum RequestSender {
    Http1(http1::SendRequest<RequestBody>),
    Http2(http2::SendRequest<RequestBody>),
}

impl ProviderConnection {
    /// Begins to speak, by the version that was agreed on.
    pub(super) async fn begin(stream: ProviderStream) -> hyper::Result<Self> {
        if stream.connected().is_negotiated_h2() {
            let http2 = http2::Builder::new(TokioExecutor::new());
            let (sender, driver) = http2.handshake(stream).await?;
            return Ok(Self::of(RequestSender::Http2(sender), driver));
        }
        let mut http1 = http1::Builder::new();
        let (sender, driver) = http1.read_buf_exact_size(Some(BUFFER)).handshake(stream).await?;
        Ok(Self::of(RequestSender::Http1(sender), driver))
    }

    fn of(
        sender: RequestSender,
        driver: impl Future<Output = hyper::Result<()>> + Send + 'static,
    ) -> Self {
        let driver = driver.map(|ended| {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection to a provider broke");
            }
        });
        Self { sender, driver: Some(driver.boxed()) }
    }

    /// Gives the connection a task of its own, and has it end with its call. A body that comes from the agent moves on by
    /// it while nobody reads the answer.
    pub(super) fn detach(&mut self) {
        if let Some(driver) = self.driver.take() {
            task::spawn(driver);
        }
    }

    /// Sends a request, and waits for the head of its answer. A request of which nothing was sent comes back, with an
    /// address without its host.
    pub(super) async fn send(
        &mut self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, TrySendError<Request<RequestBody>>> {
        let mut answer = match &mut self.sender {
            RequestSender::Http1(sender) => {
                // The host stands in its header.
                let path = request.uri().path_and_query().cloned();
                let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
                *request.uri_mut() = Uri::from(path);
                sender.try_send_request(request).boxed()
            }
            RequestSender::Http2(sender) => sender.try_send_request(request).boxed(),
        };
        poll_fn(|cx| {
            if let Poll::Ready(answer) = answer.poll_unpin(cx) {
                return Poll::Ready(answer);
            }
            self.drive(cx);
            answer.poll_unpin(cx)
        })
        .await
    }

    /// Reads and writes what can be.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && driver.poll_unpin(cx).is_ready()
        {
            self.driver = None;
        }
    }

    /// Reads what has come, and says whether the connection can take a call. Nobody waits for it: a call that takes it
    /// puts its own waker in.
    pub(super) fn drive_if_free(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        let is_ready = match &self.sender {
            RequestSender::Http1(sender) => sender.is_ready(),
            RequestSender::Http2(sender) => sender.is_ready(),
        };
        self.driver.is_some() && is_ready
    }
}
