//! Connects a stream of lines with an agent that runs elsewhere, by ACP's transports over HTTP: requests
//! and server-sent events, or a WebSocket, which pass without being read; or by what OpenCode's server speaks.

mod cause;
mod opencode;

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use agent_client_protocol::{Channel, Client, ConnectTo, RawJsonRpcMessage, TransportFrame};
use agent_client_protocol_http::HttpClient;
use bytes::Bytes;
use futures_util::StreamExt as _;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, Url};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use self::opencode::Server;
use crate::line::{self, LineReader, MAX_LINE};

/// The variable that has the headers for `eisen-core team connect`: a JSON object of strings.
pub const HEADERS: &str = "EISEN_CONNECT_HEADERS";

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A host that answers nothing for about a minute is gone: probes begin after a while of silence, and go
/// unanswered for some time.
const KEEPALIVE: Duration = Duration::from_secs(15);
const UNANSWERED: Duration = Duration::from_secs(45);

/// A server says this if it wants the session of each answer beside it, which the library's client does not send.
const WANTS_SESSION: &str = "Missing Acp-Session-Id";

/// How long the agent has to take what is left for it when its client leaves.
const LAST_WORDS: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    #[error("`{url}` is not the address of an agent: {why}")]
    Address { url: String, why: String },
    #[error("no header can be called or hold what `{0}` does")]
    Header(String),
    #[error("cannot connect to {url}: {why}")]
    Connect { url: String, why: String },
    #[error("the connection to {url} has ended: {why}")]
    Ended { url: String, why: String },
    #[error("cannot read or write a line: {0}")]
    Stream(#[from] std::io::Error),
}

/// An agent elsewhere.
#[derive(Debug)]
pub struct RemoteEnd {
    url: String,
    headers: HeaderMap,
    client: HttpClient,
}

impl RemoteEnd {
    /// `headers` are sent with each request. Does not connect yet.
    pub fn new(url: &str, headers: &BTreeMap<String, String>) -> Result<Self, RemoteError> {
        let sent = sent(headers)?;
        let client = HttpClient::builder_with_endpoint(url)
            .configure_http(|http| configured(http, &sent))
            .build();
        let client = client.map_err(|error| RemoteError::Address {
            url: url.to_owned(),
            why: cause::of(&error),
        })?;
        Ok(Self { url: url.to_owned(), headers: sent, client })
    }

    /// Passes lines on in both directions until `input` ends, which is the orderly end, or the agent
    /// does.
    pub async fn connect(
        self,
        input: impl AsyncRead + Unpin,
        mut output: impl AsyncWrite + Unpin,
    ) -> Result<(), RemoteError> {
        let Self { url, headers, client } = self;
        let (channel, driver) = ConnectTo::<Client>::into_channel_and_future(client);
        let Channel { mut rx, tx, .. } = channel;
        let Some(driver) = driver else {
            return Err(RemoteError::Ended { url, why: "it has no transport".to_owned() });
        };
        let mut driver = pin!(driver);
        let mut lines = LineReader::new(input, MAX_LINE);
        let mut is_connected = false;
        let ended = loop {
            tokio::select! {
                biased;
                frame = rx.next() => {
                    // Without frames the driver says why.
                    let Some(frame) = frame else { break (&mut driver).await };
                    is_connected = true;
                    output.write_all(&line_of(frame)).await?;
                    output.flush().await?;
                }
                ended = &mut driver => break ended,
                line = lines.next_whole() => {
                    let Some(line) = line? else {
                        // What was said before is still sent.
                        if driver.request_finish() {
                            let _ = timeout(LAST_WORDS, &mut driver).await;
                        }
                        return Ok(());
                    };
                    if let Some(message) = message(&line)
                        && tx.unbounded_send(TransportFrame::Single(message)).is_err()
                    {
                        break (&mut driver).await;
                    }
                }
            }
        };
        // What it said before it ended may have come at the same moment.
        while let Ok(frame) = rx.try_recv() {
            is_connected = true;
            output.write_all(&line_of(frame)).await?;
        }
        output.flush().await?;
        let why = ended.map_or_else(|error| said(&error), |()| "the agent closed it".to_owned());
        if is_connected {
            return Err(RemoteError::Ended { url, why });
        }
        let why = cause::find(&url, |http| configured(http, &headers)).await.unwrap_or(why);
        Err(RemoteError::Connect { url, why })
    }
}

