//! The agent's task: owns the sessions, the pending requests to the client, and the output. Turns
//! run in tasks of their own, and send it messages.

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use eisen_base::task::TaskSet;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::script::Script;
use super::wire::{self, Incoming, RpcError};
use super::{PlayEnd, ScriptError};

/// Capacity of the mailbox; past that, turns wait.
const MAILBOX: usize = 64;

/// A message from a turn to the agent. All of them share one queue, so that the end of a turn is
/// written after all its lines.
pub(super) enum Msg {
    /// A line to write unchanged.
    Line(Vec<u8>),
    Request {
        method: String,
        params: Value,
        answer: oneshot::Sender<Result<Value, RpcError>>,
    },
    TurnOver(TurnOver),
    Exit(u8),
    Crash,
    Hang,
}

/// The end of a turn, with the response to its request.
pub(super) struct TurnOver {
    pub(super) session: Arc<str>,
    pub(super) number: u64,
    pub(super) id: Box<RawValue>,
    pub(super) answer: Result<Value, RpcError>,
}

pub(super) struct ScriptedSession {
    pub(super) cwd: PathBuf,
    pub(super) mode: Option<String>,
    pub(super) model: Option<String>,
    /// The number of prompts that each rule has matched.
    pub(super) matched: Vec<u64>,
    /// The number of tool calls so far, which makes their ids unique in the session.
    pub(super) calls: Arc<AtomicU64>,
    pub(super) turn: Option<RunningTurn>,
}

pub(super) struct RunningTurn {
    /// Unique among all turns of the agent.
    pub(super) number: u64,
    /// Id of the request.
    pub(super) id: Box<RawValue>,
    pub(super) cancel: CancellationToken,
}

pub(super) struct ScriptedAgent<W> {
    pub(super) script: Arc<Script>,
    writer: W,
    /// Cancelled by `ignore_eof`: the end of the input is ignored.
    pub(super) stay: CancellationToken,
    pub(super) sessions: BTreeMap<Arc<str>, ScriptedSession>,
    pub(super) sessions_opened: u64,
    pub(super) authenticated: bool,
    waiting: HashMap<u64, oneshot::Sender<Result<Value, RpcError>>>,
    requests: u64,
    pub(super) mailbox: mpsc::Sender<Msg>,
    mail: mpsc::Receiver<Msg>,
    pub(super) turns: TaskSet,
    pub(super) turns_begun: u64,
}

impl<W: AsyncWrite + Unpin> ScriptedAgent<W> {
    pub(super) fn new(script: Script, writer: W, stay: CancellationToken) -> Self {
        let (mailbox, mail) = mpsc::channel(MAILBOX);
        Self {
            script: Arc::new(script),
            writer,
            stay,
            sessions: BTreeMap::new(),
            sessions_opened: 0,
            authenticated: false,
            waiting: HashMap::new(),
            requests: 0,
            mailbox,
            mail,
            turns: TaskSet::default(),
            turns_begun: 0,
        }
    }

    /// Serves until the input ends or the script ends it.
    pub(super) async fn serve(
        &mut self,
        mut lines: mpsc::Receiver<Option<Bytes>>,
    ) -> Result<PlayEnd, ScriptError> {
        let mut open = true;
        loop {
            // Input first, so that a flooding turn can be cancelled.
            let ended = tokio::select! {
                biased;
                line = lines.recv(), if open => match line {
                    Some(Some(line)) => self.line(&line).await?,
                    Some(None) => return Err(ScriptError::LongLine),
                    None => {
                        open = false;
                        self.on_eof().await?
                    }
                },
                Some(msg) = self.mail.recv() => self.on_turn_message(msg).await?,
                Some(_) = self.turns.join_next() => None,
            };
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }

    /// Handles the end of the input: writes the messages that turns have sent already.
    async fn on_eof(&mut self) -> Result<Option<PlayEnd>, ScriptError> {
        while let Ok(msg) = self.mail.try_recv() {
            if let Some(ended) = self.on_turn_message(msg).await? {
                return Ok(Some(ended));
            }
        }
        Ok((!self.stay.is_cancelled()).then_some(PlayEnd::Exit(0)))
    }

    async fn on_turn_message(&mut self, msg: Msg) -> Result<Option<PlayEnd>, ScriptError> {
        match msg {
            Msg::Line(line) => return self.write(&line).await,
            Msg::Request { method, params, answer } => {
                self.requests += 1;
                self.waiting.retain(|_, answer| !answer.is_closed());
                self.waiting.insert(self.requests, answer);
                return self.write(&wire::request(self.requests, &method, &params)).await;
            }
            Msg::TurnOver(over) => {
                if let Some(session) = self.sessions.get_mut(&over.session) {
                    // The session may have been closed and loaded again in the meantime.
                    session.turn.take_if(|turn| turn.number == over.number);
                }
                return self.write(&wire::response(Some(&over.id), &over.answer)).await;
            }
            Msg::Exit(code) => return Ok(Some(PlayEnd::Exit(code))),
            Msg::Crash => return Ok(Some(PlayEnd::Crash)),
            Msg::Hang => {
                self.stay.cancel();
                std::future::pending::<()>().await;
            }
        }
        Ok(None)
    }

    async fn line(&mut self, line: &[u8]) -> Result<Option<PlayEnd>, ScriptError> {
        let message = match wire::parse(line) {
            Ok(message) => message,
            Err(error) => return self.write(&wire::response(None, &Err(error))).await,
        };
        match message {
            Incoming { method: Some(method), id: Some(id), params, .. } => {
                let answer = match self.request(&method, &id, &params) {
                    Ok(None) => return Ok(None),
                    Ok(Some(answer)) => Ok(answer),
                    Err(error) => Err(error),
                };
                self.write(&wire::response(Some(&id), &answer)).await
            }
            Incoming { method: Some(method), id: None, params, .. } => {
                self.notification(&method, &params);
                Ok(None)
            }
            Incoming { method: None, id, result, error, .. } => {
                let id = id.and_then(|id| id.get().parse().ok());
                if let Some(answer) = id.and_then(|id: u64| self.waiting.remove(&id)) {
                    // Fails if the turn was cancelled.
                    let _ = answer.send(error.map_or(Ok(result.unwrap_or_default()), Err));
                }
                Ok(None)
            }
        }
    }

    /// Writes a line. A disconnected client ends the play, without an error.
    async fn write(&mut self, line: &[u8]) -> Result<Option<PlayEnd>, ScriptError> {
        let written = match self.writer.write_all(line).await {
            Ok(()) => self.writer.flush().await,
            failed => failed,
        };
        match written {
            Ok(()) => Ok(None),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Some(PlayEnd::Exit(0))),
            Err(error) => Err(ScriptError::Write(error)),
        }
    }
}
