//! The tools over MCP's streamable HTTP. Each request is served by itself, so nothing is kept between
//! them; a call that reports progress is answered with a stream of events.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::combinators::BoxBody;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::server::ToolServer;
use super::{Audience, Operations, ToolConnection};

/// Bytes of a request's body.
const LONGEST_BODY: usize = 4 * 1024 * 1024;

/// The tools for one user.
pub struct HttpTools(StreamableHttpService<ToolServer, NeverSessionManager>);

impl HttpTools {
    /// Serves the tools for `audience`, until `cancel`.
    pub fn new(
        audience: Audience,
        operations: impl Operations,
        connection: ToolConnection,
        cancel: CancellationToken,
    ) -> Self {
        let server = ToolServer::new(audience, operations, connection);
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            // No web page has business here.
            .enforce_origin_validation()
            .with_max_request_body_bytes(LONGEST_BODY)
            .with_cancellation_token(cancel);
        let sessions = Arc::new(NeverSessionManager::default());
        Self(StreamableHttpService::new(move || Ok(server.clone()), sessions, config))
    }

    /// Answers one request.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<BoxBody<Bytes, Infallible>>
    where
        B: Body + Send + 'static,
        B::Error: fmt::Display,
    {
        self.0.handle(request).await
    }
}

impl fmt::Debug for HttpTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpTools")
    }
}
