//! Owns the methods of the port: params → a call on the team or its sources → a result.

mod asking;
mod branching;
mod budgets;
mod changes;
mod conflicts;
mod control;
mod events;
mod layout;
mod map;
mod methods;
mod openings;
mod read;
mod registry;
mod replaying;
mod runs;
mod scoped;
mod showing;
mod spawning;
mod status;
mod streams;
pub(in crate::serve) mod tasks;
mod tools;
mod undoing;
mod web;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::io::DuplexStream;

use super::elsewhere::visitor;
use super::progress::Progress;
use super::rights::{ByWeb, Right, permit};
use super::shared::Shared;
use super::{Caller, Refused};
use crate::wire::{self, Empty, RpcError};
pub(super) use branching::conversation;
use methods::REPLAY;
pub(super) use methods::{ATTACH, METHODS, Method};
pub(super) use openings::{ENDED as TOKEN_ENDED, record_use};
#[cfg(test)]
pub(super) use openings::{Limit, opening};
pub use scoped::call_about_tokens;

/// Methods that may take long, though an agent may call them.
const WAITS: [&str; 8] = [
    REPLAY,
    "wait_for_tasks",
    "request_access",
    "ask_owner",
    "start_helper",
    "start_run",
    "wait_for_runs",
    "end_runs",
];

/// Whether a method acts on agents, and may take as long as they do, or as a replay.
pub(super) fn steers(method: &str) -> bool {
    WAITS.contains(&method)
        || METHODS.iter().any(|(name, _, right, _)| *name == method && right.steers())
}

/// What opens a method on the web; None if there is no such method.
pub(super) fn by_web(method: &str) -> Option<ByWeb> {
    METHODS.iter().find(|(name, ..)| *name == method).map(|(.., web)| *web)
}

pub(super) async fn call(
    shared: &Shared,
    caller: Option<&Caller>,
    method: &str,
    params: Option<&RawValue>,
    progress: &Progress,
) -> Result<Box<RawValue>, RpcError> {
    let (name, method, right) = find(method)?;
    permit(name, right, caller)?;
    if let Some(Caller::Holder(holder)) = caller {
        openings::admit(shared, holder, name, method, params).await?;
    }
    // What comes from another host is for this one.
    let visits = matches!(caller, Some(Caller::Holder(holder)) if holder.is_visitor());
    let elsewhere = shared.sources.elsewhere().filter(|_| !visits && !method.is_of_port());
    if let Some(teams) = elsewhere.filter(|teams| teams.takes(params)) {
        let result = teams.call(visitor(caller)?, name, params).await?;
        return match caller {
            Some(Caller::Holder(_)) => {
                let result = serde_json::from_str(result.get());
                held(caller, method, result.map_err(|error| RpcError::new(500, error.to_string()))?)
            }
            _ => Ok(result),
        };
    }
    answer(shared, caller, method, params, progress).await
}

#[expect(clippy::too_many_lines, reason = "it is a table")]
async fn answer(
    shared: &Shared,
    caller: Option<&Caller>,
    method: Method,
    params: Option<&RawValue>,
    progress: &Progress,
) -> Result<Box<RawValue>, RpcError> {
    let result = match method {
        Method::Registry(method) => return registry::call(shared, caller, method, params).await,
        Method::ListAgents => {
            let Empty {} = parse(params)?;
            read::list_agents(shared).await
        }
        Method::TeamStatus => {
            let Empty {} = parse(params)?;
            status::team_status(shared).await
        }
        Method::AgentStatus => status::agent_status(shared, parse(params)?).await,
        Method::ListBlocked => read::list_blocked(shared, caller, parse(params)?).await,
        Method::ListBudgets => {
            let Empty {} = parse(params)?;
            budgets::list_budgets(shared)
        }
        Method::RaiseBudget => budgets::raise_budget(shared, &parse(params)?),
        Method::GetGraph => {
            let Empty {} = parse(params)?;
            return read::get_graph(shared).await;
        }
        Method::GetLayout => return layout::get_layout(shared, parse(params)?).await,
        Method::GetJournal => {
            let Empty {} = parse(params)?;
            read::get_journal(shared)
        }
        Method::ListEvents => return events::list_events(shared, caller, parse(params)?).await,
        Method::GetEvent => return events::get_event(shared, caller, parse(params)?).await,
        Method::SearchEvents => return events::search_events(shared, caller, parse(params)?).await,
        Method::GetDiff => return changes::get_diff(shared, caller, parse(params)?).await,
        Method::Blame => return changes::blame(shared, caller, parse(params)?).await,
        Method::ReplaySession => {
            replaying::replay_session(shared, caller, parse(params)?, progress).await
        }
        Method::Prompt => control::prompt(shared, caller, parse(params)?, progress).await,
        Method::Cancel => control::cancel(shared, parse(params)?).await,
        Method::NewSession => control::new_session(shared, caller, parse(params)?).await,
        Method::ForkSession => branching::fork_session(shared, caller, parse(params)?).await,
        Method::RewindSession => branching::rewind_session(shared, caller, parse(params)?).await,
        // The reader calls `attach` itself, unless other requests are running.
        Method::Attach => Err(RpcError::new(
            409,
            "`attach` takes the whole connection, and other requests of it are under way",
        )),
        Method::ShowBlocked => showing::show_blocked(shared, caller, parse(params)?).await,
        Method::ResolveBlocked => control::resolve_blocked(shared, caller, parse(params)?).await,
        Method::HotFiles => map::hot_files(shared, parse(params)?).await,
        Method::Overlaps => {
            let Empty {} = parse(params)?;
            map::overlaps(shared).await
        }
        Method::WhoCalls => map::who_calls(shared, parse(params)?).await,
        Method::Tool(method) => tools::call(shared, caller, method, params).await,
        Method::Run(method) => runs::call(shared, caller, method, params).await,
        Method::Stream(method) => streams::call(shared, method, params).await,
        Method::ListConflicts => conflicts::list_conflicts(shared, parse(params)?).await,
        Method::ShowConflict => showing::show_conflict(shared, parse(params)?).await,
        Method::ResolveConflict => {
            conflicts::resolve_conflict(shared, caller, parse(params)?).await
        }
        Method::Order(order) => control::order(shared, order, parse(params)?).await,
        Method::AddAgent => control::add_agent(shared, parse(params)?).await,
        Method::RemoveAgent => control::remove_agent(shared, parse(params)?).await,
        Method::Reload => {
            let Empty {} = parse(params)?;
            control::reload(shared).await
        }
        Method::Undo => undoing::undo(shared, parse(params)?).await,
        Method::Redo => undoing::redo(shared, parse(params)?).await,
        Method::WebLink => web::web_link(shared, caller, parse(params)?).await,
        Method::WebToken => web::web_token(shared, parse(params)?).await,
        Method::WebRevoke => web::web_revoke(shared, parse(params)?).await,
        Method::TokenCreate => scoped::token_create(shared, parse(params)?).await,
        Method::TokenList => {
            let Empty {} = parse(params)?;
            scoped::token_list(shared)
        }
        Method::TokenRevoke => scoped::token_revoke(shared, parse(params)?).await,
    }?;
    held(caller, method, result)
}

