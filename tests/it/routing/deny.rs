//! `on_block = "deny"`: an access outside the zone fails at once, and may be granted for the next
//! try.

use serde_json::{Value, json};

use crate::harness::{Port, Puppet, Stage, Team, agent};

const OUTSIDE: &str =
    "Outside agent zone: src/api/cart.rs. Request cross-region info through the orchestrator.";

fn team(stage: &Stage) -> Team {
    let zones =
        "[zones]\nshared = [\"types/**\"]\ndenied = [\"**/.env\"]\nreadable = [\"docs/**\"]";
    stage.team(zones, vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")])
}

/// A team whose agent `ui` is played by the test, in the middle of a turn.
fn with_puppet(stage: &Stage) -> (Team, Port, Puppet, Value) {
    let mut ui = stage.puppet("ui");
    let agents = vec![agent("ui").puppet().zone("src/ui/**"), agent("api").zone("src/api/**")];
    let team = stage.team("", agents);
    ui.connect("u1");
    let mut port = team.steer_when_ready(&["ui", "api"]);
    port.begin("ui", "go");
    let (prompt, _) = ui.prompted();
    (team, port, ui, prompt)
}

#[test]
fn the_agent_gets_the_error_and_clients_the_news() {
    let stage = Stage::new();
    let (_team, mut port, mut ui, _) = with_puppet(&stage);
    let path = stage.in_shop("src/api/cart.rs");
    let answer = ui.call("fs/read_text_file", &json!({"sessionId": "u1", "path": path}));
    let blocked = port.blocked("denied");
    let data = json!({"blocked_id": blocked["id"], "path": "src/api/cart.rs", "owners": ["api"]});
    let error = json!({"code": -32001, "message": OUTSIDE, "data": data});
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": "own 1", "error": error}));

    assert!(blocked["timestamp_ms"].as_u64().unwrap() > 1_700_000_000_000, "{blocked}");
    let expected = json!({
        "type": "blocked", "agent_id": "ui", "session_id": "u1", "session_mode": "single_agent",
        "path": "src/api/cart.rs", "action": "read", "timestamp_ms": blocked["timestamp_ms"],
        "id": blocked["id"], "status": "denied", "owners": ["api"],
        "orchestrator": {"agent_id": "orchestrator", "session_id": "team-shop"}, "via": "fs",
    });
    assert_eq!(blocked, expected);
    // It is hot on the map, but not in the agent's context.
    let delta = port.expect_that("the delta of the blocked path", |line| {
        line["type"] == "delta" && line["updates"][0]["last_action"] == "blocked"
    });
    let node = &delta["updates"][0];
    let seen = (&node["path"], &node["heat"], &node["in_context"]);
    assert_eq!(seen, (&json!("src/api/cart.rs"), &json!(1.0), &json!(false)));
    // The client host was never asked: what follows is answered, in order.
    let own = stage.in_shop("src/ui/app.ts");
    let answer = ui.call("fs/read_text_file", &json!({"sessionId": "u1", "path": own}));
    assert_eq!(answer["result"], json!({"content": "ui\n"}));
}

#[test]
fn ids_come_back_as_they_were_sent() {
    let stage = Stage::new();
    let (_team, _port, mut ui, _) = with_puppet(&stage);
    let path = stage.in_shop("src/api/cart.rs");
    for id in ["123456789012345678901234567890", "1.50", "\"\\u0061\"", "-0"] {
        ui.send_raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"fs/read_text_file\",\"params\":{{\"sessionId\":\"u1\",\"path\":\"{path}\"}}}}\n").as_bytes());
        let line = ui.expect_raw(|line| line.contains("-32001"));
        assert!(line.contains(&format!("\"id\":{id},")), "{line}");
    }
}

