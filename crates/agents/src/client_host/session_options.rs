//! The choice of a session's mode, model and other options for whoever asks.

use super::choice;
use super::messages::HostMsg;
use super::offers::SessionChoices;
use super::{HostError, HostHandle};
use crate::model::SessionId;

impl HostHandle {
    /// Returns what a session offers to choose, what is chosen, and its commands.
    pub async fn session_options(
        &self,
        session: Option<SessionId>,
    ) -> Result<SessionChoices, HostError> {
        self.ask(|reply| HostMsg::Options { session, reply }).await
    }

    /// Has the agent choose a value of an option. The option is named by its id, or by what it is about; the
    /// value by its id or name.
    pub async fn set_session_option(
        &self,
        session: Option<SessionId>,
        option: &str,
        value: &str,
    ) -> Result<SessionChoices, HostError> {
        let SessionChoices { session, options, .. } = self.session_options(session).await?;
        let by_id = options.iter().find(|it| it.id == option);
        let found = by_id.or_else(|| options.iter().find(|it| it.is(option)));
        let found = found.ok_or_else(|| {
            let ids: Vec<_> = options.iter().map(|it| &it.id).collect();
            let offered = choice::list(&ids);
            HostError::NotOffered { what: "option", wanted: option.to_owned(), offered }
        })?;
        self.set(session.as_str(), choice::choose("value", value, &found.choices())?).await?;
        self.session_options(Some(session)).await
    }
}
