//! The agent's requests to an editor, and the answers that are still due.

use agent_client_protocol_schema::v1::Error;
use serde_json::value::RawValue;

use super::editor::EditorRequest;
use super::{EditorId, Guests};
use crate::client_host::rpc;
use crate::model::SessionId;
use crate::model::code;

impl Guests {
    /// Answers `initialize` with the agent's own answer.
    pub(in crate::client_host) fn initialize(
        &mut self,
        editor: EditorId,
        id: &RawValue,
        params: Option<&RawValue>,
    ) -> Result<(), Error> {
        let introduction = self.introduction.clone();
        let introduction = introduction.ok_or_else(|| {
            rpc::failure(code::INTERNAL_ERROR, "The agent has not introduced itself yet")
        })?;
        if let Some(state) = self.editors.get_mut(&editor) {
            state.initialize(params);
        }
        self.answer(editor, id, Ok(&introduction));
        Ok(())
    }

    pub(in crate::client_host) fn ask(
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
        let number = state.ask(EditorRequest { id: id.to_owned(), session, is_permission });
        let busy =
            || rpc::failure(code::INTERNAL_ERROR, "The editor has too many requests to answer");
        let number = number.ok_or_else(busy)?;
        let Some(line) = rpc::forward_message(Some(number), method, params) else {
            state.asked.remove(&number);
            return Err(rpc::failure(code::INVALID_REQUEST, "Invalid request: it is too long"));
        };
        self.send(editor, line);
        Ok(true)
    }

    /// Removes and returns the request that an editor answered.
    pub(in crate::client_host) fn answered(
        &mut self,
        editor: EditorId,
        id: &RawValue,
    ) -> Option<EditorRequest> {
        let number = rpc::number(id)?;
        self.editors.get_mut(&editor)?.asked.remove(&number)
    }

    /// Marks an editor as leaving; returns the requests that it will not answer.
    pub(in crate::client_host) fn leave(&mut self, editor: EditorId) -> Vec<EditorRequest> {
        let Some(state) = self.editors.get_mut(&editor) else { return Vec::new() };
        state.leaving = true;
        std::mem::take(&mut state.asked).into_values().collect()
    }

    pub(in crate::client_host) fn sessions_of(&self, editor: EditorId) -> Vec<SessionId> {
        let its = self.owners.iter().filter(|(_, owner)| **owner == editor);
        its.map(|(session, _)| session.clone()).collect()
    }

    /// Withdraws the permission requests of a session, with a cancellation to the editor.
    pub(in crate::client_host) fn withdraw_permissions(
        &mut self,
        session: &SessionId,
    ) -> Vec<EditorRequest> {
        let Some(editor) = self.owner(session) else { return Vec::new() };
        let Some(state) = self.editors.get_mut(&editor) else { return Vec::new() };
        let of_turn = |_: &u64, asked: &mut EditorRequest| {
            asked.is_permission && asked.session.as_ref() == Some(session)
        };
        let withdrawn: Vec<_> = state.asked.extract_if(.., of_turn).collect();
        for (number, _) in &withdrawn {
            self.send_cancelled(editor, *number);
        }
        withdrawn.into_iter().map(|(_, asked)| asked).collect()
    }
}
