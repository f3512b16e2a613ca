//! The names of a team's agents and of what waits there, as a hub has them: with the host before them, as
//! `a/ui`. Pure.

use serde_json::{Map, Value};

use crate::serve::PROGRAM;

/// Fields that name an agent, or agents.
const AGENTS: [&str; 6] = ["agent_id", "agent", "answered_by", "owners", "agents", "contested"];

/// Fields that name what waits for a decision, or a task.
const IDS: [&str; 4] = ["id", "ids", "pending", "blocked"];

/// Fields whose content is not the team's own words.
const FOREIGN: [&str; 14] = [
    "update", "payload", "nodes", "updates", "text", "content", "config", "params", "diff",
    "removed", "context", "history", "blocks", "message",
];

/// What a decision of an agent begins with.
const BY_AGENT: &str = "agent:";

/// Levels of a value that are looked at; what the port sends has fewer.
const DEEPEST: usize = 16;

/// Puts the host before all names in a line or a result.
pub(super) fn to_hub(value: &mut Value, host: &str) {
    prefix(value, host, DEEPEST);
}

/// Puts the host before the name of a stream.
pub(super) fn stream_to_hub(stream: &mut Value, host: &str) {
    if let Some(name) = stream["name"].as_str() {
        stream["name"] = format!("{host}/{name}").into();
    }
}

/// Puts the host before the agent that gave a task. A program, and a person, are `orchestrator` on all hosts.
pub(super) fn giver_to_hub(task: &mut Value, host: &str) {
    if let Some(by) = task["by"].as_str().filter(|by| *by != PROGRAM) {
        task["by"] = with_host(by, host).into();
    }
}

/// An agent's name with its host, which one of another host has already.
fn with_host(agent: &str, host: &str) -> String {
    if agent.contains('/') { agent.to_owned() } else { format!("{host}/{agent}") }
}

fn prefix(value: &mut Value, host: &str, levels: usize) {
    let Some(levels) = levels.checked_sub(1) else { return };
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| prefix(item, host, levels)),
        Value::Object(fields) => {
            for (name, field) in fields {
                if FOREIGN.contains(&name.as_str()) {
                    continue;
                }
                let is_agent = AGENTS.contains(&name.as_str());
                let is_id = IDS.contains(&name.as_str());
                if name == "decided_by" || name == "by" {
                    by_agent(field, host);
                } else if is_agent || is_id {
                    each_text(field, |text| {
                        let names = if is_agent { !text.is_empty() } else { is_id_of_team(text) };
                        names.then(|| with_host(text, host))
                    });
                }
                prefix(field, host, levels);
            }
        }
        _ => {}
    }
}

fn by_agent(field: &mut Value, host: &str) {
    if let Some(agent) = field.as_str().and_then(|text| text.strip_prefix(BY_AGENT)) {
        *field = format!("{BY_AGENT}{}", with_host(agent, host)).into();
    }
}

/// Replaces a text, or each of a list.
fn each_text(field: &mut Value, replace: impl Fn(&str) -> Option<String>) {
    match field {
        Value::String(text) => {
            if let Some(new) = replace(text) {
                *text = new;
            }
        }
        Value::Array(items) => {
            for item in items {
                if let Some(new) = item.as_str().and_then(&replace) {
                    *item = new.into();
                }
            }
        }
        _ => {}
    }
}

/// Whether an id is unique in its team only: of a blocked access, a conflict or a task.
fn is_id_of_team(text: &str) -> bool {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|it| it.is_ascii_digit());
    let is_hex = |rest: &str| rest.len() == 8 && rest.bytes().all(|it| it.is_ascii_hexdigit());
    text.strip_prefix(['b', 'c']).is_some_and(is_number)
        || text.strip_prefix("t-").is_some_and(is_hex)
}

/// Fields of params that say which host is asked.
const ROUTING: [&str; 4] = ["agent_id", "agent", "id", "ids"];

/// The field that names a host alone.
const HOST: &str = "host";

