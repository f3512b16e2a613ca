//! An agent that starts again gets its last session back, if it can.

use serde_json::{Value, json};

use crate::harness::{Port, Puppet, Stage, Team, agent};

fn able(capabilities: &Value) -> Value {
    json!({"protocolVersion": 1, "agentCapabilities": capabilities})
}

fn says(session: &str, update: &Value) -> Value {
    let params = json!({"sessionId": session, "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
}

fn reads(stage: &Stage, path: &str) -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": path, "title": "read", "kind": "read",
        "status": "completed", "locations": [{"path": stage.in_shop(path)}]})
}

/// An agent that the test plays, stopped after one turn in its session `first`.
fn stopped(stage: &Stage, keys: &str, capabilities: &Value) -> (Team, Port) {
    let mut puppet = stage.puppet("ui");
    let team = stage.team("", vec![agent("ui").puppet().with(keys)]);
    puppet.serve("initialize", &able(capabilities));
    puppet.serve("session/new", &json!({"sessionId": "first"}));
    let mut port = team.steer_when_ready(&["ui"]);
    let id = port.begin("ui", "one");
    let (prompt, _) = puppet.prompted();
    puppet.send(&says("first", &reads(stage, "src/ui/app.ts")));
    puppet.send(&says("first", &json!({"sessionUpdate": "usage_update", "used": 90, "size": 100})));
    puppet.end_turn(&prompt);
    port.answer(id).unwrap();
    port.expect(&json!({"type": "turn", "session_id": "first", "turn": 0}));
    port.call("stop_agent", &json!({"agent_id": "ui"})).unwrap();
    puppet.until_end();
    (team, port)
}

fn start(stage: &Stage, port: &mut Port, capabilities: &Value) -> Puppet {
    port.call("start_agent", &json!({"agent_id": "ui"})).unwrap();
    let mut puppet = Puppet::again(stage, "ui");
    puppet.serve("initialize", &able(capabilities));
    puppet
}

/// Goes through a turn of the default session; returns the session and the turn's number.
fn turn(port: &mut Port, puppet: &mut Puppet) -> (Value, Value) {
    port.agent_is("ui", "ready");
    let id = port.begin("ui", "two");
    let (prompt, _) = puppet.prompted();
    puppet.end_turn(&prompt);
    let session = port.answer(id).unwrap()["session_id"].clone();
    let turn = port.expect(&json!({"type": "turn", "session_id": session}));
    (session, turn["turn"].clone())
}

#[test]
fn a_session_that_is_resumed_counts_on() {
    let stage = Stage::new();
    let able = json!({"loadSession": true, "sessionCapabilities": {"resume": {}}});
    let (_team, mut port) = stopped(&stage, "tools = false", &able);
    let mut puppet = start(&stage, &mut port, &able);
    let params = puppet.serve("session/resume", &json!({}));
    let cwd = stage.path("shop").display().to_string();
    assert_eq!(params, json!({"sessionId": "first", "cwd": cwd, "mcpServers": []}));
    assert_eq!(turn(&mut port, &mut puppet), (json!("first"), json!(1)));
    // No other session was reported.
    let first = json!({"agent_id": "ui", "session_id": "first"});
    let sessions = port.call("list_sessions", &json!({})).unwrap();
    assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions}");
    assert!(crate::harness::has(&sessions[0], &first), "{sessions}");
}

#[test]
fn what_a_load_reports_again_is_no_activity() {
    let stage = Stage::new();
    let able = json!({"loadSession": true});
    let (_team, mut port) = stopped(&stage, "", &able);
    let mut puppet = start(&stage, &mut port, &able);
    let request = puppet.expect(&json!({"method": "session/load"}));
    // An old count, which is no compaction, and what was read long ago.
    puppet.send(&says("first", &json!({"sessionUpdate": "usage_update", "used": 3, "size": 100})));
    puppet.send(&says("first", &reads(&stage, "types/cart.ts")));
    puppet.send(&says("first", &json!({"sessionUpdate": "usage_update", "used": 91, "size": 100})));
    puppet.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": null}));
    assert_eq!(turn(&mut port, &mut puppet), (json!("first"), json!(1)));
    port.expect(&json!({"type": "usage", "session_id": "first", "used": 91}));
    assert_eq!(port.count(&json!({"type": "usage", "session_id": "first", "used": 3})), 0);
    port.send(&json!({"type": "request_snapshot", "session_id": "first"}));
    let snapshot = port.expect_that("the map", |line| {
        line["type"] == "snapshot" && line["session_id"] == "first" && line["seq"] != 0
    });
    assert_eq!(snapshot["nodes"]["src/ui/app.ts"]["in_context"], true, "{snapshot}");
    assert!(snapshot["nodes"].get("types/cart.ts").is_none(), "{snapshot}");
}

