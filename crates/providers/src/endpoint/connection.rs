//! Connections to providers. The task that waits for an answer drives its connection. With a task for each of the two,
//! each event of a stream would wake both, and be written by itself.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, poll_fn};
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::Connection as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::bodies::RequestBody;
use super::pool::Place;

/// Bytes of one read from a connection. The head of an answer has to fit.
const BUFFER: usize = 16 * 1024;

/// The bytes from and to a provider.
type ProviderStream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// A connection to a provider.
pub(super) struct Connection {
    sender: Sender,
    /// Reads and writes while it is polled. None: the connection has ended.
    driver: Option<BoxFuture<'static, ()>>,
}

enum Sender {
    Http1(http1::SendRequest<RequestBody>),
    Http2(http2::SendRequest<RequestBody>),
}

impl Connection {
    /// Begins to speak, by the version that was agreed on.
    pub(super) async fn begin(stream: ProviderStream) -> hyper::Result<Self> {
        if stream.connected().is_negotiated_h2() {
            let http2 = http2::Builder::new(TokioExecutor::new());
            let (sender, driver) = http2.handshake(stream).await?;
            return Ok(Self::of(Sender::Http2(sender), driver));
        }
        let mut http1 = http1::Builder::new();
        let (sender, driver) = http1.read_buf_exact_size(Some(BUFFER)).handshake(stream).await?;
        Ok(Self::of(Sender::Http1(sender), driver))
    }

    fn of(
        sender: Sender,
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
            tokio::spawn(driver);
        }
    }

    /// Sends a request, and waits for the head of its answer. A request of which nothing was sent comes back, with an
    /// address without its host.
    pub(super) async fn send(
        &mut self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, TrySendError<Request<RequestBody>>> {
        let mut answer = match &mut self.sender {
            Sender::Http1(sender) => {
                // The host stands in its header.
                let path = request.uri().path_and_query().cloned();
                let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
                *request.uri_mut() = Uri::from(path);
                sender.try_send_request(request).boxed()
            }
            Sender::Http2(sender) => sender.try_send_request(request).boxed(),
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
    fn drive(&mut self, cx: &mut Context<'_>) {
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
            Sender::Http1(sender) => sender.is_ready(),
            Sender::Http2(sender) => sender.is_ready(),
        };
        self.driver.is_some() && is_ready
    }
}

/// The body of a provider's answer, which drives its connection when it is polled. At its end the connection goes back
/// to its place; a body that is dropped before its end closes it.
pub(super) struct ProviderBody {
    body: Incoming,
    connection: Option<Connection>,
    place: Place,
}

impl ProviderBody {
    pub(super) fn new(body: Incoming, connection: Connection, place: Place) -> Self {
        Self { body, connection: Some(connection), place }
    }

    fn give_back(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.place.put(connection);
        }
    }
}

impl Body for ProviderBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut polled = Pin::new(&mut self.body).poll_frame(cx);
        if polled.is_pending()
            && let Some(connection) = &mut self.connection
        {
            connection.drive(cx);
            polled = Pin::new(&mut self.body).poll_frame(cx);
        }
        if let Poll::Ready(None) = polled {
            self.give_back();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        // By HTTP/2 the end may come behind the last byte, and a body whose length is known is not asked for it.
        self.body.is_end_stream() || self.body.size_hint().exact() == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ProviderBody {
    fn drop(&mut self) {
        if self.is_end_stream() {
            self.give_back();
        }
    }
}
