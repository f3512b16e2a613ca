//! The port's lines, methods and rights.

use std::net::Shutdown;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Stage, Team, agent};

fn two_agents(stage: &Stage) -> Team {
    stage.team("", vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")])
}

#[test]
fn a_client_joins_with_snapshots_then_agents_then_usage_then_what_is_pending() {
    let stage = Stage::new();
    let team = stage.team(
        "[orchestrator]\non_block = \"hold\"",
        vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")],
    );
    let mut first = team.steer_when_ready(&["ui", "api"]);
    first.prompt("ui", "read src/ui/app.ts");
    first.prompt("ui", "spend dollars");
    first.begin("ui", "read src/api/cart.rs");
    let pending = first.blocked("pending");

    let mut late = team.watch();
    assert_eq!(late.blocked("pending"), pending);
    let types: Vec<_> = late.transcript.iter().map(|line| line["type"].as_str().unwrap()).collect();
    let expected =
        ["snapshot", "snapshot", "snapshot", "agent", "agent", "usage", "usage", "blocked"];
    assert_eq!(types, expected);
    // The default target first: without an orchestrator agent that is a session of the team's own.
    let of_team = json!({"agent_id": "orchestrator", "session_id": "team-shop", "session_mode": "orchestrator"});
    assert_eq!(late.position(&of_team), 0);
    let node = json!({"path": "src/ui/app.ts", "in_context": true, "last_action": "read", "turn_accessed": 0});
    late.expect(&json!({
        "type": "snapshot", "agent_id": "ui", "session_id": "ui-s1", "session_mode": "single_agent",
        "nodes": {"src/ui/app.ts": node},
    }));
    late.expect(
        &json!({"type": "snapshot", "agent_id": "api", "session_id": "api-s1", "nodes": {}}),
    );
    late.expect(&json!({"type": "usage", "agent_id": "ui", "used": 100, "size": 1000}));
}

#[test]
fn the_first_line_is_an_empty_snapshot_while_there_is_no_session() {
    let stage = Stage::new();
    let ui = agent("ui").start("{ hang = true }").with("autostart = false");
    let team = stage.team("[orchestrator]\nagent = \"ui\"", vec![ui]);
    let mut port = team.watch();
    let status = port.agent_is("ui", "stopped");
    assert_eq!(status["pid"], Value::Null);
    let first = json!({"type": "snapshot", "session_id": "", "seq": 0, "nodes": {}});
    assert_eq!(port.position(&first), 0);
}

#[test]
fn a_turn_comes_as_delta_then_turn_then_result() {
    let stage = Stage::new();
    let team = two_agents(&stage);
    let mut port = team.steer_when_ready(&["ui"]);
    let snapshot =
        port.expect(&json!({"type": "snapshot", "agent_id": "ui", "session_id": "ui-s1"}));
    assert_eq!(snapshot["seq"], 0);

    let result = port.call("prompt", &json!({"agent_id": "ui", "text": "read src/ui/app.ts"}));
    let expected = json!({"session_id": "ui-s1", "stop_reason": "end_turn", "text": "got ui\n"});
    assert_eq!(result, Ok(expected));
    let delta = json!({"type": "delta", "agent_id": "ui", "session_id": "ui-s1", "session_mode": "single_agent"});
    let turn = json!({"type": "turn", "agent_id": "ui", "session_id": "ui-s1", "turn": 0, "stop_reason": "end_turn"});
    let result = json!({"type": "rpc_result"});
    // The one before was of `auth`.
    let result = port.transcript.len() - 1 - {
        port.transcript.iter().rev().position(|line| crate::harness::has(line, &result)).unwrap()
    };
    assert!(port.position(&delta) < port.position(&turn), "{:#?}", port.transcript);
    assert!(port.position(&turn) < result, "{:#?}", port.transcript);

    let delta = port.expect(&delta);
    assert_eq!(delta["seq"], 1);
    let node =
        delta["updates"].as_array().unwrap().iter().find(|node| node["path"] == "src/ui/app.ts");
    let node = node.expect("the file that was read");
    assert_eq!((&node["last_action"], &node["heat"]), (&json!("read"), &json!(1.0)));

    // The next turn has the next number, and whatever reason the agent gives.
    let result = port.call("prompt", &json!({"agent_id": "ui", "text": "stop at once"})).unwrap();
    assert_eq!(result["stop_reason"], "max_tokens");
    port.expect(&json!({"type": "turn", "turn": 1, "stop_reason": "max_tokens"}));
}

#[test]
fn prompts_are_blocks_or_text_and_take_their_turns() {
    let stage = Stage::new();
    let team = two_agents(&stage);
    let mut port = team.steer_when_ready(&["ui"]);
    let blocks = json!([{"type": "text", "text": "one"}, {"type": "resource_link", "name": "cart", "uri": format!("file://{}", stage.in_shop("types/cart.ts"))}]);
    let result = port.call("prompt", &json!({"agent_id": "ui", "blocks": blocks})).unwrap();
    assert!(result["text"].as_str().unwrap().starts_with("one\n"), "{result}");
    let delta = port.expect(&json!({"type": "delta", "agent_id": "ui"}));
    assert_eq!(delta["updates"][0]["last_action"], "user_referenced");

    let ids: Vec<_> = ["first", "second", "third"].map(|text| port.begin("ui", text)).into();
    for (id, text) in ids.into_iter().zip(["first", "second", "third"]) {
        assert_eq!(port.said(id), text);
    }
    let second = port.call("new_session", &json!({"agent_id": "ui"})).unwrap();
    assert_eq!(second, json!({"session_id": "ui-s2"}));
    let prompt = json!({"agent_id": "ui", "session_id": "ui-s2", "text": "hello"});
    assert_eq!(port.call("prompt", &prompt).unwrap()["session_id"], "ui-s2");
    port.expect(&json!({"type": "turn", "session_id": "ui-s2", "turn": 0}));
}

#[test]
fn cancel_ends_the_running_turn_and_what_is_queued() {
    let stage = Stage::new();
    let team = two_agents(&stage);
    let mut port = team.steer_when_ready(&["ui"]);
    let running = port.begin_waiting("ui");
    let queued = port.begin("ui", "never said");
    assert_eq!(
        port.call("cancel", &json!({"agent_id": "ui"})),
        Ok(json!({"turns": 1, "prompts": 1}))
    );
    assert_eq!(port.answer(running).unwrap()["stop_reason"], "cancelled");
    assert_eq!(port.answer(queued).unwrap_err()["code"], 409);
    assert_eq!(port.count(&json!({"type": "turn"})), 1);
    assert_eq!(port.prompt("ui", "again"), "again");
}

#[test]
fn refusals_have_codes_and_say_what_to_do() {
    let stage = Stage::new();
    let idle = agent("idle").with("autostart = false");
    let team = stage.team("", vec![agent("ui"), idle]);
    let mut port = team.steer_when_ready(&["ui"]);
    for (method, params, code, part) in [
        ("prompt", json!({"agent_id": "idle", "text": "x"}), 409, "stopped"),
        ("prompt", json!({"agent_id": "ghost", "text": "x"}), 404, "ghost"),
        ("prompt", json!({"agent_id": "ui", "session_id": "ghost", "text": "x"}), 404, "ghost"),
        ("prompt", json!({"agent_id": "ui"}), 400, "text"),
        ("prompt", json!({"agent_id": "ui", "text": "fail"}), 500, "no such model"),
        ("stop_agent", json!({"agent_id": "ghost"}), 404, "ghost"),
        ("cancel", json!({"agent_id": "idle"}), 409, "stopped"),
        ("new_session", json!({"agent_id": "idle"}), 409, "stopped"),
        ("resolve_blocked", json!({"id": "b99", "decision": "allow"}), 404, "b99"),
        ("resolve_blocked", json!({"id": "b99", "decision": "maybe"}), 400, "maybe"),
        ("dance", json!({}), 404, "dance"),
    ] {
        let error = port.call(method, &params).unwrap_err();
        assert_eq!(error["code"], code, "{method} {params}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(part), "{method} {params}: {message}");
    }
    // The turn that failed was a turn; the others were never sent.
    let turn = port.expect(&json!({"type": "turn", "agent_id": "ui"}));
    assert_eq!((&turn["stop_reason"], &turn["turn"]), (&json!("error"), &json!(0)));
    assert!(turn["reason"].as_str().unwrap().contains("no such model"), "{turn}");
    assert_eq!(port.count(&json!({"type": "turn"})), 1);
}

#[test]
fn without_the_token_one_may_only_look() {
    let stage = Stage::new();
    let team = two_agents(&stage);
    let mut port = team.watch();
    port.agent_is("ui", "ready");
    for method in ["prompt", "cancel", "new_session", "resolve_blocked", "stop_agent"] {
        let error = port.call(method, &json!({"agent_id": "ui", "text": "x"})).unwrap_err();
        assert_eq!(error["code"], 401, "{method}: {error}");
    }
    let agents = port.call("list_agents", &json!({})).unwrap();
    let ids: Vec<_> = agents.as_array().unwrap().iter().map(|agent| &agent["agent_id"]).collect();
    assert_eq!(ids, ["ui", "api"]);
    assert_eq!(port.call("list_blocked", &json!({})), Ok(json!([])));
}

#[test]
fn the_third_wrong_token_ends_the_connection() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    let mut port = team.watch();
    for _ in 0..3 {
        port.send(&json!({"type": "auth", "token": "a guess"}));
        let error = port.expect(&json!({"type": "rpc_error", "id": null}));
        assert_eq!(error["error"]["code"], 401);
    }
    let rest = port.until_end();
    assert!(rest.iter().all(|line| line["type"] != "rpc_error"), "{rest:#?}");
    team.steer_when_ready(&["ui"]);
}

#[test]
fn a_web_page_cannot_steer_a_team() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    let mut page = team.watch();
    let body = format!(
        "{}\n{}\n",
        json!({"type": "auth", "token": team.token()}),
        json!({"type": "rpc", "id": 1, "method": "stop_agent", "params": {"agent_id": "ui"}}),
    );
    page.send_raw(format!("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n{body}").as_bytes());
    let heard = page.until_end();
    let acted = heard.iter().any(|line| line["type"] == "rpc_result" || line["id"] == 1);
    assert!(!acted, "{heard:#?}");
    // The agent that was to be stopped is there.
    assert_eq!(team.steer_when_ready(&["ui"]).prompt("ui", "hello"), "hello");
}

