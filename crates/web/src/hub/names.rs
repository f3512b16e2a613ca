//! The names of a team's agents and of what waits there, as a hub has them: with the host before them, as
//! `a/ui`. Which parts of a line, of params or of a result are names follows from their types. Pure.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::serve::{self, PROGRAM};
use crate::wire::{AtHub, Facts, NameKind, NamePlaces, ServerLine};

/// The prefix of a decider that is an agent.
const BY_AGENT: &str = "agent:";

/// The field of params that names a host alone.
const HOST: &str = "host";

/// Where names are in a line of each type.
static LINES: LazyLock<HashMap<&str, NamePlaces>> = LazyLock::new(ServerLine::names);

/// Puts the host before all names in a line of this type.
pub(super) fn line_to_hub(line: &mut Value, kind: &str, host: &str) {
    if let Some(places) = LINES.get(kind) {
        places.rename(line, &mut |kind, name| at_hub(kind, name, host));
    }
}

/// Puts the host before all names in the result of a method; before that of a stream where all are listed.
pub(super) fn result_to_hub(result: &mut Value, method: &Facts, host: &str) {
    let Some(names) = serve::names(method.name) else { return };
    let is_list = matches!(method.hub, AtHub::All(_));
    names.result.rename(result, &mut |kind, name| match kind {
        NameKind::Stream if !is_list => None,
        _ => at_hub(kind, name, host),
    });
}

/// The name that a hub has; None: the same.
fn at_hub(kind: NameKind, name: &str, host: &str) -> Option<String> {
    match kind {
        NameKind::Agent | NameKind::OfTeam => (!name.is_empty()).then(|| with_host(name, host)),
        // A program, and a person, are this on all hosts.
        NameKind::Giver => (name != PROGRAM).then(|| with_host(name, host)),
        NameKind::Decider => {
            let agent = name.strip_prefix(BY_AGENT)?;
            Some(format!("{BY_AGENT}{}", with_host(agent, host)))
        }
        NameKind::Stream => Some(format!("{host}/{name}")),
        NameKind::Unique => None,
    }
}

/// A name with its host, which one of another host has already.
fn with_host(name: &str, host: &str) -> String {
    if name.contains('/') { name.to_owned() } else { format!("{host}/{name}") }
}

/// Takes the hosts out of the params of a method; returns the one that they name, if they do.
pub(super) fn from_hub(
    params: &mut Map<String, Value>,
    method: &Facts,
) -> Result<Option<String>, String> {
    let mut hosts = Vec::new();
    if let Some(host) = params.remove(HOST) {
        let Value::String(host) = host else {
            return Err("params.host: must be a name".to_owned());
        };
        hosts.push(host);
    }
    if let Some(names) = serve::names(method.name) {
        let mut fields = Value::Object(std::mem::take(params));
        names.params.rename(&mut fields, &mut |kind, name| {
            let names_host = matches!(kind, NameKind::Agent | NameKind::OfTeam | NameKind::Unique);
            let (host, rest) = name.split_once('/').filter(|_| names_host)?;
            hosts.push(host.to_owned());
            Some(rest.to_owned())
        });
        if let Value::Object(fields) = fields {
            *params = fields;
        }
    }
    hosts.dedup();
    match hosts.len() {
        0 | 1 => Ok(hosts.pop()),
        _ => Err(format!("this is about several hosts: {}", hosts.join(", "))),
    }
}

#[cfg(test)]
mod tests;
