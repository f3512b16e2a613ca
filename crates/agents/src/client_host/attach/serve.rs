//! From the agent to an editor: messages about the editor's sessions, and requests that the editor
//! serves.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::Error;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::client_host::guests::{EditorId, session_of};
use crate::client_host::host::Host;
use crate::client_host::messages::PendingAnswer;
use crate::client_host::rpc;

impl<R, W> Host<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    /// Forwards a notification about an editor's session, and returns whether it is one. A
    /// notification without a session (`elicitation/complete`) goes to every editor; those that do
    /// not know its id ignore it.
    pub(in crate::client_host) fn send_to_editor(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
    ) -> bool {
        if self.guests.is_empty() {
            return false;
        }
        let session = match session_of(params) {
            Ok(Some(session)) => session,
            Ok(None) => {
                if let Some(line) = rpc::forward_message(None, method, params) {
                    self.guests.send_all(&line);
                }
                return false;
            }
            Err(_) => return false,
        };
        let owner = self.guests.owner(&session);
        let is_early = owner.is_none() && !self.sessions.has(&session) && self.is_opening();
        if let Some(line) = rpc::forward_message(None, method, params) {
            match owner {
                Some(editor) => self.guests.send(editor, line),
                None if is_early => self.guests.early.hold(session, line),
                None => {}
            }
        }
        owner.is_some()
    }

    /// Forwards a request to the editor that owns its session, or whose request caused it. Returns
    /// false if that editor does not serve the method: then the host answers. An error becomes the
    /// answer.
    pub(in crate::client_host) fn ask_editor(
        &mut self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<bool, Error> {
        if self.guests.is_empty() {
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

    /// Returns the editor whose request the params name by the host's id, and the params with the
    /// editor's id. Before a session is open, this is the only reference of an elicitation.
    fn caused(&self, params: Option<&RawValue>) -> Option<(EditorId, Box<RawValue>)> {
        let mut members: BTreeMap<String, Box<RawValue>> = rpc::decode(params).ok()?;
        let named = members.get_mut("requestId")?;
        let Some(PendingAnswer::Forwarded(request)) = self.pending.get(&rpc::number(named)?) else {
            return None;
        };
        *named = request.id.clone();
        let params = rpc::encode(&members).ok()?;
        self.guests.listens(request.editor).then_some((request.editor, params))
    }
}
