use std::time::Duration;

use bytes::BytesMut;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::{ClientError, Target};
use crate::serve::lines::{Line, LineSplitter};
use crate::serve::token;

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// Longest line that is taken in: room for the map of a large team and for every answer. A longer
/// one is passed over.
const LONGEST_LINE: usize = 256 << 20;

/// A connection to a team that has taken our token. Dropping it withdraws the prompts that it queued.
pub struct Connection {
    lines: LineSplitter<OwnedReadHalf>,
    /// To the task that writes, so that a large request and a large snapshot never wait for each
    /// other. What waits there are our own few requests.
    requests: mpsc::UnboundedSender<String>,
    writer: AbortOnDropHandle<OwnedWriteHalf>,
    last_id: u64,
}

/// A line of the server, as far as the command line cares for it.
#[derive(Clone, PartialEq, Debug)]
pub enum Message {
    /// The answer to the request with this id.
    Answer {
        id: u64,
        outcome: Result<Value, Refusal>,
    },
    /// A prompt's turn as it goes: it began (no text), or the agent said something.
    Progress {
        id: u64,
        session: String,
        text: String,
    },
    /// A blocked access as it stands now, with the fields of the wire.
    Blocked(Value),
    /// A turn ended.
    Turn {
        agent: String,
        session: String,
    },
    /// An agent or a usage changed.
    Changed,
    /// Lines were missed; the whole state follows, as far as it is not only history.
    Lagged,
    Other,
}

/// Why a request was turned down.
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
        let (read, write) = connect(target).await?.into_split();
        let (requests, queue) = mpsc::unbounded_channel();
        let writer = AbortOnDropHandle::new(tokio::spawn(write_all(write, queue)));
        let lines = LineSplitter::new(read, LONGEST_LINE);
        let mut connection = Self { lines, requests, writer, last_id: 0 };
        connection.show(target).await?;
        Ok(connection)
    }

    /// Shows whose connection it is; the token itself only to a team that knows no better.
    async fn show(&mut self, target: &Target) -> Result<(), ClientError> {
        let shown = if target.proves {
            self.write(&json!({ "type": "auth_challenge" }));
            let answer = self.accepted().await?;
            let Success { result } = serde_json::from_slice(&answer).map_err(|e| nonsense(&e))?;
            let challenge = result["challenge"].as_str().unwrap_or_default();
            json!({ "type": "auth", "proof": token::proof(&target.token, challenge) })
        } else {
            json!({ "type": "auth", "token": target.token })
        };
        self.write(&shown);
        self.accepted().await.map(drop)
    }

    /// Waits for the answer to what has no id. The stream up to there tells nothing that can't be
    /// asked for again.
    async fn accepted(&mut self) -> Result<bytes::Bytes, ClientError> {
        loop {
            match self.read().await? {
                (Head { id: None, kind }, line) if kind == "rpc_result" => return Ok(line),
                // One without an id is about the connection or the token.
                (Head { id: None, kind }, line) if kind == "rpc_error" => {
                    return Err(refusal(&line).into());
                }
                _ => {}
            }
        }
    }

    /// Sends a request; returns the id that its answer will have.
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&json!({ "type": "rpc", "id": id, "method": method, "params": params }));
        id
    }

    /// Sends a request and waits for its answer, however long that takes. Other lines that come
    /// meanwhile are passed over.
    pub async fn call(&mut self, method: &str, params: &Value) -> Result<Value, ClientError> {
        let sent = self.send(method, params);
        loop {
            if let Message::Answer { id, outcome } = self.next().await?
                && id == sent
            {
                return Ok(outcome?);
            }
        }
    }

    /// Asks for what is off by default. It has no answer but the lines themselves.
    pub fn subscribe(&self, topics: &[&str]) {
        self.write(&json!({ "type": "subscribe", "topics": topics }));
    }

    /// Waits for the next line, with its type. Nothing is lost when the future is dropped.
    pub async fn next_line(&mut self) -> Result<(String, bytes::Bytes), ClientError> {
        self.read().await.map(|(head, line)| (head.kind, line))
    }

    /// Gives the two ends of the connection up, with what was read already; for when it speaks
    /// another protocol from now on.
    pub(super) async fn into_ends(
        self,
    ) -> Result<(BytesMut, OwnedReadHalf, OwnedWriteHalf), ClientError> {
        drop(self.requests);
        let write = self.writer.await.map_err(|_| ClientError::Closed)?;
        let (rest, read) = self.lines.into_rest();
        Ok((rest, read, write))
    }

    /// Waits for the next line. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Message, ClientError> {
        let (Head { id, kind }, line) = self.read().await?;
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
                    // As `list_blocked` has it.
                    access.shift_remove("type");
                    Message::Blocked(access.into())
                }
                Err(_) => Message::Other,
            },
            ("turn", _) => match serde_json::from_slice(&line) {
                Ok(Turn { agent_id, session_id }) => {
                    Message::Turn { agent: agent_id, session: session_id }
                }
                Err(_) => Message::Other,
            },
            ("agent" | "usage", _) => Message::Changed,
            ("lagged", _) => Message::Lagged,
            _ => Message::Other,
        })
    }

    /// Waits for a line that has a type; what else comes is of another version, and passed over.
    async fn read(&mut self) -> Result<(Head, bytes::Bytes), ClientError> {
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

    fn write(&self, message: &Value) {
        // Who can't be written to any more has ended, and so does the reading.
        let _ = self.requests.send(format!("{message}\n"));
    }
}

/// Writes until there is nothing more to come, and gives the socket back.
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

/// What is read of every line; the rest of a large snapshot is only skipped.
#[derive(Deserialize)]
struct Head {
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
struct Turn {
    agent_id: String,
    session_id: String,
}

fn refusal(line: &[u8]) -> Refusal {
    serde_json::from_slice(line)
        .map_or_else(|error| nonsense(&error), |FailedAnswer { error }| error)
}

fn nonsense(error: &serde_json::Error) -> Refusal {
    Refusal { code: 500, message: format!("the team's answer makes no sense: {error}") }
}
