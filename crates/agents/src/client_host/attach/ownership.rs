//! The owner of each session, and the sessions of an editor that leaves.

use agent_client_protocol_schema::v1::Error;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::client_host::guests::{Claimed, EditorId};
use crate::client_host::host::Host;
use crate::client_host::sessions::Claim;
use crate::client_host::{HostError, permissions, rpc};
use crate::model::SessionId;
use crate::model::code;

impl<R, W> Host<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    /// Cuts off the editors that do not read.
    pub(in crate::client_host) fn cut_off_editors(&mut self) {
        while let Some(editor) = self.guests.overfull.pop() {
            tracing::warn!("an attached editor does not read: it is cut off");
            self.leave(editor);
            self.guests.remove(editor);
        }
    }

    /// Lets an editor use a session: its own, an unknown one, or one that another editor left,
    /// which becomes its own.
    pub(super) fn claim(
        &mut self,
        editor: EditorId,
        session: &SessionId,
    ) -> Result<Claimed, Error> {
        if let Some(owner) = self.guests.owner(session) {
            let its = owner == editor;
            return its.then_some(Claimed::Its).ok_or_else(|| foreign(session, "another editor"));
        }
        match self.sessions.claim(session) {
            Claim::Unknown => Ok(Claimed::Nobodys),
            Claim::Given => {
                self.guests.own(session, editor);
                self.offers.forget(session);
                Ok(Claimed::Left)
            }
            Claim::Kept => Err(foreign(session, "the team")),
        }
    }

    /// Assigns the session that the agent opened to the editor, or to the host if the editor has
    /// left; false if it already has another owner.
    pub(super) fn open_for(&mut self, editor: EditorId, session: &SessionId) -> bool {
        if self.claim(editor, session).is_err() {
            return false;
        }
        if self.guests.listens(editor) {
            self.guests.own(session, editor);
        } else {
            self.guests.disown(session);
            self.sessions.adopt(session.clone(), false);
        }
        true
    }

    /// Returns a session that could not be loaded to its previous owner.
    pub(super) fn revert_claim(&mut self, editor: EditorId, session: SessionId, claim: Claimed) {
        match claim {
            Claimed::Nobodys => self.forget(editor, &session),
            Claimed::Left if self.guests.owner(&session) == Some(editor) => {
                self.guests.disown(&session);
                self.sessions.adopt(session, false);
            }
            Claimed::Its | Claimed::Left => {}
        }
    }

    /// Removes a session that has ended, even if the host owns it now.
    pub(super) fn forget(&mut self, editor: EditorId, session: &SessionId) {
        if self.guests.owner(session).is_none_or(|owner| owner == editor) {
            self.guests.disown(session);
            self.sessions.claim(session);
        }
    }

    /// If the host owns the session now, begins its next turn.
    pub(super) fn turn_ended(&mut self, session: &SessionId) {
        if !self.guests.has(session) && !self.prompted(session) {
            self.sessions.end_turn(session, Err(HostError::Withdrawn));
            self.begin_turn(session);
        }
    }

    /// Detaches an editor: fails the requests to it, cancels its turns, and gives its sessions to
    /// the host.
    pub(super) fn leave(&mut self, editor: EditorId) {
        for asked in self.guests.leave(editor) {
            let line = if asked.is_permission {
                cancelled_permission(&asked.id)
            } else {
                let error =
                    rpc::failure(code::INTERNAL_ERROR, "The editor that was asked has left");
                rpc::response(&asked.id, Err(&error))
            };
            self.out.push(line);
        }
        for session in self.guests.sessions_of(editor) {
            self.guests.disown(&session);
            let runs = self.prompted(&session);
            if runs {
                self.send_cancel(&session);
            }
            self.sessions.adopt(session, runs);
        }
        self.release(editor);
    }

    /// Removes an editor that left once all its requests are answered.
    pub(super) fn release(&mut self, editor: EditorId) {
        if !self.guests.listens(editor) && !self.forwarded().any(|request| request.editor == editor)
        {
            self.guests.remove(editor);
        }
    }

    /// Cancels an editor's turn on its behalf.
    pub(in crate::client_host) fn cancel_editors_turn(&mut self, session: &SessionId) -> bool {
        if !self.prompted(session) {
            return false;
        }
        self.send_cancel(session);
        self.settle_permissions(session);
        true
    }

    /// Answers the permission requests of a cancelled turn, so that none keeps it from ending.
    pub(super) fn settle_permissions(&mut self, session: &SessionId) {
        for asked in self.guests.withdraw_permissions(session) {
            self.out.push(cancelled_permission(&asked.id));
        }
    }

    fn send_cancel(&mut self, session: &SessionId) {
        let params = json!({ "sessionId": session.as_str() });
        self.out.push(rpc::notification("session/cancel", &params));
    }
}

fn cancelled_permission(id: &RawValue) -> bytes::Bytes {
    let outcome = rpc::encode(&permissions::outcome(None));
    rpc::response(id, outcome.as_deref())
}

fn foreign(session: &SessionId, owner: &str) -> Error {
    rpc::failure(
        code::INVALID_PARAMS,
        format!("Session `{session}` is in use by {owner}: open one of your own"),
    )
}
