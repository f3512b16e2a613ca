//! From the agent to an editor: what is about the editor's sessions, and what it serves itself.

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
    /// Passes a notification on if it is about an editor's session, and says whether it is. One
    /// that names no session (`elicitation/complete`) every editor hears: who does not know what
    /// it is about ignores it.
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

    /// Returns the editor whose request params name by the id that the host gave it, and the params
    /// with the id that the editor did: before a session is open, an elicitation has nothing else
    /// to be tied to.
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
