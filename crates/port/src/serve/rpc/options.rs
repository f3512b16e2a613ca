//! Owns the methods about what agents offer to choose in their sessions.

use std::borrow::Cow;

use super::{MethodCall, Reply, reply};
use crate::client_host::{OptionValue, SessionChoices, SessionCommand, SessionOption};
use crate::model::{AgentId, SessionId};
use crate::serve::Refused;
use crate::wire::{
    ListSessionOptions, ListSessionOptionsParams, OfferedCommand, OfferedOption, OfferedValue,
    SessionOptions, SetSessionOption, SetSessionOptionParams,
};

pub(super) async fn list_session_options(
    call: MethodCall<'_>,
    params: ListSessionOptionsParams,
) -> Result<Reply<ListSessionOptions>, Refused> {
    let session = params.session_id.map(SessionId::new);
    let team = &call.shared.team;
    reply(&on_wire(&team.session_options(AgentId::new(params.agent_id), session).await?))
}

pub(super) async fn set_session_option(
    call: MethodCall<'_>,
    params: SetSessionOptionParams,
) -> Result<Reply<SetSessionOption>, Refused> {
    let SetSessionOptionParams { agent_id, session_id, option, value } = params;
    let (agent, session) = (AgentId::new(agent_id), session_id.map(SessionId::new));
    reply(&on_wire(&call.shared.team.set_session_option(agent, session, option, value).await?))
}

fn on_wire(choices: &SessionChoices) -> SessionOptions<'_> {
    let value = |it: &OptionValue| OfferedValue {
        value: Cow::from(it.id.clone()),
        name: Cow::from(it.name.clone()),
        description: it.description.clone().map(Cow::from),
    };
    let option = |it: &SessionOption| OfferedOption {
        id: Cow::from(it.id.clone()),
        name: Cow::from(it.name.clone()),
        category: it.category.clone().map(Cow::from),
        current: it.current.clone().map(Cow::from),
        values: it.values.iter().map(value).collect(),
    };
    let command = |it: &SessionCommand| OfferedCommand {
        name: Cow::from(it.name.clone()),
        description: it.description.clone().map(Cow::from),
    };
    SessionOptions {
        session_id: choices.session.as_str().into(),
        options: choices.options.iter().map(option).collect(),
        commands: choices.commands.iter().map(command).collect(),
    }
}
