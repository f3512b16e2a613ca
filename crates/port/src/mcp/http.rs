//! The tools over MCP's streamable HTTP. Each request is served by itself, so nothing is kept between
//! them; a call that reports progress is answered with a stream of events.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::server::ToolServer;
use super::{Audience, Operations, ToolConnection};
use crate::line;

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
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        match Limited::new(body, LONGEST_BODY).collect().await {
            Ok(body) => {
                let body = Bytes::from(line::readable(&body.to_bytes()).into_owned());
                self.0.handle(Request::from_parts(head, Full::new(body))).await
            }
            Err(error) => refused(&*error),
        }
    }
}

/// The answer to a request whose body can't be read.
fn refused(error: &(dyn Error + Send + Sync + 'static)) -> Response<BoxBody<Bytes, Infallible>> {
    let is_too_long = error.is::<LengthLimitError>();
    let status = if is_too_long { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::BAD_REQUEST };
    let why = if is_too_long {
        format!("a request may have at most {LONGEST_BODY} bytes")
    } else {
        error.to_string()
    };
    let mut response = Response::new(Full::from(why).boxed());
    *response.status_mut() = status;
    response
}

impl fmt::Debug for HttpTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpTools")
    }
}
