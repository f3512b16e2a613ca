//! The first prompt of a new session: a hint at the tools of the team, and what is done if the agent fails at
//! them. Some agents start the MCP servers of a session only with its first prompt.

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use super::host::Host;
use super::tool_form::names_mcp;
use super::{HostError, HostHandle, is_command, team_block};
use crate::model::{SessionId, ToolsForm};

impl<R, W> Host<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    /// The block that a prompt gets in front, if it is the first one of a session that has the tools.
    pub(super) fn hint(&self, session: &SessionId, blocks: &[Value]) -> Option<Value> {
        let hint = self.shared.settings.tools.as_ref()?.hint.as_ref()?;
        let form = self.sessions.new_form(session)?;
        let is_told = form != ToolsForm::None && !is_command(blocks);
        is_told.then(|| team_block(hint))
    }

    /// Begins to open a session anew, with the tools in the next form, if its first prompt has failed for
    /// them; the turn goes on with the same prompt. Else returns the error.
    pub(super) fn reopens(&mut self, session: &SessionId, error: HostError) -> Option<HostError> {
        let is_about = matches!(&error, HostError::Refused { message, .. } if names_mcp(message));
        if !is_about || !self.permits.branches().has_room() {
            return Some(error);
        }
        let Some(mailbox) = self.sender.upgrade() else { return Some(error) };
        let Some((form, blocks)) = self.sessions.take_first(session) else { return Some(error) };
        if !self.shared.tool_form.next(form) {
            return Some(error);
        }
        tracing::warn!(%session, %error, "the first prompt failed for the tools of the team: its session is opened anew with their next form");
        let handle = HostHandle { mailbox, shared: self.shared.clone() };
        let reopened = session.clone();
        let making = self.contents.spawn(async move {
            match handle.open_behind(&reopened).await {
                Ok(()) => Ok(blocks),
                Err(why) => {
                    tracing::warn!(session = %reopened, %why, "the session can't be opened anew");
                    Err(error)
                }
            }
        });
        self.sessions.making(session, making);
        None
    }
}
