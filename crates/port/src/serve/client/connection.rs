//! Owns a connection of the command line to a team: authenticates, sends requests and reads lines.

use std::time::Duration;

use bytes::BytesMut;
use eisen_base::task;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::answer::{MethodAnswer, PreparedCall};
use super::{ClientError, Target};
use crate::line::{Line, LineReader};
use crate::serve::token;
use crate::tokens;
use crate::wire::Method;

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// Longest accepted line, enough for a large team's map and each answer; longer ones are skipped.
const LONGEST_LINE: usize = 256 << 20;

/// A connection that the team has accepted our token on. Dropping it withdraws its queued prompts.
pub struct Connection {
    lines: LineReader<OwnedReadHalf>,
    /// To the writing task, so that a large request and a large snapshot don't block each other. It
    /// holds only our own few requests.
    requests: mpsc::UnboundedSender<String>,
    writer: AbortOnDropHandle<OwnedWriteHalf>,
    last_id: u64,
}

/// A line of the server, with the fields that the command line uses.
#[derive(Clone, PartialEq, Debug)]
pub enum Message {
    /// The answer to the request with this id.
    Answer {
        id: u64,
        outcome: Result<Value, Refusal>,
    },
    /// Progress of a prompt's turn: it began (no text), or the agent wrote text.
    Progress {
        id: u64,
        session: String,
        text: String,
    },
    /// A blocked access with the fields of the wire.
    Blocked(Value),
    /// A turn ended.
    Turn {
        agent: String,
        session: String,
        turn: u64,
    },
    /// An agent or a usage changed.
    Changed,
    /// Lines were missed; the state follows, without the history.
    Lagged,
    Other,
}

/// The error of a refused request.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Refusal {
    pub code: u16,
    pub message: String,
}

impl From<Refusal> for ClientError {
    fn from(Refusal { code, message }: Refusal) -> Self {
        Self::Refused { code, message }
    }
}

impl Connection {
    pub async fn open(target: &Target) -> Result<Self, ClientError> {
        let mut connection = Self::start(target).await?;
        connection.show(target).await?;
        Ok(connection)
    }

    async fn start(target: &Target) -> Result<Self, ClientError> {
        let (read, write) = connect(target).await?.into_split();
        let (requests, queue) = mpsc::unbounded_channel();
        let writer = AbortOnDropHandle::new(task::spawn(write_all(write, queue)));
        let lines = LineReader::new(read, LONGEST_LINE);
        Ok(Self { lines, requests, writer, last_id: 0 })
    }

    /// Connects to the tools of the team: the connection then carries MCP.
    pub(super) async fn open_tools(target: &Target) -> Result<Self, ClientError> {
        let mut connection = Self::start(target).await?;
        let proof = connection.prove(target).await?;
        connection.write(&json!({ "type": "tools", "proof": proof }));
        connection.accepted().await?;
        Ok(connection)
    }

    /// Authenticates. The token itself is sent only to a team without challenges.
    async fn show(&mut self, target: &Target) -> Result<(), ClientError> {
        let shown = if target.proves {
            json!({ "type": "auth", "proof": self.prove(target).await? })
        } else {
            json!({ "type": "auth", "token": target.token })
        };
        self.write(&shown);
        self.accepted().await.map(drop)
    }

    /// Returns the proof of the token.
    async fn prove(&mut self, target: &Target) -> Result<String, ClientError> {
        #[derive(Default, Deserialize)]
        struct Challenge {
            challenge: String,
        }
        self.write(&json!({ "type": "auth_challenge" }));
        let answer = self.accepted().await?;
        let Success { result } = serde_json::from_slice(&answer).map_err(|e| nonsense(&e))?;
        let Challenge { challenge } = serde_json::from_value(result).unwrap_or_default();
        Ok(token::proof(&tokens::proving(&target.token), &challenge))
    }

    /// Waits for the answer to a line without id. Skipped lines can be requested again.
    async fn accepted(&mut self) -> Result<bytes::Bytes, ClientError> {
        loop {
            match self.read().await? {
                (MessageHead { id: None, kind }, line) if kind == "rpc_result" => return Ok(line),
                // An error without an id is about the connection or the token.
                (MessageHead { id: None, kind }, line) if kind == "rpc_error" => {
                    return Err(refusal(&line).into());
                }
                _ => {}
            }
        }
    }

    /// Sends a request; returns its id.
    pub fn send<M: Method>(&mut self, params: &M::Params) -> u64 {
        self.send_named(M::FACTS.name, None, params)
    }

    /// Sends a request that was prepared; returns its id.
    pub fn send_prepared(&mut self, call: &PreparedCall) -> u64 {
        self.send_named(call.method, None, &call.params)
    }

    /// Sends a request of the method with this name, at a hub to the team of a host.
    fn send_named(&mut self, method: &str, host: Option<&str>, params: &impl Serialize) -> u64 {
        self.last_id += 1;
        let params = RequestParams { params, host };
        self.write(&RequestLine { kind: "rpc", id: self.last_id, method, params });
        self.last_id
    }

    /// Calls a method and waits for its result without a deadline. Other lines are skipped.
    pub async fn call<M: Method>(
        &mut self,
        params: &M::Params,
    ) -> Result<M::Result<'static>, ClientError>
    where
        M::Result<'static>: DeserializeOwned,
    {
        self.ask::<M>(params).await?.read()
    }

    /// Calls a method likewise; returns the answer as it came.
    pub async fn ask<M: Method>(
        &mut self,
        params: &M::Params,
    ) -> Result<MethodAnswer<M>, ClientError> {
        self.ask_at::<M>(None, params).await
    }

