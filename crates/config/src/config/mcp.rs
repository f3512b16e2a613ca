//! `mcp_servers`: ACP's own objects, written in TOML.

use agent_client_protocol_schema::v1::{McpServerHttp, McpServerSse, McpServerStdio};
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::DeValue;

use super::errors::quoted;
use super::fault::Fault;
use super::read::Table;
use crate::model::TEAM_SERVER;

/// Returns the servers as JSON; unknown keys pass through.
pub(super) fn servers(agent: &Table<'_>) -> Vec<Value> {
    let Some(item) = agent.get("mcp_servers") else { return Vec::new() };
    let DeValue::Array(array) = item.get_ref() else {
        let help = "write `mcp_servers = [{ name = \"…\", command = \"…\", args = [], env = [] }]`";
        agent.wrong("`mcp_servers`", item, "an array of tables", help);
        return Vec::new();
    };
    array.iter().filter_map(|item| server(agent, item)).collect()
}

fn server(agent: &Table<'_>, item: &Spanned<DeValue<'_>>) -> Option<Value> {
    let Some(Value::Object(mut server)) = json(agent, item) else {
        if !item.get_ref().is_table() {
            agent.wrong(
                "`mcp_servers`",
                item,
                "an array of tables",
                "write each server as a table",
            );
        }
        return None;
    };
    let name = server.get("name").and_then(Value::as_str).unwrap_or_default();
    // Clients call the tools `mcp__SERVER__TOOL`.
    let rest = name.strip_prefix(TEAM_SERVER);
    if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("__")) {
        let message = format!("no server can have the name {}", quoted(name));
        let help = "it is that of the team's own tools; give the server another name";
        agent.fault(Fault::new(item.span(), message).help(help));
        return None;
    }
    let outcome = match server.get("type").and_then(Value::as_str) {
        None => {
            fill(&mut server, &["args", "env"]);
            check::<McpServerStdio>(&server)
        }
        Some("http") => {
            fill(&mut server, &["headers"]);
            check::<McpServerHttp>(&server)
        }
        Some("sse") => {
            fill(&mut server, &["headers"]);
            check::<McpServerSse>(&server)
        }
        Some(other) => Err(format!("its `type` can't be {}", quoted(other))),
    };
    if let Err(why) = outcome {
        agent.fault(
            Fault::new(item.span(), format!("this is not an MCP server as ACP defines it: {why}"))
                .help(
                    "write { name, command, args = [\"…\"], env = [{ name, value }] }, \
                 or { type = \"http\", name, url, headers = [{ name, value }] }",
                ),
        );
        return None;
    }
    Some(Value::Object(server))
}

/// The protocol requires these lists even if they are empty.
fn fill(server: &mut Map<String, Value>, lists: &[&str]) {
    for list in lists {
        server.entry(*list).or_insert_with(|| Value::Array(Vec::new()));
    }
}

fn check<T: serde::de::DeserializeOwned>(server: &Map<String, Value>) -> Result<(), String> {
    serde_json::from_value::<T>(Value::Object(server.clone()))
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Converts TOML to JSON with variables expanded; None if a part is faulty.
pub(super) fn json(agent: &Table<'_>, item: &Spanned<DeValue<'_>>) -> Option<Value> {
    match item.get_ref() {
        DeValue::String(raw) => Some(Value::String(agent.expanded(raw, item.span())?.value)),
        DeValue::Boolean(value) => Some(Value::Bool(*value)),
        DeValue::Integer(value) => {
            let number = i64::from_str_radix(value.as_str(), value.radix());
            number.ok().map(Value::from).or_else(|| no_json(agent, item))
        }
        DeValue::Float(value) => {
            let number = value.as_str().parse().ok().and_then(serde_json::Number::from_f64);
            number.map(Value::Number).or_else(|| no_json(agent, item))
        }
        DeValue::Datetime(_) => no_json(agent, item),
        DeValue::Array(array) => array.iter().map(|item| json(agent, item)).collect(),
        DeValue::Table(table) => {
            let mut entries: Vec<_> = table.iter().collect();
            entries.sort_by_key(|(key, _)| key.span().start);
            let pairs = entries
                .into_iter()
                .map(|(key, item)| Some((key.get_ref().to_string(), json(agent, item)?)));
            Some(Value::Object(pairs.collect::<Option<_>>()?))
        }
    }
}

fn no_json(agent: &Table<'_>, item: &Spanned<DeValue<'_>>) -> Option<Value> {
    agent.fault(
        Fault::new(item.span(), "JSON has no such value").help("write it as a string, in quotes"),
    );
    None
}
