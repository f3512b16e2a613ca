//! Owns the methods of the registry of sessions. They steer no agent.

use std::borrow::Cow;

use schemars::{Schema, SchemaGenerator};
use serde_json::value::RawValue;

use super::{parse, raw, wrong};
use crate::model::{AgentId, SessionId, SessionKey, SessionMode};
use crate::serve::shared::Shared;
use crate::serve::{Caller, rights};
use crate::session::{self, Answer, Raw, RegistryError, RegistryRequest, Upsert};
use crate::wire::{
    self, Active, AddContextParams, Closed, CreateSessionParams, ListSessionsParams, Listed, Mode,
    NameOf, RpcError, SessionState, SetProvidersParams,
};

/// The registry's methods, each of which is one registry request.
#[derive(Clone, Copy, Debug)]
pub(in crate::serve) enum Method {
    List,
    Create,
    Close,
    Activate,
    Get,
    SetProviders,
    AddContext,
}

pub(super) async fn call(
    shared: &Shared,
    caller: Option<&Caller>,
    method: Method,
    params: Option<&RawValue>,
) -> Result<Raw, RpcError> {
    let request = match method {
        Method::List => {
            let ListSessionsParams { agent_id } = parse(params)?;
            RegistryRequest::List { agent: agent_id.map(AgentId::new) }
        }
        Method::Create => {
            RegistryRequest::Upsert(parse::<CreateSessionParams>(params)?.try_into()?)
        }
        Method::Close => RegistryRequest::Close(parse::<wire::SessionKey>(params)?.try_into()?),
        Method::Activate => {
            RegistryRequest::Activate(parse::<wire::SessionKey>(params)?.try_into()?)
        }
        Method::Get => RegistryRequest::Get(parse::<wire::SessionKey>(params)?.try_into()?),
        Method::SetProviders => {
            let SetProvidersParams { agent_id, session_id, providers } = parse(params)?;
            let key = wire::SessionKey { agent_id, session_id }.try_into()?;
            RegistryRequest::SetProviders { key, providers: keys(providers)? }
        }
        Method::AddContext => {
            let AddContextParams { agent_id, session_id, items } = parse(params)?;
            RegistryRequest::AddContext {
                key: wire::SessionKey { agent_id, session_id }.try_into()?,
                items,
            }
        }
    };
    if let Some(key) = request.changes() {
        if shared.team.keeps(&key.agent) {
            rights::permit_session(&key.agent, caller)?;
        } else if !caller.is_some_and(Caller::is_person) {
            let found = shared.sources.registry(RegistryRequest::Get(key.clone())).await;
            if let Ok(Answer::Session(session)) = &found
                && let Some(team) = other_team(shared, session)
            {
                return Err(rights::of_another_team(team, caller));
            }
        }
    }
    match shared.sources.registry(request).await? {
        Answer::List(list) => raw(&list.iter().map(Listed::from).collect::<Vec<_>>()),
        Answer::Session(session) => {
            let agent = &session.key.agent;
            let is_open = if shared.team.keeps(agent) {
                caller.is_some_and(|caller| rights::opens(caller, agent))
            } else {
                caller.is_some_and(Caller::is_person) || other_team(shared, &session).is_none()
            };
            let state = SessionState::from(&*session);
            raw(&if is_open { state } else { withheld(state) })
        }
        Answer::Closed(closed) => raw(&Closed { closed }),
        Answer::Active => raw(&Active { active: true }),
    }
}

/// The team that recorded a session, unless it is this one.
fn other_team<'a>(shared: &Shared, session: &'a session::Session) -> Option<&'a str> {
    session.team.as_deref().filter(|team| shared.sources.team() != Some(team))
}

