//! From an editor to the agent: requests under the host's ids, notifications, answers.

use agent_client_protocol_schema::v1::Error;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::acp::{AcpMessage, RpcResult};
use crate::budget::Account;
use crate::client_host::guests::{
    AnswerEffect, Claimed, EditorId, Forwarded, PipeEvent, session_of,
};
use crate::client_host::host::{Host, closed_input};
use crate::client_host::messages::PendingAnswer;
use crate::client_host::rpc;
use crate::model::SessionId;
use crate::model::code;

/// Open requests of all editors to the agent; one more is answered with an error.
const MAX_FORWARDED: usize = 4096;

impl<R, W> Host<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    pub(in crate::client_host) fn on_editor(&mut self, editor: EditorId, event: PipeEvent) {
        match event {
            PipeEvent::Broken(error) => {
                tracing::debug!(%error, "the pipe to an editor broke");
                let why = rpc::failure(code::INVALID_REQUEST, format!("Invalid request: {error}"));
                self.guests.answer(editor, RawValue::NULL, Err(&why));
                self.leave(editor);
                self.guests.remove(editor);
            }
            // The editor was cut off meanwhile.
            _ if !self.guests.listens(editor) => {}
            PipeEvent::Line(line) => self.on_editor_line(editor, &line),
            PipeEvent::End => self.leave(editor),
        }
    }

    /// Handles the agent's answer to an editor's request.
    pub(in crate::client_host) fn on_forwarded(
        &mut self,
        request: Forwarded,
        outcome: RpcResult<'_>,
    ) {
        let Forwarded { editor, id, kind } = request;
        let mut early = Vec::new();
        let mut refused = None;
        match kind {
            AnswerEffect::Opens => match outcome.ok().flatten().and_then(opened) {
                Some(session) if self.open_for(editor, &session) => {
                    early = self.guests.early.take(&session);
                }
                Some(session) => {
                    let why = format!("The agent opened session `{session}`, which is another's");
                    refused = Some(rpc::failure(code::INTERNAL_ERROR, why));
                }
                None => {}
            },
            AnswerEffect::Takes { session, claim } if outcome.is_err() => {
                self.revert_claim(editor, session, claim);
            }
            // An earlier request for the session may have failed meanwhile.
            AnswerEffect::Takes { session, .. } => drop(self.open_for(editor, &session)),
            AnswerEffect::Prompt(session) => self.turn_ended(&session),
            AnswerEffect::Closes(session) if outcome.is_ok() => self.forget(editor, &session),
            AnswerEffect::Closes(_) | AnswerEffect::Nothing => {}
        }
        match refused {
            Some(error) => self.guests.answer(editor, &id, Err(&error)),
            None => self.guests.send(editor, rpc::forward_response(&id, outcome)),
        }
        for line in early {
            self.guests.send(editor, line);
        }
        if !self.is_opening() {
            self.guests.early.clear();
        }
        self.release(editor);
    }

    /// Whether the agent is opening a session for an editor, whose id is not known yet.
    pub(super) fn is_opening(&self) -> bool {
        self.forwarded().any(|request| matches!(request.kind, AnswerEffect::Opens))
    }

    /// Whether an editor's turn runs in a session.
    pub(in crate::client_host) fn prompted(&self, session: &SessionId) -> bool {
        self.forwarded()
            .any(|request| matches!(&request.kind, AnswerEffect::Prompt(of) if of == session))
    }

    pub(super) fn forwarded(&self) -> impl Iterator<Item = &Forwarded> {
        self.pending.values().filter_map(|pending| match pending {
            PendingAnswer::Forwarded(request) => Some(request),
            _ => None,
        })
    }

    fn on_editor_line(&mut self, editor: EditorId, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match AcpMessage::parse(line) {
            Ok(AcpMessage::Request { id, method, params }) => {
                if let Err(error) = self.on_editor_request(editor, id, &method, params) {
                    self.guests.answer(editor, id, Err(&error));
                }
            }
            Ok(AcpMessage::Notification { method, params }) => {
                if let Err(why) = self.on_editor_notification(editor, &method, params) {
                    tracing::debug!(%method, why = why.message, "dropped an editor's notification");
                }
            }
            Ok(AcpMessage::Response { id, outcome }) => self.on_editor_answer(editor, id, outcome),
            Err(why) => {
                let (code, why) = why.answer(line);
                let error = rpc::failure(code, why);
                self.guests.answer(editor, RawValue::NULL, Err(&error));
            }
        }
    }

    /// Forwards a request; an error becomes its answer.
    fn on_editor_request(
        &mut self,
        editor: EditorId,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), Error> {
        if method == "initialize" {
            return self.guests.initialize(editor, id, params);
        }
        if !self.out.is_open() {
            return Err(rpc::failure(code::INTERNAL_ERROR, closed_input().to_string()));
        }
        if self.forwarded().count() >= MAX_FORWARDED {
            let why = format!("More than {MAX_FORWARDED} requests of editors at once");
            return Err(rpc::failure(code::INTERNAL_ERROR, why));
        }
        let refusal = self.shared.account.get().and_then(Account::refusal);
        if let Some(reason) = refusal.filter(|_| method == "session/prompt") {
            return Err(rpc::failure(code::INTERNAL_ERROR, reason.to_string()));
        }
        let session = session_of(params)?;
        let number = self.next_id();
        let line = rpc::forward_message(Some(number), method, params).ok_or_else(too_long)?;
        let claim = session.as_ref().map(|session| self.claim(editor, session)).transpose()?;
        let kind = match (method, session, claim) {
            ("session/new" | "session/fork", ..) => AnswerEffect::Opens,
            ("session/load" | "session/resume", Some(session), Some(claim)) => {
                // The replay comes before the answer.
                self.guests.own(&session, editor);
                AnswerEffect::Takes { session, claim }
            }
            ("session/prompt", Some(session), Some(Claimed::Its | Claimed::Left)) => {
                AnswerEffect::Prompt(session)
            }
            ("session/close" | "session/delete", Some(session), _) => AnswerEffect::Closes(session),
            _ => AnswerEffect::Nothing,
        };
        let request = Forwarded { editor, id: id.to_owned(), kind };
        self.pending.insert(number, PendingAnswer::Forwarded(request));
        self.out.push(line);
        Ok(())
    }

    fn on_editor_notification(
        &mut self,
        editor: EditorId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), Error> {
        if method == "$/cancel_request" {
            let rpc::CancelRequest { request_id } = rpc::decode(params)?;
            let number = self.pending.iter().find_map(|(number, pending)| match pending {
                PendingAnswer::Forwarded(request)
                    if request.editor == editor && request.id.get() == request_id.get() =>
                {
                    Some(*number)
                }
                _ => None,
            });
            let number = number
                .ok_or_else(|| rpc::failure(code::INVALID_PARAMS, "There is no such request"))?;
            self.out.push(rpc::notification(method, &json!({ "requestId": number })));
            return Ok(());
        }
        let session = session_of(params)?;
        if let Some(session) = &session {
            self.claim(editor, session)?;
        }
        let line = rpc::forward_message(None, method, params).ok_or_else(too_long)?;
        self.out.push(line);
        if let ("session/cancel", Some(session)) = (method, session) {
            self.settle_permissions(&session);
        }
        Ok(())
    }

    fn on_editor_answer(&mut self, editor: EditorId, id: &RawValue, outcome: RpcResult<'_>) {
        if let Some(asked) = self.guests.answered(editor, id) {
            self.out.push(rpc::forward_response(&asked.id, outcome));
        } else if rpc::number(id).is_none() {
            tracing::warn!(%id, "an editor answered an unknown request");
        } else {
            tracing::debug!(%id, "an editor answered a withdrawn request");
        }
    }
}

fn opened(result: &RawValue) -> Option<SessionId> {
    session_of(Some(result)).ok().flatten().filter(|session| !session.as_str().is_empty())
}

fn too_long() -> Error {
    rpc::failure(code::INVALID_REQUEST, "Invalid request: it is longer than a line may be")
}
