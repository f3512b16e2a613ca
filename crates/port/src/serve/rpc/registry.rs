//! Owns the methods of the registry of sessions. They steer no agent.

use std::borrow::Cow;

use super::{MethodCall, Reply, encoded, reply};
use crate::model::{AgentId, SessionId, SessionKey, SessionMode};
use crate::serve::shared::Shared;
use crate::serve::{Caller, Refused, rights};
use crate::session::{self, Answer, RegistryError, RegistryRequest, Upsert};
use crate::wire::{
    self, Active, AddContextItems, AddContextParams, CloseSession, Closed, CreateSession,
    CreateSessionParams, GetSessionState, ListSessions, ListSessionsParams, Listed, Method, Mode,
    NameOf, SessionState, SetActiveSession, SetOrchestratorProviders, SetProvidersParams,
};

pub(super) async fn list_sessions(
    call: MethodCall<'_>,
    params: ListSessionsParams,
) -> Result<Reply<ListSessions>, Refused> {
    let request = RegistryRequest::List { agent: params.agent_id.map(AgentId::new) };
    match call.shared.sources.registry(request).await? {
        Answer::List(list) => reply(&list.iter().map(row).collect()),
        _ => Err(other()),
    }
}

pub(super) async fn create_session(
    call: MethodCall<'_>,
    params: CreateSessionParams,
) -> Result<Reply<CreateSession>, Refused> {
    session(call, RegistryRequest::Upsert(upsert(params)?)).await
}

pub(super) async fn close_session(
    call: MethodCall<'_>,
    key: wire::SessionKey,
) -> Result<Reply<CloseSession>, Refused> {
    match change(call, RegistryRequest::Close(session_key(key)?)).await? {
        Answer::Closed(closed) => reply(&Closed { closed }),
        _ => Err(other()),
    }
}

pub(super) async fn set_active_session(
    call: MethodCall<'_>,
    key: wire::SessionKey,
) -> Result<Reply<SetActiveSession>, Refused> {
    match change(call, RegistryRequest::Activate(session_key(key)?)).await? {
        Answer::Active => reply(&Active { active: true }),
        _ => Err(other()),
    }
}

pub(super) async fn get_session_state(
    call: MethodCall<'_>,
    key: wire::SessionKey,
) -> Result<Reply<GetSessionState>, Refused> {
    session(call, RegistryRequest::Get(session_key(key)?)).await
}

pub(super) async fn set_orchestrator_providers(
    call: MethodCall<'_>,
    params: SetProvidersParams,
) -> Result<Reply<SetOrchestratorProviders>, Refused> {
    let SetProvidersParams { agent_id, session_id, providers } = params;
    let key = session_key(wire::SessionKey { agent_id, session_id })?;
    session(call, RegistryRequest::SetProviders { key, providers: keys(providers)? }).await
}

pub(super) async fn add_context_items(
    call: MethodCall<'_>,
    params: AddContextParams,
) -> Result<Reply<AddContextItems>, Refused> {
    let AddContextParams { agent_id, session_id, items } = params;
    let key = session_key(wire::SessionKey { agent_id, session_id })?;
    session(call, RegistryRequest::AddContext { key, items }).await
}

/// Makes a request whose answer is a session.
async fn session<M>(call: MethodCall<'_>, request: RegistryRequest) -> Result<Reply<M>, Refused>
where
    M: for<'a> Method<Result<'a> = SessionState<'a>>,
{
    let MethodCall { shared, caller, .. } = call;
    let Answer::Session(session) = change(call, request).await? else { return Err(other()) };
    let agent = &session.key.agent;
    let is_open = if shared.team.keeps(agent) {
        caller.is_some_and(|caller| rights::opens(caller, agent))
    } else {
        caller.is_some_and(Caller::is_person) || other_team(shared, &session).is_none()
    };
    let state = state(&session);
    reply(&if is_open { state } else { withheld(state) })
}

/// Makes a request, if the caller may make its change.
async fn change(call: MethodCall<'_>, request: RegistryRequest) -> Result<Answer, Refused> {
    let MethodCall { shared, caller, .. } = call;
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
    Ok(shared.sources.registry(request).await?)
}

/// The error if the registry answers what was not asked.
fn other() -> Refused {
    Refused::new(500, "the registry of sessions gave an answer to another request")
}

/// The team that recorded a session, unless it is this one.
fn other_team<'a>(shared: &Shared, session: &'a session::Session) -> Option<&'a str> {
    session.team.as_deref().filter(|team| shared.sources.team() != Some(team))
}

fn upsert(params: CreateSessionParams) -> Result<Upsert, Refused> {
    let CreateSessionParams { agent_id, session_id, summary, history, context, .. } = params;
    Ok(Upsert {
        key: session_key(wire::SessionKey { agent_id, session_id })?,
        mode: match params.mode {
            Mode::SingleAgent => SessionMode::SingleAgent,
            Mode::Orchestrator => SessionMode::Orchestrator,
        },
        model: params.model.as_ref().map(encoded).transpose()?,
        summary,
        history,
        context,
        providers: params.providers.map(keys).transpose()?,
        team: None,
        owner: None,
    })
}

fn keys(keys: Vec<wire::SessionKey>) -> Result<Vec<SessionKey>, Refused> {
    keys.into_iter().map(session_key).collect()
}

fn session_key(key: wire::SessionKey) -> Result<SessionKey, Refused> {
    if key.agent_id.is_empty() || key.session_id.is_empty() {
        return Err(Refused::wrong("`agent_id` and `session_id` must not be empty"));
    }
    Ok(SessionKey::new(AgentId::new(key.agent_id), SessionId::new(key.session_id)))
}

fn row(listed: &session::Listed) -> Listed<'_> {
    Listed {
        agent_id: listed.key.agent.as_str().into(),
        session_id: listed.key.session.as_str().into(),
        mode: NameOf::from_name(&listed.mode),
        model: Cow::Borrowed(&listed.model),
        owner: listed.owner.as_deref().map(Cow::from),
        updated_at_ms: listed.updated_at_ms,
        is_active: listed.is_active,
    }
}

fn state(session: &session::Session) -> SessionState<'_> {
    SessionState {
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

/// Leaves out what was said in a session.
fn withheld(state: SessionState<'_>) -> SessionState<'_> {
    let (history, context) = (Cow::default(), Cow::default());
    let (summary, rest) = (Cow::Owned(None), Cow::default());
    SessionState { history, summary, context, withheld: true, rest, ..state }
}

impl From<RegistryError> for Refused {
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