/// Returns the schemas of a method's params and of its result.
pub(super) fn schemas(
    method: Method,
    requests: &mut SchemaGenerator,
    answers: &mut SchemaGenerator,
) -> (Schema, Schema) {
    let params = match method {
        Method::List => requests.subschema_for::<ListSessionsParams>(),
        Method::Create => requests.subschema_for::<CreateSessionParams>(),
        Method::Close | Method::Activate | Method::Get => {
            requests.subschema_for::<wire::SessionKey>()
        }
        Method::SetProviders => requests.subschema_for::<SetProvidersParams>(),
        Method::AddContext => requests.subschema_for::<AddContextParams>(),
    };
    let result = match method {
        Method::List => answers.subschema_for::<Vec<Listed<'_>>>(),
        Method::Close => answers.subschema_for::<Closed>(),
        Method::Activate => answers.subschema_for::<Active>(),
        Method::Create | Method::Get | Method::SetProviders | Method::AddContext => {
            answers.subschema_for::<SessionState<'_>>()
        }
    };
    (params, result)
}

impl TryFrom<CreateSessionParams> for Upsert {
    type Error = RpcError;

    fn try_from(params: CreateSessionParams) -> Result<Self, RpcError> {
        let CreateSessionParams { agent_id, session_id, summary, history, context, .. } = params;
        Ok(Self {
            key: wire::SessionKey { agent_id, session_id }.try_into()?,
            mode: match params.mode {
                Mode::SingleAgent => SessionMode::SingleAgent,
                Mode::Orchestrator => SessionMode::Orchestrator,
            },
            model: params.model.as_ref().map(raw).transpose()?,
            summary,
            history,
            context,
            providers: params.providers.map(keys).transpose()?,
            team: None,
            owner: None,
        })
    }
}

fn keys(keys: Vec<wire::SessionKey>) -> Result<Vec<SessionKey>, RpcError> {
    keys.into_iter().map(SessionKey::try_from).collect()
}

impl TryFrom<wire::SessionKey> for SessionKey {
    type Error = RpcError;

    fn try_from(key: wire::SessionKey) -> Result<Self, RpcError> {
        if key.agent_id.is_empty() || key.session_id.is_empty() {
            return Err(wrong("`agent_id` and `session_id` must not be empty"));
        }
        Ok(Self::new(AgentId::new(key.agent_id), SessionId::new(key.session_id)))
    }
}

impl<'a> From<&'a session::Listed> for Listed<'a> {
    fn from(listed: &'a session::Listed) -> Self {
        Self {
            agent_id: listed.key.agent.as_str().into(),
            session_id: listed.key.session.as_str().into(),
            mode: NameOf::from_name(&listed.mode),
            model: Cow::Borrowed(&listed.model),
            owner: listed.owner.as_deref().map(Cow::from),
            updated_at_ms: listed.updated_at_ms,
            is_active: listed.is_active,
        }
    }
}

impl<'a> From<&'a session::Session> for SessionState<'a> {
    fn from(session: &'a session::Session) -> Self {
        Self {
            agent_id: session.key.agent.as_str().into(),
            session_id: session.key.session.as_str().into(),
            mode: NameOf::from_name(&session.mode),
            model: Cow::Borrowed(&session.model),
            history: (&*session.history).into(),
            summary: Cow::Borrowed(&session.summary),
            context: (&*session.context).into(),
            providers: (&*session.providers).into(),
            team: session.team.as_deref().map(Cow::from),
            owner: session.owner.as_deref().map(Cow::from),
            created_at_ms: session.created_at_ms,
            updated_at_ms: session.updated_at_ms,
            withheld: false,
            rest: Cow::Borrowed(&session.rest),
        }
    }
}

/// Leaves out what was said in a session.
fn withheld(state: SessionState<'_>) -> SessionState<'_> {
    let (history, context) = (Cow::default(), Cow::default());
    let (summary, rest) = (Cow::Owned(None), Cow::default());
    SessionState { history, summary, context, withheld: true, rest, ..state }
}

impl From<RegistryError> for RpcError {
    fn from(error: RegistryError) -> Self {
        let code = match error {
            RegistryError::Unknown(_) => 404,
            RegistryError::TooLarge { .. }
            | RegistryError::Full { .. }
            | RegistryError::Stopping => 409,
            RegistryError::Locked { .. } | RegistryError::Io { .. } => 500,
        };
        Self::new(code, error.to_string())
    }
}
