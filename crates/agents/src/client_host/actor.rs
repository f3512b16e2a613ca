//! The task that owns a [`Host`]: reads the agent's lines, writes to the agent, and waits for
//! nothing else.

use std::time::Duration;

use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::host::{CLOSED_INPUT, Host, closed_input};
use super::messages::{HostMsg, PendingAnswer};
use super::offers::{Learning, SessionChoices};
use super::rpc::{self, RpcFailure};
use super::sessions::QueuedPrompt;
use super::turns::{MessagePart, message_part, stop_reason};
use super::{Cancelled, Chosen, HostError, SessionLoad};
use crate::acp::{AcpMessage, RpcResult};
use crate::line;
use crate::model::SessionId;
use crate::model::code;
use crate::proxy::Opening;

/// How long the host reads from an agent that has closed its input: enough for output that is
/// buffered, as the agent cannot receive more requests.
const OUTPUT_GRACE: Duration = Duration::from_secs(5);

impl<R, W> Host<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    pub(super) async fn run(mut self, cancel: CancellationToken) {
        let reason = self.serve(&cancel).await;
        tracing::debug!(reason, "client host ends");
        self.end(reason).await;
    }

    /// Serves until the end, and returns its reason.
    async fn serve(&mut self, cancel: &CancellationToken) -> String {
        let mut silence: Option<Instant> = None;
        while !self.out.is_overfull() {
            self.cut_off_editors();
            tokio::select! {
                () = cancel.cancelled() => return "it was stopped".to_owned(),
                () = sleep_until(silence.unwrap_or_else(Instant::now)), if silence.is_some() => {
                    return CLOSED_INPUT.to_owned();
                }
                line = self.lines.next_whole(), if self.requests.has_room() => match line {
                    Ok(Some(line)) => self.on_line(&line),
                    Ok(None) => return "it closed its output".to_owned(),
                    Err(error) => return format!("its output cannot be read: {error}"),
                },
                Some(message) = self.mailbox.recv() => self.on_message(message),
                Some((editor, event)) = self.guests.next_event(), if self.out.has_room() => {
                    self.on_editor(editor, event);
                }
                Some(made) = self.contents.join_next_with_id() => self.on_content(made),
                Some((id, outcome)) = self.requests.next() => self.on_done(&id, outcome),
                wrote = self.out.write(), if self.out.has_work() => if let Err(error) = wrote {
                    tracing::debug!(%error, "the agent's input is closed");
                    silence = Some(Instant::now() + OUTPUT_GRACE);
                },
            }
        }
        "it does not read its input".to_owned()
    }

    fn on_line(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let text;
        let parsed = match AcpMessage::parse(line) {
            // What is forwarded stays as it came, if it is JSON so.
            Err(_) => {
                text = line::text(line);
                AcpMessage::parse(text.as_bytes())
            }
            parsed => parsed,
        };
        match parsed {
            Ok(AcpMessage::Request { id, method, params }) => self.on_request(id, &method, params),
            Ok(AcpMessage::Notification { method, params }) => {
                self.on_notification(&method, params);
            }
            Ok(AcpMessage::Response { id, outcome }) => self.on_response(id, outcome),
            Err(why) => {
                self.shared.vitals.get().inspect(|vitals| vitals.stray(line));
                if let Some(count) = self.unusable.count(why.cause()) {
                    let start = String::from_utf8_lossy(&line[..line.len().min(120)]);
                    tracing::warn!(%why, ?start, count, "ignored a line of the agent");
                }
            }
        }
    }

    fn on_notification(&mut self, method: &str, params: Option<&RawValue>) {
        match method {
            "$/cancel_request" => self.on_cancel_request(params),
            _ if self.send_to_editor(method, params) => {}
            "session/update" => match params.and_then(message_part) {
                Some((session, MessagePart::Text(text))) => {
                    self.sessions.append_text(&session, &text);
                }
                Some((session, MessagePart::Act(title))) => self.sessions.act(&session, title),
                Some((session, MessagePart::Options(news))) => {
                    let chosen = self.offers.hear(SessionId::new(session), &news);
                    self.tell_chosen(chosen);
                }
                Some((session, MessagePart::Commands { compress, commands })) => {
                    self.shared.compress.send_replace(compress);
                    let sessions = &self.sessions;
                    let is_open = |session: &SessionId| sessions.has(session);
                    self.offers.hear_commands(SessionId::new(session), commands, is_open);
                }
                None => {}
            },
            _ => tracing::debug!(method, "ignored a notification of the agent"),
        }
    }

    fn on_cancel_request(&mut self, params: Option<&RawValue>) {
        let Ok(rpc::CancelRequest { request_id }) = rpc::decode(params) else { return };
        if self.requests.cancel(&request_id) {
            let cancelled = rpc::failure(code::REQUEST_CANCELLED, "Request cancelled");
            self.out.push(rpc::response(&request_id, Err(&cancelled)));
        } else {
            self.guests.cancel(&request_id);
        }
    }

    fn on_response(&mut self, id: &RawValue, outcome: RpcResult<'_>) {
        let pending = rpc::number(id).and_then(|id| self.pending.remove(&id));
        match pending {
            None => {
                if let Some(count) = self.unusable.count("an answer") {
                    let id: String = id.get().chars().take(120).collect();
                    tracing::warn!(id, count, "the agent answered an unknown request");
                }
            }
            Some(PendingAnswer::Call { method, learning, reply }) => {
                let result = outcome.map(|result| result.unwrap_or(RawValue::NULL).to_owned());
                if let ("initialize", Ok(result)) = (method, &result) {
                    self.guests.introduce(result.clone());
                }
                if let (Some(learning), Ok(result)) = (learning, &result) {
                    self.learn(learning, result);
                }
                let result = result.map_err(|error| RpcFailure::read(error).into_error(method));
                // The caller may have given up waiting.
                let _ = reply.send(result);
            }
            Some(PendingAnswer::Turn(session)) => {
                let ended = match outcome {
                    Ok(result) => stop_reason(result),
                    Err(error) => {
                        let error = RpcFailure::read(error).into_error("session/prompt");
                        let Some(error) = self.reopens(&session, error) else { return };
                        Err(error)
                    }
                };
                if ended.is_ok() {
                    self.permits.branches().set_document(&session, None);
                }
                self.sessions.end_turn(&session, ended);
                self.begin_turn(&session);
            }
            Some(PendingAnswer::Forwarded(request)) => self.on_forwarded(request, outcome),
        }
    }

    fn on_message(&mut self, message: HostMsg) {
        match message {
            HostMsg::Call { reply, .. } if !self.out.is_open() => {
                let _ = reply.send(Err(closed_input()));
            }
            HostMsg::Call { method, params, opening, reply } => {
                let behind = match &opening {
                    Some(Opening::Behind(session)) => Some(session.clone()),
                    _ => None,
                };
                let learning = Learning::of(method, &params, behind);
                let id =
                    self.call(method, &params, PendingAnswer::Call { method, learning, reply });
                if let Some(opening) = opening {
                    self.permits.branches().expect(id, opening);
                }
            }
            HostMsg::Opened { session, .. } if self.guests.has(&session) => {
                tracing::warn!(%session, "the agent opened an editor's session a second time");
            }
            HostMsg::Opened { session, is_beside, new } => {
                self.sessions.open(session, is_beside, new);
            }
            HostMsg::Hold { session, reply } => {
                let held = self.resolve(Some(session)).and_then(|it| self.sessions.hold(&it));
                let _ = reply.send(held);
            }
            HostMsg::Release { session } => {
                self.sessions.release(&session);
                self.begin_turn(&session);
            }
            HostMsg::Attach { reply } => {
                // If the caller is gone, the stream ends at once.
                let _ = reply.send(self.guests.admit());
            }
            HostMsg::Prompt { session, content, urgency, said, reply } => {
                match self.resolve(session) {
                    Ok(session) => {
                        self.sessions.queue(
                            &session,
                            QueuedPrompt { content, said, reply },
                            urgency,
                        );
                        self.begin_turn(&session);
                    }
                    Err(error) => drop(reply.send(Err(error))),
                }
            }
            HostMsg::Cancel { session, queued, reply } => {
                let _ = reply.send(self.cancel(session, queued));
            }
            HostMsg::Loads { reply } => drop(reply.send(Ok(self.loads()))),
            HostMsg::Options { session, reply } => drop(reply.send(self.options(session))),
            HostMsg::Waiting { session, reply } => {
                let named = session.map(|session| self.resolve(Some(session))).transpose();
                let _ = reply.send(named.map(|named| self.sessions.drafts(named.as_ref())));
            }
            HostMsg::Edit { id, text, reply } => drop(reply.send(self.sessions.edit(&id, &text))),
            HostMsg::Withdraw { id, reply } => {
                let _ = reply.send(self.sessions.take_back(&id));
            }
        }
    }

    fn resolve(&self, named: Option<SessionId>) -> Result<SessionId, HostError> {
        match named {
            Some(session) if self.guests.has(&session) => Err(HostError::Attached(session)),
            named => self.sessions.resolve(named),
        }
    }

    fn options(&self, session: Option<SessionId>) -> Result<SessionChoices, HostError> {
        let session = self.resolve(session)?;
        let (options, commands) = (self.offers.of(&session), self.offers.commands_of(&session));
        Ok(SessionChoices { session, options, commands })
    }

    fn learn(&mut self, learning: Learning, result: &RawValue) {
        let Ok(result) = line::read(result.get().as_bytes()) else { return };
        let sessions = &self.sessions;
        let chosen = self.offers.learn(learning, &result, |session| sessions.has(session));
        self.tell_chosen(chosen);
    }

    /// Another value is chosen in a session.
    fn tell_chosen(&self, chosen: Option<(SessionId, Chosen)>) {
        if let Some((session, chosen)) = chosen {
            self.shared.chosen.send_modify(|changed| drop(changed.insert(session, chosen)));
        }
    }

    fn loads(&self) -> Vec<SessionLoad> {
        let editors = self.guests.sessions().into_iter().map(|session| SessionLoad {
            is_default: false,
            is_running: self.prompted(&session),
            queued: 0,
            chosen: Chosen::default(),
            session,
        });
        let own = self.sessions.loads().into_iter().map(|load| {
            let chosen = self.offers.chosen(&load.session);
            SessionLoad { chosen, ..load }
        });
        own.chain(editors).collect()
    }

    fn cancel(&mut self, session: Option<SessionId>, queued: bool) -> Result<Cancelled, HostError> {
        let mut all = Cancelled::default();
        let sessions = match session {
            Some(session) if self.guests.has(&session) => {
                all.turns += usize::from(self.cancel_editors_turn(&session));
                return Ok(all);
            }
            Some(session) => vec![self.sessions.resolve(Some(session))?],
            None => {
                for session in self.guests.sessions() {
                    all.turns += usize::from(self.cancel_editors_turn(&session));
                }
                self.sessions.ids()
            }
        };
        for session in sessions {
            if queued {
                all.prompts += self.sessions.withdraw(&session);
            }
            if self.sessions.cancel(&session) {
                let params = json!({ "sessionId": session.as_str() });
                self.out.push(rpc::notification("session/cancel", &params));
                all.turns += 1;
            }
        }
        Ok(all)
    }

    /// Fails all waiting callers, and ends all tasks.
    async fn end(mut self, reason: String) {
        let _ = self.shared.gone.set(reason);
        let gone = self.shared.gone();
        self.sessions.fail(&gone);
        for pending in std::mem::take(&mut self.pending).into_values() {
            match pending {
                PendingAnswer::Call { reply, .. } => drop(reply.send(Err(gone.clone()))),
                PendingAnswer::Turn(_) => {}
                PendingAnswer::Forwarded(request) => self.guests.fail(&request, &gone.to_string()),
            }
        }
        // Callers whose message was not read get the reason from `Shared::gone` when their reply is
        // dropped.
        drop(self.mailbox);
        self.contents.shutdown().await;
        self.requests.end().await;
        self.guests.end().await;
        self.terminals.end().await;
    }
}