/// What a caller may have of a result.
fn held(caller: Option<&Caller>, method: Method, result: Value) -> Result<Box<RawValue>, RpcError> {
    match caller {
        Some(Caller::Holder(holder)) => raw(&openings::held(holder, method, result)?),
        _ => raw(&result),
    }
}

fn find(method: &str) -> Result<(&'static str, Method, Right), RpcError> {
    let found = METHODS.into_iter().find(|(name, ..)| *name == method);
    found.map(|(name, method, right, _)| (name, method, right)).ok_or_else(|| {
        let known = METHODS.map(|(name, ..)| name).join(", ");
        RpcError::new(404, format!("there is no method `{method}`; there are {known}"))
    })
}

/// Calls [`ATTACH`]; None: for the team as a whole.
pub(super) async fn attach(
    shared: &Shared,
    caller: Option<&Caller>,
    params: Option<&RawValue>,
) -> Result<Option<DuplexStream>, RpcError> {
    permit(ATTACH, Right::Person, caller)?;
    if let Some(Caller::Holder(holder)) = caller {
        openings::admit(shared, holder, ATTACH, Method::Attach, params).await?;
    }
    control::attach(shared, parse(params)?).await
}

/// Returns the schemas of a method's params and of its result.
pub(super) fn schemas(
    method: Method,
    requests: &mut SchemaGenerator,
    answers: &mut SchemaGenerator,
) -> (Schema, Schema) {
    let mut of = |params: fn(&mut SchemaGenerator) -> Schema,
                  result: fn(&mut SchemaGenerator) -> Schema| {
        (params(requests), result(answers))
    };
    match method {
        Method::Registry(method) => registry::schemas(method, requests, answers),
        Method::Tool(method) => tools::schemas(method, requests, answers),
        Method::Run(method) => runs::schemas(method, requests, answers),
        Method::Stream(method) => streams::schemas(method, requests, answers),
        Method::ListAgents => of(subschema::<Empty>, subschema::<Vec<wire::AgentDetails<'_>>>),
        Method::TeamStatus => of(subschema::<Empty>, subschema::<wire::TeamStatus<'_>>),
        Method::AgentStatus => {
            of(subschema::<wire::AgentStatusParams>, subschema::<wire::AgentReport<'_>>)
        }
        Method::ListBlocked => {
            of(subschema::<wire::ListBlockedParams>, subschema::<Vec<wire::Blocked<'_>>>)
        }
        Method::ListBudgets => of(subschema::<Empty>, subschema::<Vec<wire::Budget<'_>>>),
        Method::RaiseBudget => {
            of(subschema::<wire::RaiseBudgetParams>, subschema::<wire::Budget<'_>>)
        }
        Method::GetGraph => of(subschema::<Empty>, subschema::<wire::Graph<'_>>),
        Method::GetLayout => of(subschema::<wire::GetLayoutParams>, subschema::<wire::MapLayout>),
        Method::GetJournal => of(subschema::<Empty>, subschema::<wire::JournalState>),
        Method::ListEvents => {
            of(subschema::<wire::ListEventsParams>, subschema::<wire::Events<'_>>)
        }
        Method::GetEvent => of(subschema::<wire::GetEventParams>, subschema::<wire::Event<'_>>),
        Method::SearchEvents => {
            of(subschema::<wire::SearchEventsParams>, subschema::<wire::FoundEvents<'_>>)
        }
        Method::GetDiff => of(subschema::<wire::GetDiffParams>, subschema::<wire::Diff>),
        Method::Blame => of(subschema::<wire::BlameParams>, subschema::<wire::Blamed>),
        Method::ReplaySession => {
            of(subschema::<wire::ReplaySessionParams>, subschema::<wire::Replayed>)
        }
        Method::Prompt => of(subschema::<wire::PromptParams>, subschema::<wire::Prompted>),
        Method::Cancel => of(subschema::<wire::CancelParams>, subschema::<wire::Cancelled>),
        Method::NewSession => of(subschema::<wire::AgentParams>, subschema::<wire::NewSession>),
        Method::ForkSession => of(subschema::<wire::ForkSessionParams>, subschema::<wire::Forked>),
        Method::RewindSession => {
            of(subschema::<wire::RewindSessionParams>, subschema::<wire::Rewound>)
        }
        Method::Attach => of(subschema::<wire::AttachParams>, subschema::<Empty>),
        Method::ShowBlocked => {
            of(subschema::<wire::ShowBlockedParams>, subschema::<wire::ShownBlocked>)
        }
        Method::ResolveBlocked => {
            of(subschema::<wire::ResolveParams>, subschema::<wire::Blocked<'_>>)
        }
        Method::HotFiles => of(subschema::<wire::HotFilesParams>, subschema::<wire::HotFiles>),
        Method::Overlaps => of(subschema::<Empty>, subschema::<wire::OverlapList>),
        Method::WhoCalls => of(subschema::<wire::WhoCallsParams>, subschema::<wire::WhoCalls>),
        Method::ListConflicts => {
            of(subschema::<wire::ListConflictsParams>, subschema::<wire::ConflictList<'_>>)
        }
        Method::ShowConflict => {
            of(subschema::<wire::ShowConflictParams>, subschema::<wire::ShownConflict>)
        }
        Method::ResolveConflict => {
            of(subschema::<wire::ResolveConflictParams>, subschema::<wire::ConflictLine<'_>>)
        }
        Method::AddAgent => of(subschema::<wire::AddAgentParams>, subschema::<wire::Agent<'_>>),
        Method::Reload => of(subschema::<Empty>, subschema::<wire::Reloaded>),
        Method::Undo => of(subschema::<wire::UndoParams>, subschema::<wire::Undone>),
        Method::Redo => of(subschema::<wire::RedoParams>, subschema::<wire::Undone>),
        Method::WebLink => of(subschema::<wire::WebLinkParams>, subschema::<wire::NewWebLink>),
        Method::WebToken => of(subschema::<wire::WebTokenParams>, subschema::<wire::NewWebToken>),
        Method::WebRevoke => of(subschema::<wire::WebRevokeParams>, subschema::<wire::WebRevoked>),
        Method::TokenCreate => {
            of(subschema::<wire::TokenCreateParams>, subschema::<wire::NewScopedToken>)
        }
        Method::TokenList => of(subschema::<Empty>, subschema::<Vec<wire::ShownToken>>),
        Method::TokenRevoke => {
            of(subschema::<wire::TokenRevokeParams>, subschema::<wire::ShownToken>)
        }
        Method::Order(_) | Method::RemoveAgent => {
            of(subschema::<wire::AgentParams>, subschema::<wire::Agent<'_>>)
        }
    }
}

fn subschema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Reads the params of a method; missing ones are an empty object. Unknown keys are ignored.
fn parse<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, RpcError> {
    let params = params.map_or("{}", RawValue::get);
    if !params.starts_with('{') {
        // A derived reader would accept an array as the fields in their order.
        return Err(wrong("params: must be an object"));
    }
    let mut params = serde_json::Deserializer::from_str(params);
    serde_path_to_error::deserialize(&mut params).map_err(|error| {
        let key = error.path().to_string();
        let key = if key == "." { String::new() } else { format!(".{key}") };
        wrong(format!("params{key}: {}", error.inner()))
    })
}

fn wrong(message: impl Into<String>) -> RpcError {
    RpcError::new(400, message)
}

/// Encodes a result, which may contain raw JSON.
pub(super) fn raw(result: &impl Serialize) -> Result<Box<RawValue>, RpcError> {
    to_raw_value(result).map_err(|error| RpcError::new(500, error.to_string()))
}

fn json(value: &impl Serialize) -> Result<Value, RpcError> {
    serde_json::to_value(value).map_err(|error| RpcError::new(500, error.to_string()))
}

impl From<Refused> for RpcError {
    fn from(refused: Refused) -> Self {
        Self::new(refused.code, refused.message)
    }
}
