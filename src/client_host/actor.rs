//! The task that owns the state of one agent run: it reads the agent's lines, writes ours, and
//! never waits for anything else.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::requests::Requests;
use super::rpc::{self, Failure, Incoming};
use super::sessions::{Prompt, Sessions};
use super::terminals::{Launch, Terminals};
use super::transport::{Lines, MAX_LINE, Outbox};
use super::{Cancelled, Content, HostError, PromptOutcome, Said, SessionLoad, Shared, Urgency};
use crate::model::SessionId;
use crate::proxy::Permits;

/// How long an agent that closed its input is still listened to: long enough for what it said
/// before, since it can be told nothing any more.
const LAST_WORDS: Duration = Duration::from_secs(5);

const CLOSED_INPUT: &str = "it closed its input";

pub(super) type Reply<T> = oneshot::Sender<Result<T, HostError>>;

/// What handles ask of the host's task.
#[derive(Debug)]
pub(super) enum HostMsg {
    /// A request of our own to the agent, outside of any session's queue.
    Call {
        method: &'static str,
        params: Value,
        reply: Reply<Box<RawValue>>,
    },
    /// A session is open, and takes prompts from now on.
    Opened {
        session: SessionId,
    },
    Prompt {
        session: Option<SessionId>,
        content: Content,
        urgency: Urgency,
        said: watch::Sender<Said>,
        reply: Reply<PromptOutcome>,
    },
    Cancel {
        session: Option<SessionId>,
        reply: Reply<Cancelled>,
    },
    Loads {
        reply: Reply<Vec<SessionLoad>>,
    },
}

/// What an answer of the agent is waited for by.
#[derive(Debug)]
enum Pending {
    Call { method: &'static str, reply: Reply<Box<RawValue>> },
    Turn(SessionId),
}

#[derive(Debug)]
pub(super) struct Host<R, W> {
    pub(super) shared: Arc<Shared>,
    pub(super) permits: Arc<Permits>,
    mailbox: mpsc::Receiver<HostMsg>,
    lines: Lines<R>,
    pub(super) out: Outbox<W>,
    next_id: u64,
    pending: HashMap<u64, Pending>,
    pub(super) sessions: Sessions,
    /// Contents that are being made, each for a session whose turn it is.
    contents: JoinSet<Option<Vec<Value>>>,
    pub(super) requests: Requests,
    pub(super) terminals: Terminals,
}

impl<R, W> Host<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    pub(super) fn new(
        shared: Arc<Shared>,
        launcher: Arc<dyn Launch>,
        permits: Arc<Permits>,
        mailbox: mpsc::Receiver<HostMsg>,
        reader: R,
        writer: W,
    ) -> Self {
        let terminals = Terminals::new(launcher, shared.settings.env.clone());
        Self {
            shared,
            permits,
            mailbox,
            lines: Lines::new(reader, MAX_LINE),
            out: Outbox::new(writer),
            next_id: 0,
            pending: HashMap::new(),
            sessions: Sessions::default(),
            contents: JoinSet::new(),
            requests: Requests::new(),
            terminals,
        }
    }

    pub(super) async fn run(mut self, cancel: CancellationToken) {
        let reason = self.serve(&cancel).await;
        tracing::debug!(reason, "client host ends");
        self.end(reason).await;
    }

    /// Serves until the end, and returns its reason.
    async fn serve(&mut self, cancel: &CancellationToken) -> String {
        let mut silence: Option<Instant> = None;
        while !self.out.is_overfull() {
            tokio::select! {
                () = cancel.cancelled() => return "it was stopped".to_owned(),
                () = sleep_until(silence.unwrap_or_else(Instant::now)), if silence.is_some() => {
                    return CLOSED_INPUT.to_owned();
                }
                line = self.lines.next(), if self.requests.has_room() => match line {
                    Ok(Some(line)) => self.on_line(&line),
                    Ok(None) => return "it closed its output".to_owned(),
                    Err(error) => return format!("its output cannot be read: {error}"),
                },
                Some(message) = self.mailbox.recv() => self.on_message(message),
                Some(made) = self.contents.join_next_with_id() => self.on_content(made),
                Some((id, outcome)) = self.requests.next() => self.on_done(&id, outcome),
                wrote = self.out.write(), if self.out.has_work() => if let Err(error) = wrote {
                    tracing::debug!(%error, "the agent's input is closed");
                    silence = Some(Instant::now() + LAST_WORDS);
                },
            }
        }
        "it does not read its input".to_owned()
    }