/// An agent that is OpenCode's own server.
#[derive(Debug)]
pub struct OpenCodeEnd {
    server: Server,
}

impl OpenCodeEnd {
    /// `headers` are sent with each request. Does not connect yet.
    pub fn new(url: &str, headers: &BTreeMap<String, String>) -> Result<Self, RemoteError> {
        let address = |why: String| RemoteError::Address { url: url.to_owned(), why };
        let parsed = Url::parse(url).map_err(|error| address(error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.query().is_some() {
            return Err(address("it is no base address of http:// or https://".to_owned()));
        }
        let http = configured(reqwest::Client::builder(), &sent(headers)?).build();
        let http = http.map_err(|error| address(cause::of(&error)))?;
        Ok(Self { server: Server::new(url, http) })
    }

    /// Is the agent until `input` ends, which is the orderly end, or the server is gone.
    pub async fn connect(
        self,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin,
    ) -> Result<(), RemoteError> {
        self.server.connect(input, output).await
    }
}

fn sent(headers: &BTreeMap<String, String>) -> Result<HeaderMap, RemoteError> {
    let mut sent = HeaderMap::new();
    for (name, value) in headers {
        let wrong = || RemoteError::Header(name.clone());
        let (key, mut value) = (
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?,
            HeaderValue::from_str(value).map_err(|_| wrong())?,
        );
        value.set_sensitive(true);
        sent.insert(key, value);
    }
    Ok(sent)
}

fn configured(http: ClientBuilder, headers: &HeaderMap) -> ClientBuilder {
    // Headers are for this host only.
    http.redirect(Policy::none())
        .default_headers(headers.clone())
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(KEEPALIVE)
        .tcp_keepalive_interval(KEEPALIVE)
        .tcp_user_timeout(UNANSWERED)
}

/// A line that is no message is not sent: the agent would end the connection.
fn message(line: &Bytes) -> Option<RawJsonRpcMessage> {
    let read = serde_json::from_slice(line).or_else(|_| line::read(line));
    read.inspect_err(|error| tracing::warn!(%error, "a line that is no message is left out")).ok()
}

fn line_of(frame: TransportFrame) -> Vec<u8> {
    let text = match frame {
        TransportFrame::Single(message) => serde_json::to_string(&message).unwrap_or_default(),
        // Whoever reads it says what is wrong with it.
        TransportFrame::Malformed { raw, .. } => raw.replace(['\n', '\r'], " "),
        _ => String::new(),
    };
    let mut line = text.into_bytes();
    line.push(b'\n');
    line
}

/// An error of the transport, in one line.
fn said(error: &agent_client_protocol::Error) -> String {
    let why = match &error.data {
        Some(serde_json::Value::String(why)) => why.clone(),
        Some(data) => format!("{}: {data}", error.message),
        None => error.message.clone(),
    };
    if why.contains(WANTS_SESSION) {
        return format!(
            "{why}; this server takes answers by a WebSocket only: give `ws://` or `wss://`"
        );
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_takes_no_answers_by_http_is_to_be_asked_by_a_websocket() {
        let failed = |why: &str| said(&agent_client_protocol::Error::internal_error().data(why));
        assert_eq!(failed("POST: timed out"), "POST: timed out");
        let why = failed("POST: HTTP 400 Bad Request: Missing Acp-Session-Id");
        assert!(why.ends_with("by a WebSocket only: give `ws://` or `wss://`"), "{why}");
    }
}
