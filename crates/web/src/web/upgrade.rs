//! Opens a WebSocket: agrees on it with a client, and takes the connection over.

use std::future::Future;

use async_tungstenite::tokio::TokioAdapter;
use async_tungstenite::tungstenite::handshake::server::create_response_with_body;
use async_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use async_tungstenite::{WebSocketReceiver, WebSocketSender, WebSocketStream};
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::Response;
use eisen_base::task;
use http::request::Parts;
use http::{Request, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;

type Connection = TokioAdapter<TokioIo<Upgraded>>;

pub(super) type WebSocket = WebSocketStream<Connection>;
pub(super) type SocketSender = WebSocketSender<Connection>;
pub(super) type SocketReceiver = WebSocketReceiver<Connection>;

/// A client that wants a WebSocket, and the answer that agrees.
pub(super) struct WebSocketUpgrade {
    answer: Response,
    connection: OnUpgrade,
}

impl<S: Sync> FromRequestParts<S> for WebSocketUpgrade {
    type Rejection = (StatusCode, String);

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let mut request = Request::new(());
        request.method_mut().clone_from(&parts.method);
        request.headers_mut().clone_from(&parts.headers);
        *request.version_mut() = parts.version;
        let answer = create_response_with_body(&request, Body::empty);
        let answer = answer.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
        let connection = parts.extensions.remove::<OnUpgrade>().ok_or_else(|| {
            (StatusCode::UPGRADE_REQUIRED, "this connection carries no WebSocket".to_owned())
        })?;
        Ok(Self { answer, connection })
    }
}

impl WebSocketUpgrade {
    /// Agrees, and serves the WebSocket, whose messages have so many bytes at most.
    pub(super) fn serve<F: Future<Output = ()> + Send + 'static>(
        self,
        longest: usize,
        serve: impl FnOnce(WebSocket) -> F + Send + 'static,
    ) -> Response {
        let Self { answer, connection } = self;
        let config = WebSocketConfig::default();
        let config = config.max_message_size(Some(longest)).max_frame_size(Some(longest));
        task::spawn(async move {
            // A client that leaves before it has the answer gets no WebSocket.
            let Ok(connection) = connection.await else { return };
            let stream = TokioAdapter::new(TokioIo::new(connection));
            serve(WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await).await;
        });
        answer
    }
}