/// Takes the hosts out of the params of a method; returns the one that they name, if they do.
pub(super) fn from_hub(params: &mut Map<String, Value>) -> Result<Option<String>, String> {
    let mut hosts = Vec::new();
    if let Some(host) = params.remove(HOST) {
        let Value::String(host) = host else {
            return Err("params.host: must be a name".to_owned());
        };
        hosts.push(host);
    }
    for name in ROUTING {
        let Some(field) = params.get_mut(name) else { continue };
        let fields = match field {
            Value::Array(items) => items.as_mut_slice(),
            one => std::slice::from_mut(one),
        };
        for field in fields {
            let Some((host, rest)) = field.as_str().and_then(|text| text.split_once('/')) else {
                continue;
            };
            let (host, rest) = (host.to_owned(), rest.to_owned());
            *field = rest.into();
            hosts.push(host);
        }
    }
    hosts.dedup();
    match hosts.len() {
        0 | 1 => Ok(hosts.pop()),
        _ => Err(format!("this is about several hosts: {}", hosts.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn names_get_the_host_and_words_do_not() {
        let mut line = json!({
            "type": "blocked", "agent_id": "ui", "session_id": "s", "id": "b1",
            "owners": ["api", "db"], "orchestrator": { "agent_id": "lead", "session_id": "l" },
            "decided_by": "agent:api", "answered_by": "api", "path": "b1",
            "update": { "agent_id": "ui", "id": "b1" },
        });
        to_hub(&mut line, "a");
        assert_eq!(
            line,
            json!({
                "type": "blocked", "agent_id": "a/ui", "session_id": "s", "id": "a/b1",
                "owners": ["a/api", "a/db"],
                "orchestrator": { "agent_id": "a/lead", "session_id": "l" },
                "decided_by": "agent:a/api", "answered_by": "a/api", "path": "b1",
                "update": { "agent_id": "ui", "id": "b1" },
            })
        );
        let mut line = json!({ "id": "01M8A", "pending": ["b2", 3], "decided_by": "person",
            "agent_id": "", "tasks": [{ "id": "t-0123abcd", "agent": "ui" }], "blocked": 4 });
        to_hub(&mut line, "a");
        assert_eq!(
            line,
            json!({ "id": "01M8A", "pending": ["a/b2", 3], "decided_by": "person",
                "agent_id": "", "tasks": [{ "id": "a/t-0123abcd", "agent": "a/ui" }], "blocked": 4 })
        );
    }

    #[test]
    fn an_agent_of_another_host_keeps_its_host() {
        let mut line = json!({ "agent_id": "ui", "orchestrator": { "agent_id": "b/lead" },
            "decided_by": "agent:b/lead", "by": "lead" });
        to_hub(&mut line, "a");
        assert_eq!(
            line,
            json!({ "agent_id": "a/ui", "orchestrator": { "agent_id": "b/lead" },
                "decided_by": "agent:b/lead", "by": "lead" })
        );
        let given = |by: &str| {
            let mut task = json!({ "by": by });
            giver_to_hub(&mut task, "a");
            task["by"].as_str().unwrap().to_owned()
        };
        assert_eq!(
            ["lead", "b/lead", "orchestrator"].map(given),
            ["a/lead", "b/lead", "orchestrator"]
        );
    }

    #[test]
    fn params_name_one_host() {
        let host = |params: Value| {
            let Value::Object(mut params) = params else { unreachable!() };
            let host = from_hub(&mut params);
            (host, Value::Object(params))
        };
        let named = Ok(Some("a".to_owned()));
        assert_eq!(
            host(json!({ "agent_id": "a/ui", "text": "x/y" })),
            (named.clone(), json!({ "agent_id": "ui", "text": "x/y" }))
        );
        assert_eq!(
            host(json!({ "ids": ["a/t-1", "a/t-2"], "host": "a" })),
            (named.clone(), json!({ "ids": ["t-1", "t-2"] }))
        );
        assert_eq!(host(json!({ "host": "a" })), (named, json!({})));
        assert_eq!(host(json!({ "path": "a/b" })), (Ok(None), json!({ "path": "a/b" })));
        assert!(host(json!({ "agent_id": "a/ui", "id": "b/b1" })).0.is_err());
        assert!(host(json!({ "host": 1 })).0.is_err());
    }
}
