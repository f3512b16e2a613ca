//! Owns the methods of the registry of sessions. They steer no agent.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{parse, raw, wrong};
use crate::model::{AgentId, SessionId, SessionKey, SessionMode};
use crate::serve::shared::Shared;
use crate::serve::wire::RpcError;
use crate::serve::{Caller, rights};
use crate::session::{self, Answer, Raw, RegistryError, RegistryRequest, Upsert};

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

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ListSessionsParams")]
struct ListSessions {
    /// Only sessions of this agent.
    #[serde(default, deserialize_with = "super::name")]
    agent_id: Option<String>,
}

/// Params that name one session.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SessionKey")]
struct Key {
    #[schemars(length(min = 1))]
    agent_id: String,
    #[schemars(length(min = 1))]
    session_id: String,
}

/// Fields that are left out or null stay unchanged.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "CreateSessionParams")]
struct CreateSession {
    #[schemars(length(min = 1))]
    agent_id: String,
    #[schemars(length(min = 1))]
    session_id: String,
    mode: Mode,
    model: Option<Model>,
    summary: Option<String>,
    #[schemars(with = "Option<Vec<Value>>")]
    history: Option<Vec<Raw>>,
    #[schemars(with = "Option<Vec<Value>>")]
    context: Option<Vec<Raw>>,
    /// If not empty, the mode is `orchestrator`.
    providers: Option<Vec<Key>>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    SingleAgent,
    Orchestrator,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Model {
    model_id: String,
    /// Display name; none if left out.
    name: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "SetProvidersParams")]
struct SetProviders {
    #[schemars(length(min = 1))]
    agent_id: String,
    #[schemars(length(min = 1))]
    session_id: String,
    /// The mode becomes `orchestrator`, even if this is empty.
    providers: Vec<Key>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AddContextParams")]
struct AddContext {
    #[schemars(length(min = 1))]
    agent_id: String,
    #[schemars(length(min = 1))]
    session_id: String,
    /// Appended to the existing ones.
    #[schemars(with = "Vec<Value>")]
    items: Vec<Raw>,
}

/// A session in the list.
#[derive(Serialize, JsonSchema)]
struct Listed<'a> {
    agent_id: &'a str,
    session_id: &'a str,
    #[schemars(extend("enum" = SessionMode::ALL.map(SessionMode::as_str)))]
    mode: &'a str,
    #[schemars(with = "Option<Model>")]
    model: &'a Option<Raw>,
    /// Who answers for it; null: nobody is known.
    owner: Option<&'a str>,
    updated_at_ms: u64,
    is_active: bool,
}

/// A session's entry in the registry.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SessionState")]
struct State<'a> {
    agent_id: &'a str,
    session_id: &'a str,
    #[schemars(extend("enum" = SessionMode::ALL.map(SessionMode::as_str)))]
    mode: &'a str,
    #[schemars(with = "Option<Model>")]
    model: &'a Option<Raw>,
    #[schemars(with = "Vec<Value>")]
    history: &'a [Raw],
    #[schemars(with = "Option<String>")]
    summary: &'a Option<Raw>,
    #[schemars(with = "Vec<Value>")]
    context: &'a [Raw],
    #[schemars(with = "Vec<Key>")]
    providers: &'a [Raw],
    /// The team that recorded it; left out if a client made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    team: Option<&'a str>,
    /// Who answers for it; left out if nobody is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a str>,
    created_at_ms: u64,
    updated_at_ms: u64,
    /// Only if true: `history`, `summary` and `context` are left empty, since they are content of a
    /// team's agent, and the caller has no token that opens it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    withheld: bool,
    /// Fields of other versions.
    #[serde(flatten)]
    #[schemars(skip)]
    rest: Option<&'a BTreeMap<String, Raw>>,
}

#[derive(Serialize, JsonSchema)]
struct Closed {
    /// Whether the session existed.
    closed: bool,
}

#[derive(Serialize, JsonSchema)]
struct Active {
    active: bool,
}

