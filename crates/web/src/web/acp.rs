//! `/acp`: the team as one ACP agent, as the protocol's HTTP transport has it: requests with server-sent
//! events, or a WebSocket.

mod connection;
mod message;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, UPGRADE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::time::timeout;

use self::connection::{AcpConnection, AcpConnections};
use self::message::AcpEnvelope;
use super::connection::WebConnection;
use super::credential::{Credential, Secret};
use super::guard::Program;
use super::served::Served;
use super::socket;
use super::upgrade::WebSocketUpgrade;
use crate::line::MAX_LINE;

/// Names the connection that an `initialize` opened.
const CONNECTION: HeaderName = HeaderName::from_static("acp-connection-id");

/// Names a session of it.
const SESSION: HeaderName = HeaderName::from_static("acp-session-id");

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// How long a client may take to send a message.
const BODY_DEADLINE: Duration = Duration::from_secs(60);

/// Why a request is refused.
type AcpRefusal = (StatusCode, &'static str);

const NO_ROOM: AcpRefusal =
    (StatusCode::SERVICE_UNAVAILABLE, "the gateway has no room for one more client");

pub(super) fn routes() -> MethodRouter<Arc<Served>> {
    let connections = Arc::new(AcpConnections::default());
    get(receive).post(send).delete(leave).layer(Extension(connections))
}

/// Takes a message of a client; an `initialize` opens a connection.
async fn send(
    State(served): State<Arc<Served>>,
    Program(credential): Program,
    Extension(connections): Extension<Arc<AcpConnections>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, AcpRefusal> {
    let kind = text(&headers, &CONTENT_TYPE).and_then(|it| it.split(';').next());
    if !kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(JSON)) {
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "a message is `application/json`"));
    }
    let line = one_line(&read(body).await?);
    let envelope = match AcpEnvelope::read(&line) {
        Ok(envelope) => envelope,
        Err(answer) => {
            return Ok((StatusCode::BAD_REQUEST, [(CONTENT_TYPE, JSON)], answer).into_response());
        }
    };
    if envelope.is_request("initialize") {
        return open(&served, &credential, &connections, line).await;
    }
    let connection = find(&connections, &headers, &credential)?;
    let _use = connection.keep();
    let named = text(&headers, &SESSION);
    if let (Some(named), Some(session)) = (named, envelope.session())
        && named != session
    {
        return Err((
            StatusCode::BAD_REQUEST,
            "`Acp-Session-Id` is not the `sessionId` of `params`",
        ));
    }
    connection.expects(&envelope);
    if connection.send(line).await {
        Ok(StatusCode::ACCEPTED.into_response())
    } else {
        Err(UNKNOWN)
    }
}

const UNKNOWN: AcpRefusal = (StatusCode::NOT_FOUND, "there is no such connection");

/// Opens a connection, with a client's `initialize`.
async fn open(
    served: &Served,
    credential: &Credential,
    connections: &Arc<AcpConnections>,
    line: Bytes,
) -> Result<Response, AcpRefusal> {
    let agent = served.gateway.open_agent().ok_or(NO_ROOM)?;
    let (id, connection, answer) = connections
        .open(agent, credential)
        .map_err(|_| (StatusCode::INTERNAL_SERVER_ERROR, "the system has no random numbers"))?;
    let _use = connection.keep();
    // A client that does not wait for the answer knows no connection.
    let unknown = connection.cut().drop_guard();
    connection.send(line).await;
    let answer = answer.await.map_err(|_| NO_ROOM)?;
    let is_opened = AcpEnvelope::read(&answer).is_ok_and(|it| !it.is_failure());
    let mut response = ([(CONTENT_TYPE, JSON)], answer).into_response();
    if is_opened {
        unknown.disarm();
        set(&mut response, CONNECTION, &id);
    }
    Ok(response)
}

