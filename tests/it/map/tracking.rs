//! What the map shows of writes, and where agents overlap.

use serde_json::{Value, json};

use crate::harness::{Port, Stage, agent};

/// The node of a path as a fresh snapshot of the session shows it.
fn node(port: &mut Port, session: &str, path: &str) -> Value {
    port.send(&json!({"type": "request_snapshot", "session_id": session}));
    port.call("list_agents", &json!({})).unwrap();
    let is_it = |line: &&Value| line["type"] == "snapshot" && line["session_id"] == session;
    port.transcript.iter().rfind(is_it).unwrap()["nodes"][path].clone()
}

#[test]
fn a_write_is_claimed_and_what_its_client_wrote_is_confirmed() {
    let stage = Stage::new();
    let mut liar = stage.puppet("liar");
    let team = stage.team("", vec![agent("ui"), agent("liar").puppet()]);
    liar.connect("l1");
    let mut port = team.steer_when_ready(&["ui", "liar"]);

    port.prompt("ui", "write src/ui/new.ts hello");
    port.prompt("ui", "read src/ui/app.ts");
    assert_eq!(node(&mut port, "ui-s1", "src/ui/new.ts")["origin"], "confirmed");
    assert_eq!(node(&mut port, "ui-s1", "src/ui/app.ts").get("origin"), None);

    let turn = port.begin("liar", "edit it");
    let (prompt, _) = liar.prompted();
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Edit", "kind": "edit", "status": "completed", "locations": [{"path": "src/ui/app.ts", "line": 1}]});
    let params = json!({"sessionId": "l1", "update": call});
    liar.send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    liar.end_turn(&prompt);
    port.said(turn);
    assert_eq!(node(&mut port, "l1", "src/ui/app.ts")["origin"], "claimed");
}

/// Root reads what it likes, so a root that runs this test has an ordinary user try.
#[test]
#[cfg(target_os = "linux")]
fn a_read_that_the_system_refuses_is_none() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new();
    let locked = stage.path("shop/src/ui/locked.ts");
    std::fs::write(&locked, "").unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o000)).unwrap();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let root = nix::unistd::geteuid().is_root();
    let user = if root { "setpriv --reuid 65534 --clear-groups " } else { "" };
    // Named by no line of the agent's.
    let look = format!("grep -c . src/ui/app.ts\n{user}grep -c . src/ui/locked.ts\n");
    std::fs::write(stage.path("shop/src/ui/look.sh"), look).unwrap();
    port.prompt("ui", "run sh src/ui/look.sh");
    assert_eq!(node(&mut port, "ui-s1", "src/ui/app.ts")["last_action"], "read");
    assert_eq!(node(&mut port, "ui-s1", "src/ui/locked.ts"), Value::Null);
}

#[test]
fn who_subscribed_hears_where_two_agents_meet() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui"), agent("api")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let mut other = team.watch();
    port.send(&json!({"type": "subscribe", "topics": ["overlap"]}));

    port.prompt("api", "read src/ui/app.ts");
    port.prompt("ui", "write src/ui/app.ts one");
    let at = |agent: &str| json!({"agent_id": agent, "session_id": format!("{agent}-s1")});
    let met = |kind: &str, agents: [&str; 2]| json!({"type": "overlap", "kind": kind, "agents": agents.map(at), "symbol": "src/ui/app.ts", "path": "src/ui/app.ts", "callers": []});
    port.expect(&met("context", ["ui", "api"]));
    port.prompt("ui", "write src/ui/app.ts two");
    port.prompt("api", "write src/ui/app.ts three");
    port.expect(&met("edit", ["api", "ui"]));
    port.prompt("ui", "write src/ui/other.ts one");
    assert_eq!(port.count(&json!({"type": "overlap"})), 2, "{:#?}", port.transcript);
    other.expect(&json!({"type": "turn", "agent_id": "ui", "turn": 2}));
    assert_eq!(other.count(&json!({"type": "overlap"})), 0);
}