#[test]
fn a_new_session_begins_where_the_last_cannot_be_had() {
    let stage = Stage::new();
    let able = json!({"loadSession": true});
    let (team, mut port) = stopped(&stage, "", &able);
    let mut puppet = start(&stage, &mut port, &able);
    let request = puppet.expect(&json!({"method": "session/load"}));
    let gone = json!({"code": -32002, "message": "session not found"});
    puppet.send(&json!({"jsonrpc": "2.0", "id": request["id"], "error": gone}));
    puppet.serve("session/new", &json!({"sessionId": "second"}));
    assert_eq!(turn(&mut port, &mut puppet), (json!("second"), json!(0)));
    port.call("stop_agent", &json!({"agent_id": "ui"})).unwrap();
    puppet.until_end();

    // The next start asks for that one, unless it can't any more.
    let mut puppet = start(&stage, &mut port, &json!({}));
    puppet.serve("session/new", &json!({"sessionId": "third"}));
    assert_eq!(turn(&mut port, &mut puppet), (json!("third"), json!(0)));
    let log = team.stop().stderr;
    assert!(log.contains("session not found") && log.contains("first"), "{log}");
}

#[test]
fn mode_and_prompt_are_set_and_sent_again_only_as_needed() {
    let stage = Stage::new();
    let able = json!({"loadSession": true});
    let mut puppet = stage.puppet("ui");
    let keys = "mode = \"plan\"\nprompt = \"begin\"\n";
    let team = stage.team("", vec![agent("ui").puppet().with(keys)]);
    let modes = json!({"sessionId": "first", "modes": {"currentModeId": "ask",
        "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "plan", "name": "Plan"}]}});
    let open = |puppet: &mut Puppet, method: &str| {
        puppet.serve("initialize", &json!({"protocolVersion": 1, "agentCapabilities": able}));
        puppet.serve(method, &modes);
        let mode = puppet.serve("session/set_mode", &json!({}));
        assert_eq!(mode, json!({"sessionId": "first", "modeId": "plan"}));
    };
    open(&mut puppet, "session/new");
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(puppet.prompted().1, "begin");
    // It did not come to its end.
    port.call("stop_agent", &json!({"agent_id": "ui"})).unwrap();
    puppet.until_end();
    port.call("start_agent", &json!({"agent_id": "ui"})).unwrap();
    let mut puppet = Puppet::again(&stage, "ui");
    open(&mut puppet, "session/load");
    let (prompt, text) = puppet.prompted();
    assert_eq!(text, "begin");
    puppet.end_turn(&prompt);
    port.agent_is("ui", "ready");
    port.expect(&json!({"type": "turn", "turn": 1, "stop_reason": "end_turn"}));
    // The line may come before its sender knows of the end: another turn comes after that.
    let id = port.begin("ui", "more");
    let (prompt, text) = puppet.prompted();
    assert_eq!(text, "more");
    puppet.end_turn(&prompt);
    port.answer(id).unwrap();

    port.call("stop_agent", &json!({"agent_id": "ui"})).unwrap();
    puppet.until_end();
    port.call("start_agent", &json!({"agent_id": "ui"})).unwrap();
    let mut puppet = Puppet::again(&stage, "ui");
    open(&mut puppet, "session/load");
    port.agent_is("ui", "ready");
    let id = port.begin("ui", "next");
    let (prompt, text) = puppet.prompted();
    assert_eq!(text, "next");
    puppet.end_turn(&prompt);
    port.answer(id).unwrap();
}

#[test]
fn a_crash_costs_a_turn_but_not_the_session() {
    let stage = Stage::new();
    let ui = agent("ui").loads("{ usage = { used = 42, size = 100 } }");
    let team = stage.team("", vec![ui.with("[agents.restart]\nbackoff_ms = [1, 2]")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "read src/ui/app.ts");
    let id = port.begin("ui", "die");
    assert!(port.answer(id).is_err());
    port.agent_is("ui", "restarting");
    port.agent_is("ui", "ready");
    // Replayed by the load.
    port.expect(&json!({"type": "usage", "session_id": "ui-s1", "used": 42}));
    port.prompt("ui", "hello");
    port.expect(&json!({"type": "turn", "session_id": "ui-s1", "turn": 2}));
}
