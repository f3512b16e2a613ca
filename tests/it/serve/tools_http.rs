//! The tools of the team over HTTP: for agents that say they take it, with each agent's own token.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::harness::{Puppet, Stage, agent};

const TAKES_HTTP: &str =
    r#"{"protocolVersion":1,"agentCapabilities":{"mcpCapabilities":{"http":true}}}"#;

/// The team's entry in a session that the agent opens.
fn entry(params: &Value) -> Value {
    let servers = params["mcpServers"].as_array().unwrap();
    servers.iter().find(|server| server["name"] == "eisen").cloned().unwrap_or_default()
}

fn opened(puppet: &mut Puppet, session: &str) -> Value {
    puppet.serve("initialize", &serde_json::from_str(TAKES_HTTP).unwrap());
    entry(&puppet.serve("session/new", &json!({ "sessionId": session })))
}

/// Sends a request as a client of its own; returns the status and the body.
fn post(entry: &Value, headers: &[(&str, &str)], body: &Value) -> (u16, String) {
    let url = entry["url"].as_str().unwrap().strip_prefix("http://").unwrap();
    let (address, path) = url.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let body = body.to_string();
    let more: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "POST /{path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n{}",
        body.len(),
        more.concat(),
    );
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

fn authorization(entry: &Value) -> String {
    let header = &entry["headers"][0];
    assert_eq!(header["name"], "Authorization");
    header["value"].as_str().unwrap().to_owned()
}

fn call(entry: &Value, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let (status, body) = post(entry, &[("Authorization", &authorization(entry))], &request);
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    answer["result"].clone()
}

#[test]
fn an_agent_that_takes_http_gets_the_tools_without_a_process() {
    let stage = Stage::new();
    let agents = vec![agent("lead").puppet(), agent("ui").puppet().zone("src/ui/**")];
    let [mut lead, mut ui] = ["lead", "ui"].map(|name| stage.puppet(name));
    let team = stage.team("[orchestrator]\nagent = \"lead\"\n", agents);
    let leads = opened(&mut lead, "s-lead");
    let works = opened(&mut ui, "s-ui");
    assert_eq!((&works["type"], &works["command"]), (&json!("http"), &Value::Null), "{works}");
    let mut port = team.steer_when_ready(&["lead", "ui"]);
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "0" },
    });
    let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let (status, body) = post(&works, &[("Authorization", &authorization(&works))], &initialize);
    assert!(status == 200 && body.contains("\"2025-06-18\""), "{status} {body}");
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let (_, body) = post(&works, &[("Authorization", &authorization(&works))], &list);
    assert!(body.contains("\"whose\"") && !body.contains("\"team_status\""), "{body}");

    // Each acts as the agent of its token, and as no other.
    let status = call(&leads, "team_status", &json!({}));
    assert_eq!(status["structuredContent"]["agents"].as_array().unwrap().len(), 2, "{status}");
    let refused = call(&works, "team_status", &json!({}));
    assert_eq!(refused["isError"], true, "{refused}");
    port.send(&json!({ "type": "subscribe", "topics": ["report"] }));
    port.call("list_agents", &json!({})).unwrap();
    call(&works, "report", &json!({ "text": "by http" }));
    let report = port.expect(&json!({ "type": "report" }));
    assert_eq!((&report["agent_id"], &report["text"]), (&json!("ui"), &json!("by http")));
    let shown = stage.run(&["ps", "--json"]).stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let of_ui = shown.as_array().unwrap().iter().find(|it| it["agent_id"] == "ui").unwrap();
    assert_eq!(
        of_ui["tools"],
        json!({ "connected": true, "listed": true, "seen": true, "calls": 1 }),
        "{of_ui}"
    );

    // Neither without a token, nor by another one, nor from a web page.
    let own = authorization(&works);
    let renamed = own.replace(".ui", ".lead");
    let control = format!("Bearer {}", team.token());
    for wrong in [&renamed, &control, "Bearer x", "Basic dWk6", ""] {
        assert_eq!(post(&works, &[("Authorization", wrong)], &list).0, 401, "{wrong}");
    }
    assert_eq!(post(&works, &[], &list).0, 401);
    let page = [("Authorization", &*own), ("Origin", "http://localhost:80")];
    assert_eq!(post(&works, &page, &list).0, 403);
    let mut elsewhere = works.clone();
    elsewhere["url"] = works["url"].as_str().unwrap().replace("/mcp", "/").into();
    assert_eq!(post(&elsewhere, &[("Authorization", &own)], &list).0, 404);
    team.stop();
}

#[test]
fn an_agent_that_refuses_the_entry_or_has_a_proxy_gets_a_program() {
    let stage = Stage::new();
    let agents = vec![
        agent("ui").puppet(),
        agent("api").puppet().with("env = { HTTP_PROXY = \"http://proxy.example:8080\" }"),
    ];
    let [mut ui, mut api] = ["ui", "api"].map(|name| stage.puppet(name));
    let team = stage.team("", agents);
    ui.serve("initialize", &serde_json::from_str(TAKES_HTTP).unwrap());
    let request = ui.expect(&json!({ "method": "session/new" }));
    assert_eq!(entry(&request["params"])["type"], "http");
    let error = json!({ "code": -32602, "message": "Invalid params" });
    ui.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }));
    let next = entry(&ui.serve("session/new", &json!({ "sessionId": "s-ui" })));
    assert!(next["command"].is_string() && next["type"].is_null(), "{next}");
    let proxied = opened(&mut api, "s-api");
    assert!(proxied["command"].is_string(), "{proxied}");
    team.steer_when_ready(&["ui", "api"]);
}