    /// Calls a method likewise, at a hub for the team of a host.
    pub async fn ask_at<M: Method>(
        &mut self,
        host: Option<&str>,
        params: &M::Params,
    ) -> Result<MethodAnswer<M>, ClientError> {
        let sent = self.send_named(M::FACTS.name, host, params);
        loop {
            if let Message::Answer { id, outcome } = self.next().await?
                && id == sent
            {
                return Ok(MethodAnswer::new(outcome?));
            }
        }
    }

    /// Subscribes to topics that are off by default. There is no answer.
    pub fn subscribe(&self, topics: &[&str]) {
        self.write(&json!({ "type": "subscribe", "topics": topics }));
    }

    /// Asks for the maps of all sessions; they come as lines.
    pub fn request_snapshots(&self) {
        self.write(&json!({ "type": "request_snapshot" }));
    }

    /// Returns the next line and its type. Cancel-safe.
    pub async fn next_line(&mut self) -> Result<(String, bytes::Bytes), ClientError> {
        self.read().await.map(|(head, line)| (head.kind, line))
    }

    /// Returns both ends and the bytes already read, for a connection that changes its protocol.
    pub(super) async fn into_ends(
        self,
    ) -> Result<(BytesMut, OwnedReadHalf, OwnedWriteHalf), ClientError> {
        drop(self.requests);
        let write = self.writer.await.map_err(|_| ClientError::Closed)?;
        let (rest, read) = self.lines.into_rest();
        Ok((rest, read, write))
    }

    /// Returns the next message. Cancel-safe.
    pub async fn next(&mut self) -> Result<Message, ClientError> {
        let (MessageHead { id, kind }, line) = self.read().await?;
        let id = id.and_then(|id| id.get().parse().ok());
        Ok(match (kind.as_str(), id) {
            ("rpc_result", Some(id)) => {
                let outcome = serde_json::from_slice::<Success>(&line).map(|line| line.result);
                Message::Answer { id, outcome: outcome.map_err(|error| nonsense(&error)) }
            }
            ("rpc_error", Some(id)) => Message::Answer { id, outcome: Err(refusal(&line)) },
            ("rpc_error", None) => return Err(refusal(&line).into()),
            ("rpc_progress", Some(id)) => match serde_json::from_slice(&line) {
                Ok(Progress { session_id, text }) => {
                    Message::Progress { id, session: session_id, text }
                }
                Err(_) => Message::Other,
            },
            ("blocked", _) => match serde_json::from_slice::<Map<String, Value>>(&line) {
                Ok(mut access) => {
                    // As in `list_blocked`.
                    access.shift_remove("type");
                    Message::Blocked(access.into())
                }
                Err(_) => Message::Other,
            },
            ("turn", _) => match serde_json::from_slice(&line) {
                Ok(TurnLine { agent_id, session_id, turn }) => {
                    Message::Turn { agent: agent_id, session: session_id, turn }
                }
                Err(_) => Message::Other,
            },
            ("agent" | "usage", _) => Message::Changed,
            ("lagged", _) => Message::Lagged,
            _ => Message::Other,
        })
    }

    /// Returns the next line with a type; skips others, which come from another version.
    async fn read(&mut self) -> Result<(MessageHead, bytes::Bytes), ClientError> {
        loop {
            match self.lines.next().await.map_err(ClientError::Broken)? {
                Line::Whole(line) => {
                    if let Ok(head) = serde_json::from_slice(&line) {
                        return Ok((head, line));
                    }
                }
                Line::TooLong(_) => {}
                Line::End => return Err(ClientError::Closed),
            }
        }
    }

    fn write(&self, message: &impl Serialize) {
        // Our own lines can be written. If the writing task has ended, so does the reading.
        let line = serde_json::to_string(message).unwrap_or_default();
        let _ = self.requests.send(line + "\n");
    }
}

#[derive(Serialize)]
struct RequestLine<'a, P> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: u64,
    method: &'a str,
    params: RequestParams<'a, P>,
}

#[derive(Serialize)]
struct RequestParams<'a, P> {
    #[serde(flatten)]
    params: &'a P,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
}

/// Writes until the channel closes, and returns the socket.
async fn write_all(
    mut socket: OwnedWriteHalf,
    mut waiting: mpsc::UnboundedReceiver<String>,
) -> OwnedWriteHalf {
    while let Some(line) = waiting.recv().await {
        if socket.write_all(line.as_bytes()).await.is_err() {
            break;
        }
    }
    socket
}

async fn connect(target: &Target) -> Result<TcpStream, ClientError> {
    let mut first = None;
    for &address in &target.addresses {
        let cause = match timeout(CONNECT_DEADLINE, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(cause)) => cause,
            Err(elapsed) => elapsed.into(),
        };
        first.get_or_insert(ClientError::Connect { address, cause });
    }
    Err(first.unwrap_or(ClientError::NoTeam))
}

/// The fields read of each line; the rest is skipped.
#[derive(Deserialize)]
struct MessageHead {
    #[serde(rename = "type")]
    kind: String,
    id: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Success {
    result: Value,
}

#[derive(Deserialize)]
struct FailedAnswer {
    error: Refusal,
}

#[derive(Deserialize)]
struct Progress {
    session_id: String,
    text: String,
}

#[derive(Deserialize)]
struct TurnLine {
    agent_id: String,
    session_id: String,
    turn: u64,
}

/// Reads a line of the type `rpc_error`.
pub fn refusal(line: &[u8]) -> Refusal {
    serde_json::from_slice(line)
        .map_or_else(|error| nonsense(&error), |FailedAnswer { error }| error)
}

fn nonsense(error: &serde_json::Error) -> Refusal {
    Refusal { code: 500, message: format!("the team's answer can't be read: {error}") }
}
