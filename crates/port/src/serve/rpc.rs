//! Owns the methods of the port: params → a call on the team or its sources → a result.

mod admission;
mod branches;
mod budgets;
mod changes;
mod conflicts;
mod control;
mod delegated;
mod events;
mod evidence;
mod forks;
mod grants;
mod helpers;
mod highlight;
mod layout;
mod map;
mod options;
mod preview;
mod prompts;
mod questions;
mod read;
mod registry;
mod replay;
mod reply;
mod reviews;
mod runs;
mod scoped;
mod status;
mod streams;
mod table;
pub(in crate::serve) mod tasks;
mod undo;
mod web;

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::value::RawValue;
use tokio::io::DuplexStream;

use super::progress::Progress;
use super::remote_teams::visitor;
use super::rights::permit;
use super::shared::Shared;
use super::{Caller, Refused};
use crate::wire::{AtHub, Attach, ByWeb, Facts, Method as _, MethodNames};
pub(super) use admission::{ENDED as TOKEN_ENDED, record_use};
pub(super) use forks::conversation;
pub use grants::grant_row;
pub(super) use preview::reason;
pub(super) use reply::encoded;
use reply::{MethodCall, Reply, parse, reply};
pub use scoped::call_about_tokens;
pub(super) use scoped::revoke;
pub(super) use table::METHODS;
use table::find;

/// The method after which the connection speaks the agent's protocol.
pub(super) const ATTACH: &str = Attach::FACTS.name;

/// The facts of a method; None if there is none of that name.
pub fn facts(method: &str) -> Option<&'static Facts> {
    find(method).map(|row| &row.facts)
}

/// Where names are in the params and in the result of a method; None if there is none of that name.
pub fn names(method: &str) -> Option<&'static MethodNames> {
    static NAMES: LazyLock<HashMap<&str, MethodNames>> =
        LazyLock::new(|| METHODS.iter().map(|row| (row.facts.name, (row.names)())).collect());
    NAMES.get(method)
}

/// Whether a method acts on agents, and may take as long as they do, or as a replay.
pub(super) fn steers(method: &str) -> bool {
    facts(method).is_some_and(Facts::steers)
}

/// The scopes that open a method on the web; None if there is no such method.
pub(super) fn by_web(method: &str) -> Option<ByWeb> {
    facts(method).map(|facts| facts.web)
}

pub(super) async fn call(
    shared: &Shared,
    caller: Option<&Caller>,
    method: &str,
    params: Option<&RawValue>,
    progress: &Progress,
) -> Result<Box<RawValue>, Refused> {
    let row = find(method).ok_or_else(|| unknown(method))?;
    let facts = &row.facts;
    permit(facts.name, facts.port, caller)?;
    if let Some(Caller::Holder(holder)) = caller {
        admission::admit(shared, holder, facts, params).await?;
    }
    // What comes from another host is for this one.
    let visits = matches!(caller, Some(Caller::Holder(holder)) if holder.is_visitor());
    let elsewhere = shared.sources.elsewhere().filter(|_| !visits && facts.hub != AtHub::Port);
    let result = match elsewhere.filter(|teams| teams.takes(facts, params)) {
        Some(teams) => teams.call(visitor(caller)?, facts, params).await?,
        None => (row.perform)(MethodCall { shared, caller, progress }, params).await?,
    };
    match caller {
        Some(Caller::Holder(holder)) => admission::held(holder, facts, result),
        _ => Ok(result),
    }
}

fn unknown(method: &str) -> Refused {
    let known: Vec<_> = METHODS.iter().map(|row| row.facts.name).collect();
    let known = known.join(", ");
    Refused::new(404, format!("there is no method `{method}`; there are {known}"))
}

/// Calls [`ATTACH`]; None: for the team as a whole.
pub(super) async fn attach(
    shared: &Shared,
    caller: Option<&Caller>,
    params: Option<&RawValue>,
) -> Result<Option<DuplexStream>, Refused> {
    permit(ATTACH, Attach::FACTS.port, caller)?;
    if let Some(Caller::Holder(holder)) = caller {
        admission::admit(shared, holder, &Attach::FACTS, params).await?;
    }
    control::attach(shared, parse(params)?).await
}