#[test]
fn what_is_allowed_readable_denied_and_owned_is_distinguished() {
    let stage = Stage::new();
    stage.file("shop/docs/plan.md", "plan\n");
    stage.file("outside.txt", "outside\n");
    stage.file("shop/AGENTS.md", "rules\n");
    std::os::unix::fs::symlink(stage.path("outside.txt"), stage.path("shop/src/ui/link")).unwrap();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui"]);
    for (prompt, said) in [
        ("read src/ui/app.ts", "got ui\n"),
        ("read types/cart.ts", "got types\n"),
        ("read docs/plan.md", "got plan\n"),
        ("read AGENTS.md", "got rules\n"),
        ("read src/ui/../ui/app.ts", "got ui\n"),
        ("write types/new.ts x", "written"),
        ("write src/ui/deep/er/new.ts x", "written"),
    ] {
        assert_eq!(port.prompt("ui", prompt), said, "{prompt}");
    }
    let outside = stage.path("outside.txt").display().to_string();
    let run_file = stage.run_path("shop").display().to_string();
    for (prompt, path, action, owners) in [
        ("read src/api/cart.rs", "src/api/cart.rs", "read", json!(["api"])),
        ("write src/api/cart.rs x", "src/api/cart.rs", "write", json!(["api"])),
        ("read src/ui/../api/cart.rs", "src/api/cart.rs", "read", json!(["api"])),
        ("write docs/plan.md x", "docs/plan.md", "write", json!([])),
        ("write AGENTS.md x", "AGENTS.md", "write", json!([])),
        ("read .env", ".env", "read", json!([])),
        ("write src/ui/.env x", "src/ui/.env", "write", json!([])),
        ("read src/ui/link", &outside, "read", json!([])),
        ("write src/ui/link x", &outside, "write", json!([])),
        (&format!("read {run_file}"), &run_file, "read", json!([])),
    ] {
        let said = port.prompt("ui", prompt);
        let error = format!(
            "Outside agent zone: {path}. Request cross-region info through the orchestrator."
        );
        assert_eq!(said, format!("refused: {error}"), "{prompt}");
        let blocked = port.blocked("denied");
        let seen = (&blocked["path"], &blocked["action"], &blocked["owners"]);
        assert_eq!(seen, (&json!(path), &json!(action), &owners), "{prompt}");
    }
    assert_eq!(stage.read("shop/src/api/cart.rs"), "api\n");
    assert_eq!(stage.read("outside.txt"), "outside\n");
    assert!(!stage.has("shop/src/ui/.env"));
}

#[test]
fn a_grant_after_a_denial_is_for_one_try() {
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "read src/api/cart.rs"), format!("refused: {OUTSIDE}"));
    let blocked = port.blocked("denied");
    let decided = port.resolve(&blocked, &json!({"decision": "allow"})).unwrap();
    assert_eq!((&decided["id"], &decided["status"]), (&blocked["id"], &json!("allowed")));
    assert_eq!(port.blocked("allowed")["id"], blocked["id"]);
    // Neither of another file nor of another action.
    assert!(port.prompt("ui", "read src/api/order.rs").starts_with("refused"));
    assert!(port.prompt("ui", "write src/api/cart.rs x").starts_with("refused"));
    assert_eq!(port.prompt("ui", "read src/api/cart.rs"), "got api\n");
    assert_eq!(port.prompt("ui", "read src/api/cart.rs"), format!("refused: {OUTSIDE}"));
    // It was decided, once.
    let error = port.resolve(&blocked, &json!({"decision": "deny"})).unwrap_err();
    assert_eq!(error["code"], 409, "{error}");
    let listed = port.call("list_blocked", &json!({})).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 4, "{listed}");
    let denied = port.call("list_blocked", &json!({"status": "denied"})).unwrap();
    assert_eq!(denied.as_array().unwrap().len(), 3, "{denied}");
}

