//! From the agent to an editor: what is about the editor's sessions, and what it serves itself.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::Error;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};

use super::editor::Asked;
use super::{EditorId, Guests, session_of};
use crate::client_host::actor::{Host, Pending};
use crate::client_host::rpc;
use crate::model::SessionId;

impl<R, W> Host<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    /// Passes a notification on if it is about an editor's session, and says whether it is. One
    /// that names no session (`elicitation/complete`) every editor hears: who does not know what
    /// it is about ignores it.
    pub(in crate::client_host) fn tell_editor(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
    ) -> bool {
        if self.guests.editors.is_empty() {
            return false;
        }
        let session = match session_of(params) {
            Ok(Some(session)) => session,
            Ok(None) => {
                if let Some(line) = rpc::passed_on(None, method, params) {
                    self.guests.send_all(&line);
                }
                return false;
            }
            Err(_) => return false,
        };
        let owner = self.guests.owner(&session);
        let is_early = owner.is_none() && !self.sessions.has(&session) && self.opens();
        if let Some(line) = rpc::passed_on(None, method, params) {
            match owner {
                Some(editor) => self.guests.send(editor, line),
                None if is_early => self.guests.early.hold(session, line),
                None => {}
            }
        }
        owner.is_some()
    }

    /// Puts a request before the editor whose session it is about, or whose request, if it serves
    /// that; says whether it does, or else the host is to answer. An error is the answer.
    pub(in crate::client_host) fn ask_editor(
        &mut self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<bool, Error> {
        if self.guests.editors.is_empty() {
            return Ok(false);
        }
        match session_of(params) {
            Ok(Some(session)) => {
                let Some(editor) = self.guests.owner(&session) else { return Ok(false) };
                self.guests.ask(editor, Some(session), id, method, params)
            }
            Ok(None) => {
                let Some((editor, params)) = self.caused(params) else { return Ok(false) };
                self.guests.ask(editor, None, id, method, Some(&params))
            }
            Err(_) => Ok(false),
        }
    }

    /// Returns the editor whose request params name by the id that the host gave it, and the params
    /// with the id that the editor did: before a session is open, an elicitation has nothing else
    /// to be tied to.
    fn caused(&self, params: Option<&RawValue>) -> Option<(EditorId, Box<RawValue>)> {
        let mut members: BTreeMap<String, Box<RawValue>> = rpc::decode(params).ok()?;
        let named = members.get_mut("requestId")?;
        let Some(Pending::Forwarded(request)) = self.pending.get(&rpc::number(named)?) else {
            return None;
        };
        *named = request.id.clone();
        let params = rpc::encode(&members).ok()?;
        self.guests.listens(request.editor).then_some((request.editor, params))
    }
}

impl Guests {
    /// Answers `initialize` with what the agent said.
    pub(super) fn initialize(
        &mut self,
        editor: EditorId,
        id: &RawValue,
        params: Option<&RawValue>,
    ) -> Result<(), Error> {
        let introduction = self.introduction.clone();
        let introduction = introduction
            .ok_or_else(|| rpc::failure(-32603, "The agent has not introduced itself yet"))?;
        if let Some(state) = self.editors.get_mut(&editor) {
            state.initialize(params);
        }
        self.answer(editor, id, Ok(&introduction));
        Ok(())
    }

    fn ask(
        &mut self,
        editor: EditorId,
        session: Option<SessionId>,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<bool, Error> {
        let Some(state) = self.editors.get_mut(&editor) else { return Ok(false) };
        if !state.serves(method) {
            return Ok(false);
        }
        let is_permission = method == "session/request_permission";
        let number = state.ask(Asked { id: id.to_owned(), session, is_permission });
        let busy = || rpc::failure(-32603, "The editor has too many requests to answer");
        let number = number.ok_or_else(busy)?;
        let Some(line) = rpc::passed_on(Some(number), method, params) else {
            state.asked.remove(&number);
            return Err(rpc::failure(-32600, "Invalid request: it is too long"));
        };
        self.send(editor, line);
        Ok(true)
    }

    /// Returns what an editor answered.
    pub(super) fn answered(&mut self, editor: EditorId, id: &RawValue) -> Option<Asked> {
        let number = rpc::number(id)?;
        self.editors.get_mut(&editor)?.asked.remove(&number)
    }

    /// Marks an editor as leaving; returns what it will not answer any more.
    pub(super) fn leave(&mut self, editor: EditorId) -> Vec<Asked> {
        let Some(state) = self.editors.get_mut(&editor) else { return Vec::new() };
        state.leaving = true;
        std::mem::take(&mut state.asked).into_values().collect()
    }

    pub(super) fn sessions_of(&self, editor: EditorId) -> Vec<SessionId> {
        let its = self.owners.iter().filter(|(_, owner)| **owner == editor);
        its.map(|(session, _)| session.clone()).collect()
    }

    /// Takes back the permission requests of a session, and tells the editor so.
    pub(super) fn withdraw_permissions(&mut self, session: &SessionId) -> Vec<Asked> {
        let Some(editor) = self.owner(session) else { return Vec::new() };
        let Some(state) = self.editors.get_mut(&editor) else { return Vec::new() };
        let of_turn = |_: &u64, asked: &mut Asked| {
            asked.is_permission && asked.session.as_ref() == Some(session)
        };
        let withdrawn: Vec<_> = state.asked.extract_if(.., of_turn).collect();
        for (number, _) in &withdrawn {
            self.tell_cancelled(editor, *number);
        }
        withdrawn.into_iter().map(|(_, asked)| asked).collect()
    }
}