/// Opens a stream of events, or a WebSocket.
async fn receive(
    State(served): State<Arc<Served>>,
    Program(credential): Program,
    Extension(connections): Extension<Arc<AcpConnections>>,
    Extension(web): Extension<WebConnection>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, <WebSocketUpgrade as FromRequestParts<()>>::Rejection>,
) -> Result<Response, AcpRefusal> {
    let is_socket = text(&headers, &UPGRADE).is_some_and(|it| it.eq_ignore_ascii_case("websocket"));
    match upgrade {
        Ok(upgrade) => web_socket(&served, credential, web, upgrade),
        Err(refused) if is_socket => Ok(refused.into_response()),
        Err(_) => events(&connections, &headers, &credential),
    }
}

fn web_socket(
    served: &Served,
    credential: Credential,
    web: WebConnection,
    upgrade: WebSocketUpgrade,
) -> Result<Response, AcpRefusal> {
    let agent = served.gateway.open_agent().ok_or(NO_ROOM)?;
    let mut response = upgrade
        .serve(MAX_LINE, move |socket| socket::serve(socket, agent, credential.revoked, web));
    // The protocol has one here, too. It names nothing.
    if let Ok(id) = Secret::generate() {
        set(&mut response, CONNECTION, &id.into_text());
    }
    Ok(response)
}

/// Streams what is for a session, or for none.
fn events(
    connections: &AcpConnections,
    headers: &HeaderMap,
    credential: &Credential,
) -> Result<Response, AcpRefusal> {
    if !text(headers, &ACCEPT).is_some_and(|it| it.contains(EVENTS) || it.contains("*/*")) {
        return Err((StatusCode::NOT_ACCEPTABLE, "the answer is `text/event-stream`"));
    }
    let connection = find(connections, headers, credential)?;
    let session = text(headers, &SESSION);
    let lease = connection.listen(session);
    let lease = lease.ok_or((StatusCode::CONFLICT, "another request reads this stream"))?;
    let mut response = Body::from_stream(connection.events(lease)).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    for (name, value) in [(CONNECTION, text(headers, &CONNECTION)), (SESSION, session)] {
        if let Some(value) = value {
            set(&mut response, name, value);
        }
    }
    Ok(response)
}

/// Ends a connection.
async fn leave(
    Program(credential): Program,
    Extension(connections): Extension<Arc<AcpConnections>>,
    headers: HeaderMap,
) -> Result<StatusCode, AcpRefusal> {
    let connection = find(&connections, &headers, &credential)?;
    connections.forget(&connection);
    connection.cut().cancel();
    Ok(StatusCode::ACCEPTED)
}

/// The connection that a request names; it is its credential's.
fn find(
    connections: &AcpConnections,
    headers: &HeaderMap,
    credential: &Credential,
) -> Result<Arc<AcpConnection>, AcpRefusal> {
    let id = text(headers, &CONNECTION);
    let id = id.ok_or((
        StatusCode::BAD_REQUEST,
        "this takes the `Acp-Connection-Id` that came with the answer to `initialize`",
    ))?;
    connections.find(id, credential).ok_or(UNKNOWN)
}

/// Reads a message, within bounds.
async fn read(body: Body) -> Result<Bytes, AcpRefusal> {
    let read = timeout(BODY_DEADLINE, Limited::new(body, MAX_LINE).collect()).await;
    let late = (StatusCode::REQUEST_TIMEOUT, "the message took too long");
    let read = read.map_err(|_| late)?.map_err(|error| {
        if error.is::<LengthLimitError>() {
            (StatusCode::PAYLOAD_TOO_LARGE, "the message is too long")
        } else {
            (StatusCode::BAD_REQUEST, "the message is torn")
        }
    });
    read.map(http_body_util::Collected::to_bytes)
}

/// A message as a line: what JSON says stays the same.
fn one_line(message: &Bytes) -> Bytes {
    let mut line = message.to_vec();
    for byte in &mut line {
        if *byte == b'\n' || *byte == b'\r' {
            *byte = b' ';
        }
    }
    line.push(b'\n');
    line.into()
}

/// The text of a header.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
