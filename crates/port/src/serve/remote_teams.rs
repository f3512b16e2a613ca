//! Owns the interface to teams elsewhere: a hub has their lines, and they perform what its clients ask.

use std::collections::BTreeSet;
use std::fmt::Debug;

use serde_json::value::RawValue;

use super::{BoxFuture, Caller, Refused};
use crate::model::{Relayed, WebScope};
use crate::tokens::{TokenRight, Visitor};
use crate::wire::Facts;

/// The owner of what is asked with a control token, or without a token.
pub(super) const PERSON: &str = "person";

/// Teams elsewhere.
pub trait RemoteTeams: Debug + Send + Sync {
    /// Whether the port has no team of its own.
    fn is_hub(&self) -> bool;

    /// Whether a method with these params is for them, and not for the port's own team.
    fn takes(&self, method: &Facts, params: Option<&RawValue>) -> bool;

    /// The lines that say the present state, beside the maps of sessions.
    fn standing(&self) -> Vec<Relayed>;

    /// Has a method performed by the team, or the teams, that it is about.
    fn call<'a>(
        &'a self,
        by: Visitor,
        method: &'static Facts,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, Refused>>;
}

/// The visitor that a client of this port is at a team elsewhere.
pub(super) fn visitor(caller: Option<&Caller>) -> Result<Visitor, Refused> {
    use TokenRight::{Decide, Prompt, Read};
    let person = Visitor { owner: PERSON.to_owned(), ..Visitor::default() };
    Ok(match caller {
        Some(Caller::Holder(holder)) => holder.visitor(),
        Some(Caller::Person | Caller::Web(WebScope::Control)) => {
            Visitor { may: BTreeSet::from(TokenRight::ALL), ..person }
        }
        Some(Caller::Web(WebScope::Decide)) => Visitor { may: [Read, Decide].into(), ..person },
        Some(Caller::Web(WebScope::Read)) => Visitor { may: [Read].into(), ..person },
        Some(Caller::Lead(agent)) => Visitor {
            owner: agent.to_string(),
            may: [Read, Prompt, Decide].into(),
            agents: None,
            agent: Some(agent.clone()),
        },
        Some(Caller::Member(_)) => {
            let message = "only the orchestrator agent reaches agents of other hosts";
            return Err(Refused::new(403, message));
        }
        // As at a port of its own, it sees what anyone may.
        None => person,
    })
}
