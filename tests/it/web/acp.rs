//! The team as one ACP agent, over a WebSocket.

use serde_json::{Value, json};

use super::client::Socket;
use super::{Site, team};
use crate::harness::Stage;

fn token(stage: &Stage, args: &[&str]) -> String {
    let ended = stage.run(args);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended.stdout.split_whitespace().next().unwrap().to_owned()
}

/// Sends a request; returns the answer, and the texts that came before it.
fn ask(socket: &mut Socket, method: &str, params: &Value) -> (Value, Vec<String>) {
    socket.send(&json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params }));
    let mut texts = Vec::new();
    loop {
        let line: Value = serde_json::from_str(&socket.next().unwrap()).unwrap();
        if line["id"] == method {
            return (line, texts);
        }
        let text = line["params"]["update"]["content"]["text"].as_str();
        texts.extend(text.map(str::to_owned));
    }
}

#[test]
fn a_program_with_the_scope_control_works_with_the_team() {
    let stage = Stage::new();
    let team = team(&stage);
    let _port = team.steer_when_ready(&["ui", "api"]);
    let (site, path) = Site::of(&stage, &[]);
    let secret = token(&stage, &["web", "token", "--scope", "control"]);
    let bearer = format!("Bearer {secret}");
    let mut socket = site.socket_at("/acp", &[("authorization", &bearer)]).unwrap();
    let params = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    let (answer, _) = ask(&mut socket, "initialize", &params);
    assert_eq!(answer["result"]["agentInfo"]["title"], "Team shop");
    let params = json!({ "cwd": stage.in_shop(""), "mcpServers": [] });
    let (answer, _) = ask(&mut socket, "session/new", &params);
    let session = answer["result"]["sessionId"].clone();
    let prompt = json!([{ "type": "text", "text": "read src/ui/app.ts" }]);
    let params = json!({ "sessionId": session, "prompt": prompt });
    let (answer, said) = ask(&mut socket, "session/prompt", &params);
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(said.concat(), "got ui\n");

    let deciding = token(&stage, &["web", "token", "--scope", "decide"]);
    let scoped = token(&stage, &["token", "create", "--owner", "ada", "--may", "control"]);
    for (other, status) in [(&deciding, 403), (&scoped, 403), (&"0".repeat(64), 401)] {
        let bearer = format!("Bearer {other}");
        let refused = site.socket_at("/acp", &[("authorization", &bearer)]).err();
        assert_eq!(refused, Some(status), "{other}");
    }
    let browser = site.enter(&path);
    let cookie = browser.cookie.strip_prefix("Cookie: ").unwrap();
    let origin = format!("http://{}", site.host);
    let refused = site.socket_at("/acp", &[("cookie", cookie), ("origin", &origin)]).err();
    assert_eq!(refused, Some(403));

    assert_eq!(stage.run(&["web", "revoke"]).code, 0);
    while socket.next().is_some() {}
    assert_eq!(site.socket_at("/acp", &[("authorization", &bearer)]).err(), Some(401));
}