    fn on_line(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match rpc::parse(line) {
            Ok(Incoming::Request { id, method, params }) => self.on_request(id, &method, params),
            Ok(Incoming::Notification { method, params }) => self.on_notification(&method, params),
            Ok(Incoming::Response { id, outcome }) => self.on_response(id, outcome),
            Err(why) => {
                let start = String::from_utf8_lossy(&line[..line.len().min(120)]);
                tracing::warn!(%why, ?start, "ignored a line of the agent");
            }
        }
    }

    fn on_notification(&mut self, method: &str, params: Option<&RawValue>) {
        match method {
            "session/update" => {
                if let Some((session, text)) = params.and_then(message_chunk) {
                    self.sessions.say(&session, &text);
                }
            }
            "$/cancel_request" => {
                #[derive(Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Cancel {
                    request_id: Box<RawValue>,
                }
                if let Ok(Cancel { request_id }) = rpc::decode(params)
                    && self.requests.cancel(&request_id)
                {
                    let cancelled = rpc::failure(-32800, "Request cancelled");
                    self.out.push(rpc::response(&request_id, Err(&cancelled)), None);
                }
            }
            _ => tracing::debug!(method, "ignored a notification of the agent"),
        }
    }

    fn on_response(&mut self, id: &RawValue, outcome: Result<Option<&RawValue>, Failure>) {
        let pending = id.get().parse().ok().and_then(|id: u64| self.pending.remove(&id));
        match pending {
            None => tracing::debug!(%id, "the agent answered what was not asked"),
            Some(Pending::Call { method, reply }) => {
                let result = outcome.map(|result| result.unwrap_or(RawValue::NULL).to_owned());
                // The caller may have given up waiting.
                let _ = reply.send(result.map_err(|failure| failure.into_error(method)));
            }
            Some(Pending::Turn(session)) => {
                let ended = match outcome {
                    Ok(result) => stop_reason(result),
                    Err(failure) => Err(failure.into_error("session/prompt")),
                };
                self.sessions.end_turn(&session, ended);
                self.begin_turn(&session);
            }
        }
    }

    fn on_message(&mut self, message: HostMsg) {
        match message {
            HostMsg::Call { reply, .. } if !self.out.is_open() => {
                let _ = reply.send(Err(closed_input()));
            }
            HostMsg::Call { method, params, reply } => {
                self.call(method, &params, Pending::Call { method, reply });
            }
            HostMsg::Opened { session } => self.sessions.open(session),
            HostMsg::Prompt { session, content, urgency, said, reply } => {
                match self.sessions.resolve(session) {
                    Ok(session) => {
                        self.sessions.queue(&session, Prompt { content, said, reply }, urgency);
                        self.begin_turn(&session);
                    }
                    Err(error) => drop(reply.send(Err(error))),
                }
            }
            HostMsg::Cancel { session, reply } => {
                let _ = reply.send(self.cancel(session));
            }
            HostMsg::Loads { reply } => drop(reply.send(Ok(self.sessions.loads()))),
        }
    }

    /// Sends the session's next prompt, unless a turn runs.
    fn begin_turn(&mut self, session: &SessionId) {
        while let Some(content) = self.sessions.begin(session) {
            match content {
                Content::Now(blocks) => {
                    if self.send_prompt(session, &blocks) {
                        return;
                    }
                }
                Content::Later(content) => {
                    let making = self.contents.spawn(content);
                    self.sessions.making(session, making);
                    return;
                }
            }
        }
    }

    /// Sends the prompt whose content was made, if there is one and somebody still waits for it.
    fn on_content(&mut self, made: Result<(Id, Option<Vec<Value>>), JoinError>) {
        let (task, blocks) = match made {
            Ok((task, blocks)) => (task, blocks),
            Err(error) => (error.id(), None),
        };
        // None: the turn was cancelled meanwhile.
        let Some((session, wanted)) = self.sessions.made(task) else { return };
        let sent = match blocks {
            Some(blocks) if wanted => self.send_prompt(&session, &blocks),
            _ => {
                self.sessions.end_turn(&session, Err(HostError::Withdrawn));
                false
            }
        };
        if !sent {
            self.begin_turn(&session);
        }
    }

    /// Says whether the turn runs now; it has ended if not.
    fn send_prompt(&mut self, session: &SessionId, blocks: &[Value]) -> bool {
        if !self.out.is_open() {
            self.sessions.end_turn(session, Err(closed_input()));
            return false;
        }
        let params = json!({ "sessionId": session.as_str(), "prompt": blocks });
        self.call("session/prompt", &params, Pending::Turn(session.clone()));
        self.sessions.sent(session);
        true
    }

    fn call(&mut self, method: &str, params: &Value, pending: Pending) {
        // Of calls that nobody waits for any more, at most the last few are remembered.
        self.pending.retain(|_, pending| match pending {
            Pending::Call { reply, .. } => !reply.is_closed(),
            Pending::Turn(_) => true,
        });
        let id = self.next_id;
        self.next_id += 1;
        self.pending.insert(id, pending);
        self.out.push(rpc::request(id, method, params), None);
    }

    fn cancel(&mut self, session: Option<SessionId>) -> Result<Cancelled, HostError> {
        let sessions = match session {
            Some(session) => vec![self.sessions.resolve(Some(session))?],
            None => self.sessions.ids(),
        };
        let mut all = Cancelled::default();
        for session in sessions {
            let Cancelled { turns, prompts } = self.sessions.cancel(&session);
            if turns > 0 {
                let params = json!({ "sessionId": session.as_str() });
                self.out.push(rpc::notification("session/cancel", &params), None);
            }
            all.turns += turns;
            all.prompts += prompts;
        }
        Ok(all)
    }

    /// Tells everyone who waits, and leaves nothing behind.
    async fn end(mut self, reason: String) {
        let _ = self.shared.gone.set(reason);
        let gone = self.shared.gone();
        self.sessions.fail(&gone);
        for (_, pending) in self.pending.drain() {
            if let Pending::Call { reply, .. } = pending {
                let _ = reply.send(Err(gone.clone()));
            }
        }
        // Those whose message was not read yet learn it from `Shared::gone`, as their reply drops.
        drop(self.mailbox);
        self.contents.shutdown().await;
        self.requests.end().await;
        self.terminals.end().await;
    }
}

fn closed_input() -> HostError {
    HostError::Gone(CLOSED_INPUT.to_owned())
}

/// Session and text of an `agent_message_chunk`.
fn message_chunk(params: &RawValue) -> Option<(String, String)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Notification<'a> {
        session_id: String,
        #[serde(borrow)]
        update: Update<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Update<'a> {
        session_update: String,
        #[serde(borrow)]
        content: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Text {
        text: String,
    }
    let Notification { session_id, update } = serde_json::from_str(params.get()).ok()?;
    if update.session_update != "agent_message_chunk" {
        return None;
    }
    let Text { text } = serde_json::from_str(update.content?.get()).ok()?;
    Some((session_id, text))
}

fn stop_reason(result: Option<&RawValue>) -> Result<String, HostError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Ended {
        stop_reason: String,
    }
    let result = result.map_or("null", RawValue::get);
    serde_json::from_str::<Ended>(result)
        .map(|ended| ended.stop_reason)
        .map_err(|error| HostError::malformed("session/prompt", &error))
}