pub(super) async fn call(
    shared: &Shared,
    caller: Option<&Caller>,
    method: Method,
    params: Option<&RawValue>,
) -> Result<Raw, RpcError> {
    let request = match method {
        Method::List => {
            let ListSessions { agent_id } = parse(params)?;
            RegistryRequest::List { agent: agent_id.map(AgentId::new) }
        }
        Method::Create => RegistryRequest::Upsert(parse::<CreateSession>(params)?.try_into()?),
        Method::Close => RegistryRequest::Close(parse::<Key>(params)?.try_into()?),
        Method::Activate => RegistryRequest::Activate(parse::<Key>(params)?.try_into()?),
        Method::Get => RegistryRequest::Get(parse::<Key>(params)?.try_into()?),
        Method::SetProviders => {
            let SetProviders { agent_id, session_id, providers } = parse(params)?;
            let key = Key { agent_id, session_id }.try_into()?;
            RegistryRequest::SetProviders { key, providers: keys(providers)? }
        }
        Method::AddContext => {
            let AddContext { agent_id, session_id, items } = parse(params)?;
            RegistryRequest::AddContext { key: Key { agent_id, session_id }.try_into()?, items }
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
            let state = State::from(&*session);
            raw(&if is_open { state } else { state.withheld() })
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
        Method::List => requests.subschema_for::<ListSessions>(),
        Method::Create => requests.subschema_for::<CreateSession>(),
        Method::Close | Method::Activate | Method::Get => requests.subschema_for::<Key>(),
        Method::SetProviders => requests.subschema_for::<SetProviders>(),
        Method::AddContext => requests.subschema_for::<AddContext>(),
    };
    let result = match method {
        Method::List => answers.subschema_for::<Vec<Listed<'_>>>(),
        Method::Close => answers.subschema_for::<Closed>(),
        Method::Activate => answers.subschema_for::<Active>(),
        Method::Create | Method::Get | Method::SetProviders | Method::AddContext => {
            answers.subschema_for::<State<'_>>()
        }
    };
    (params, result)
}

impl TryFrom<CreateSession> for Upsert {
    type Error = RpcError;

    fn try_from(params: CreateSession) -> Result<Self, RpcError> {
        let CreateSession { agent_id, session_id, summary, history, context, .. } = params;
        Ok(Self {
            key: Key { agent_id, session_id }.try_into()?,
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

fn keys(keys: Vec<Key>) -> Result<Vec<SessionKey>, RpcError> {
    keys.into_iter().map(SessionKey::try_from).collect()
}

impl TryFrom<Key> for SessionKey {
    type Error = RpcError;

    fn try_from(key: Key) -> Result<Self, RpcError> {
        if key.agent_id.is_empty() || key.session_id.is_empty() {
            return Err(wrong("`agent_id` and `session_id` must not be empty"));
        }
        Ok(Self::new(AgentId::new(key.agent_id), SessionId::new(key.session_id)))
    }
}

impl<'a> From<&'a session::Listed> for Listed<'a> {
    fn from(listed: &'a session::Listed) -> Self {
        Self {
            agent_id: listed.key.agent.as_str(),
            session_id: listed.key.session.as_str(),
            mode: &listed.mode,
            model: &listed.model,
            owner: listed.owner.as_deref(),
            updated_at_ms: listed.updated_at_ms,
            is_active: listed.is_active,
        }
    }
}

impl<'a> From<&'a session::Session> for State<'a> {
    fn from(session: &'a session::Session) -> Self {
        Self {
            agent_id: session.key.agent.as_str(),
            session_id: session.key.session.as_str(),
            mode: &session.mode,
            model: &session.model,
            history: &session.history,
            summary: &session.summary,
            context: &session.context,
            providers: &session.providers,
            team: session.team.as_deref(),
            owner: session.owner.as_deref(),
            created_at_ms: session.created_at_ms,
            updated_at_ms: session.updated_at_ms,
            withheld: false,
            rest: Some(&session.rest),
        }
    }
}

impl State<'_> {
    /// Leaves out what was said in the session.
    fn withheld(self) -> Self {
        Self { history: &[], summary: &None, context: &[], withheld: true, rest: None, ..self }
    }
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
