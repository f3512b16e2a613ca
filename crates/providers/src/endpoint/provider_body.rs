//! The body of a provider's answer.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::connection::ProviderConnection;
use super::pool::ConnectionPlace;

/// The body of a provider's answer, which drives its connection when it is polled. At its end the connection goes back
/// to its place; a body that is dropped before its end closes it.
pub(super) struct ProviderBody {
    body: Incoming,
    connection: Option<ProviderConnection>,
    place: ConnectionPlace,
}

impl ProviderBody {
    pub(super) fn new(
        body: Incoming,
        connection: ProviderConnection,
        place: ConnectionPlace,
    ) -> Self {
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