#[test]
fn a_malformed_line_is_answered_and_the_connection_lives_on() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    let mut port = team.watch();
    for line in ["{\"type\":", "[1,2]", "{\"type\":\"rpc\",\"type\":\"rpc\"}"] {
        port.send_raw(format!("{line}\n").as_bytes());
        let error = port.expect(&json!({"type": "rpc_error", "id": null}));
        assert_eq!(error["error"]["code"], 400, "{line}: {error}");
    }
    // A type from the future is no mistake; what is sent in pieces is whole.
    port.send(&json!({"type": "from_the_future"}));
    port.send_raw(b"{\"type\":\"rpc\",\"id\":\"in pi");
    port.send_raw(b"eces\",\"method\":\"list_blocked\"}\r\n");
    let answer =
        port.expect_that("an answer", |line| line["type"].as_str().unwrap().starts_with("rpc"));
    assert_eq!(answer, json!({"type": "rpc_result", "id": "in pieces", "result": []}));
}

#[test]
fn a_client_that_only_listens_on_is_still_answered() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let id = port.begin("ui", "hello");
    port.shut_down(Shutdown::Write);
    assert_eq!(port.said(id), "hello");
}

#[test]
fn a_snapshot_can_be_asked_for_again() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "write src/ui/new.ts hello");
    port.send(&json!({"type": "request_snapshot", "session_id": "ui-s1"}));
    let nodes = json!({"src/ui/new.ts": {"last_action": "write", "in_context": true}});
    let snapshot = port.expect(&json!({"type": "snapshot", "session_id": "ui-s1", "nodes": nodes}));
    let is_delta = |line: &&Value| line["type"] == "delta" && line["agent_id"] == "ui";
    let last = port.transcript.iter().rfind(is_delta).unwrap();
    assert_eq!(last["seq"], snapshot["seq"]);
    assert_eq!(stage.read("shop/src/ui/new.ts"), "hello");
    port.send(&json!({"type": "request_snapshot", "session_id": "ghost"}));
    port.expect(&json!({"type": "snapshot", "session_id": "ghost", "nodes": {}}));
}

/// What another user of the machine reads up to the answer to request 1, having said this.
fn read_as_another_user(port: u16, said: &str) -> String {
    let program = "import socket, sys
connection = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 20)
connection.sendall(sys.argv[2].encode())
for line in connection.makefile():
    print(line, end='')
    if '\"id\":1' in line: break";
    let output = Command::new("python3")
        .args(["-c", program, &port.to_string(), said])
        .uid(65534)
        .current_dir("/")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn another_user_of_the_machine_gets_nothing_without_a_token() {
    if !nix::unistd::geteuid().is_root() {
        // Nobody else's connections can be made.
        return;
    }
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    team.steer_when_ready(&["ui"]);
    let asking = json!({"type": "rpc", "id": 1, "method": "list_agents"});
    let refused = read_as_another_user(team.program.port, &format!("{asking}\n"));
    assert!(refused.contains("401") && refused.lines().count() == 1, "{refused}");
    let auth = json!({"type": "auth", "token": team.token()});
    let joined = read_as_another_user(team.program.port, &format!("{auth}\n{asking}\n"));
    assert!(joined.contains("\"type\":\"snapshot\"") && joined.contains("\"id\":1"), "{joined}");
}