#[test]
fn a_write_that_was_granted_lands() {
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "write src/api/cart.rs mine");
    let blocked = port.blocked("denied");
    let error = port.resolve(&blocked, &json!({"decision": "answer", "content": "x"})).unwrap_err();
    assert_eq!(error["code"], 400, "{error}");
    port.resolve(&blocked, &json!({"decision": "allow"})).unwrap();
    assert_eq!(port.prompt("ui", "write src/api/cart.rs mine"), "written");
    assert_eq!(stage.read("shop/src/api/cart.rs"), "mine");
}

#[test]
fn an_answer_after_a_denial_is_the_content_of_the_next_read() {
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "read src/api/cart.rs");
    let blocked = port.blocked("denied");
    let answer = json!({"decision": "answer", "content": "in short: 7\n"});
    assert_eq!(port.resolve(&blocked, &answer).unwrap()["status"], "answered");
    assert_eq!(port.prompt("ui", "read twice src/api/cart.rs"), "got in short: 7\nrefused\n");
}

#[test]
fn a_grant_for_the_session_lasts_as_long_as_the_session() {
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "read src/api/cart.rs");
    let blocked = port.blocked("denied");
    port.resolve(&blocked, &json!({"decision": "allow", "scope": "session"})).unwrap();
    assert_eq!(port.prompt("ui", "read twice src/api/cart.rs"), "got api\ngot api\n");
    assert!(port.prompt("ui", "write src/api/cart.rs x").starts_with("refused"));
    let other = port.call("new_session", &json!({"agent_id": "ui"})).unwrap();
    let prompt = json!({"agent_id": "ui", "session_id": other["session_id"], "text": "read src/api/cart.rs"});
    let result = port.call("prompt", &prompt).unwrap();
    assert_eq!(result["text"], format!("refused: {OUTSIDE}"));
}

#[test]
fn a_request_that_can_be_read_in_two_ways_never_passes() {
    let stage = Stage::new();
    let (_team, mut port, mut ui, _) = with_puppet(&stage);
    let (own, other) = (stage.in_shop("src/ui/app.ts"), stage.in_shop("src/api/cart.rs"));
    let read = |path: &str, more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"x","method":"fs/read_text_file","params":{{"sessionId":"u1","path":"{path}"{more}}}}}"#
        )
    };
    let lines = [
        read(&own, &format!(r#","path":"{other}""#)),
        read(&own, &format!(r#","Path":"{other}""#)),
        format!("[{}]", read(&own, "")),
        format!("{{\"x\":1}}\r{}", read(&other, "")),
    ];
    for line in &lines {
        ui.send_raw(format!("{line}\n").as_bytes());
        // A line inside a line has no one answer; the others are refused by their id.
        if !line.contains('\r') {
            let error = ui.expect(&json!({"id": "x"}));
            assert_eq!(error["error"]["code"], -32600, "{line}: {error}");
        }
    }
    // An escaped name is the same name, and its path is judged.
    ui.send_raw(format!("{}\n", read(&other, "").replace("path\"", "p\\u0061th\"")).as_bytes());
    assert_eq!(ui.expect(&json!({"id": "x"}))["error"]["code"], -32001);
    assert_eq!(port.blocked("denied")["path"], "src/api/cart.rs");
    let answer = ui.call("fs/read_text_file", &json!({"sessionId": "u1", "path": own}));
    assert_eq!(answer["result"]["content"], "ui\n");
    assert!(ui.transcript.iter().all(|line| line["result"]["content"] != "api\n"));
}

#[test]
fn what_an_agent_did_past_the_gate_is_reported() {
    let stage = Stage::new();
    // The kernel would not have let it.
    let ui = agent("ui").zone("src/ui/**").with("enforce = \"protocol\"");
    let team = stage.team("", vec![ui, agent("api").zone("src/api/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "peek src/api/cart.rs");
    let blocked = port.blocked("observed");
    let seen = (&blocked["path"], &blocked["via"], &blocked["action"], &blocked["owners"]);
    assert_eq!(seen, (&json!("src/api/cart.rs"), &json!("tool"), &json!("read"), &json!(["api"])));
}
