//! `eisen-core attach`: an editor uses an agent of a running team.

mod sdk;

use serde_json::{Value, json};

use crate::harness::{Editor, Port, Puppet, Stage, Team, agent};

/// A team whose agent `ui`, inside `src/ui`, is played by the test; its own session is `own`.
fn team(stage: &Stage, keys: &str) -> (Team, Puppet, Port) {
    held_by(stage, keys, "auto")
}

/// The same, with a tier.
fn held_by(stage: &Stage, keys: &str, tier: &str) -> (Team, Puppet, Port) {
    let mut ui = stage.puppet("ui");
    let keys = format!("{keys}\n[agents.zone]\nallowed = [\"src/ui/**\"]\nenforce = \"{tier}\"");
    let team = stage.team("", vec![agent("ui").puppet().with(&keys)]);
    let introduction =
        json!({"protocolVersion": 1, "agentInfo": {"name": "puppet"}, "_meta": {"future": [1]}});
    ui.serve("initialize", &introduction);
    ui.serve("session/new", &json!({"sessionId": "own"}));
    let port = team.steer_when_ready(&["ui"]);
    (team, ui, port)
}

/// Attaches an editor that has the session `session` open.
fn attached(stage: &Stage, ui: &mut Puppet, capabilities: &Value, session: &str) -> Editor {
    let mut editor = stage.attach("ui");
    let introduced = editor.initialize(capabilities);
    assert_eq!(introduced["_meta"], json!({"future": [1]}));
    let opening = editor.ask("session/new", &json!({"cwd": stage.in_shop(""), "mcpServers": []}));
    ui.serve("session/new", &json!({"sessionId": session}));
    assert_eq!(editor.answer(&opening)["result"]["sessionId"], session);
    editor
}

fn all() -> Value {
    json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true})
}

#[test]
fn a_whole_turn_with_a_file_that_the_editor_serves() {
    let stage = Stage::new();
    let (_team, mut ui, mut port) = team(&stage, "");
    let mut editor = attached(&stage, &mut ui, &all(), "e");
    let turn = editor.begin("e", "look");
    let (prompt, text) = ui.prompted();
    assert_eq!(text, "look");
    let path = stage.in_shop("src/ui/app.ts");
    let read = ui.ask("fs/read_text_file", &json!({"sessionId": "e", "path": path}));
    let asked = editor.serve("fs/read_text_file", &json!({"content": "unsaved"}));
    assert_eq!(asked, json!({"sessionId": "e", "path": path}));
    assert_eq!(ui.answer(&read)["result"]["content"], "unsaved");
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "seen"}});
    let params = json!({"sessionId": "e", "update": update});
    ui.send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    assert_eq!(editor.reported(), "seen");
    ui.end_turn(&prompt);
    assert_eq!(editor.answer(&turn)["result"]["stopReason"], "end_turn");
    // The team sees it like any other session.
    let delta = port.expect(&json!({"type": "delta", "session_id": "e"}));
    let node = &delta["updates"][0];
    assert_eq!((&node["path"], &node["last_action"]), (&json!("src/ui/app.ts"), &json!("read")));
    port.expect(&json!({"type": "turn", "agent_id": "ui", "session_id": "e", "turn": 0}));
    editor.close();
    assert_eq!(editor.end(), (0, String::new()));
}

#[test]
fn an_editor_waits_for_an_agent_that_starts() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let team = stage.team("", vec![agent("ui").puppet().zone("src/ui/**")]);
    let mut port = team.steer();
    port.expect(&json!({"type": "agent", "agent_id": "ui", "state": "connecting"}));
    let mut editor = stage.attach("ui");
    assert_eq!(editor.said(), "waiting for `ui` to be ready");
    ui.connect("own");
    assert_eq!(editor.initialize(&all())["protocolVersion"], 1);
    editor.close();
    assert_eq!(editor.end(), (0, String::new()));
}

#[test]
fn what_the_editor_lacks_the_team_serves() {
    let stage = Stage::new();
    let (_team, mut ui, _port) = team(&stage, "");
    let mut editor = attached(&stage, &mut ui, &json!({"fs": {"readTextFile": false}}), "e");
    let path = stage.in_shop("src/ui/app.ts");
    let about = json!({"sessionId": "e", "path": path, "content": "written\n"});
    assert_eq!(ui.call("fs/read_text_file", &about)["result"]["content"], "ui\n");
    assert_eq!(ui.call("fs/write_text_file", &about)["result"], json!({}));
    assert_eq!(stage.read("shop/src/ui/app.ts"), "written\n");
    assert_eq!(ui.run("e", "echo here"), "here\n");
    assert_eq!(editor.count(&json!({"method": "fs/read_text_file"})), 0);
    editor.close();
    editor.end();
}

#[test]
fn outside_the_zone_the_editor_is_not_asked() {
    let stage = Stage::new();
    let (_team, mut ui, mut port) = held_by(&stage, "", "protocol");
    let mut editor = attached(&stage, &mut ui, &all(), "e");
    let path = stage.in_shop("src/api/cart.rs");
    let about = json!({"sessionId": "e", "path": path, "content": "x"});
    let denied = ui.call("fs/write_text_file", &about);
    assert_eq!(denied["error"]["code"], -32001, "{denied}");
    let blocked = port.blocked("denied");
    assert_eq!(
        (&blocked["session_id"], &blocked["path"]),
        (&json!("e"), &json!("src/api/cart.rs"))
    );
    let options = json!([{"optionId": "no", "name": "No", "kind": "reject_once"}]);
    let call = json!({"toolCallId": "c", "locations": [{"path": path}]});
    let params = json!({"sessionId": "e", "toolCall": call, "options": options});
    let refused = ui.call("session/request_permission", &params);
    assert_eq!(refused["result"]["outcome"]["optionId"], "no", "{refused}");
    editor.close();
    assert_eq!(editor.until_end(), Vec::<Value>::new());
}

#[test]
fn what_the_kernel_refuses_itself_the_editor_is_asked_for() {
    let stage = Stage::new();
    let (_team, mut ui, mut port) = held_by(&stage, "", "kernel");
    let mut editor = attached(&stage, &mut ui, &all(), "e");
    let path = stage.in_shop("src/api/cart.rs");
    let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]);
    let call = json!({"toolCallId": "c", "locations": [{"path": path}]});
    let params = json!({"sessionId": "e", "toolCall": call, "options": options});
    let asked = ui.ask("session/request_permission", &params);
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "yes"}});
    editor.serve("session/request_permission", &outcome);
    assert_eq!(ui.answer(&asked)["result"], outcome);
    // What it says opens nothing.
    let denied = ui.call("fs/read_text_file", &json!({"sessionId": "e", "path": path}));
    assert_eq!(denied["error"]["code"], -32001, "{denied}");
    assert_eq!(port.blocked("denied")["via"], "fs");
    assert_eq!(port.count(&json!({"type": "blocked", "via": "permission"})), 0);
    editor.close();
    editor.end();
}

#[test]
fn permissions_are_the_editors_to_give_also_where_the_orchestrator_gives_the_teams() {
    let stage = Stage::new();
    let (_team, mut ui, mut port) = team(&stage, "permissions = \"orchestrator\"");
    let mut editor = attached(&stage, &mut ui, &json!({}), "e");
    let permission = |session: &str| {
        let call =
            json!({"toolCallId": "c", "locations": [{"path": stage.in_shop("src/ui/app.ts")}]});
        let options = json!([{"optionId": "always", "name": "Yes", "kind": "allow_always"}]);
        json!({"sessionId": session, "toolCall": call, "options": options})
    };
    let asked = ui.ask("session/request_permission", &permission("e"));
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "always"}});
    editor.serve("session/request_permission", &outcome);
    assert_eq!(ui.answer(&asked)["result"], outcome);
    assert_eq!(port.count(&json!({"type": "blocked"})), 0);
    ui.ask("session/request_permission", &permission("own"));
    assert_eq!(port.blocked("pending")["session_id"], "own");
    // Without its editor the session is the team's.
    editor.close();
    assert_eq!(editor.end().0, 0);
    ui.ask("session/request_permission", &permission("e"));
    assert_eq!(port.blocked("pending")["session_id"], "e");
}

#[test]
fn cancellations_pass_both_ways() {
    let stage = Stage::new();
    let (_team, mut ui, _port) = team(&stage, "");
    let mut editor = attached(&stage, &mut ui, &all(), "e");
    let turn = editor.begin("e", "long");
    let (prompt, _) = ui.prompted();
    let path = stage.in_shop("src/ui/app.ts");
    let read = ui.ask("fs/read_text_file", &json!({"sessionId": "e", "path": path}));
    let asked = editor.expect(&json!({"method": "fs/read_text_file"}));
    ui.send(&json!({"method": "$/cancel_request", "params": {"requestId": read}}));
    let cancel = editor.expect(&json!({"method": "$/cancel_request"}));
    assert_eq!(cancel["params"]["requestId"], asked["id"]);
    let error = json!({"code": -32800, "message": "cancelled"});
    editor.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}));
    assert_eq!(ui.answer(&read)["error"], error);
    editor.send(&json!({"method": "$/cancel_request", "params": {"requestId": turn}}));
    let cancel = ui.expect(&json!({"method": "$/cancel_request"}));
    assert_eq!(cancel["params"]["requestId"], prompt);
    editor.send(&json!({"method": "session/cancel", "params": {"sessionId": "e"}}));
    ui.expect(&json!({"method": "session/cancel"}));
    ui.send(&json!({"jsonrpc": "2.0", "id": prompt, "result": {"stopReason": "cancelled"}}));
    assert_eq!(editor.answer(&turn)["result"]["stopReason"], "cancelled");
}

#[test]
fn a_killed_editor_leaves_its_session_to_the_team() {
    let stage = Stage::new();
    let (_team, mut ui, mut port) = team(&stage, "");
    let mut editor = attached(&stage, &mut ui, &all(), "e");
    editor.begin("e", "long");
    let (prompt, _) = ui.prompted();
    let refused = port.call("prompt", &json!({"agent_id": "ui", "session_id": "e", "text": "x"}));
    assert_eq!(refused.unwrap_err()["code"], 409);
    editor.kill();
    ui.expect(&json!({"method": "session/cancel", "params": {"sessionId": "e"}}));
    let next = port.ask("prompt", &json!({"agent_id": "ui", "session_id": "e", "text": "go on"}));
    ui.send(&json!({"jsonrpc": "2.0", "id": prompt, "result": {"stopReason": "cancelled"}}));
    let (prompt, text) = ui.prompted();
    assert_eq!(text, "go on");
    ui.end_turn(&prompt);
    assert_eq!(port.answer(next).unwrap()["stop_reason"], "end_turn");
    let turns = json!({"type": "turn", "session_id": "e"});
    assert_eq!(port.expect(&turns)["stop_reason"], "cancelled");
    assert_eq!(port.expect(&turns)["stop_reason"], "end_turn");
    // Its connection gave its place back, and the session can be taken up.
    let mut editor = stage.attach("ui");
    editor.initialize(&json!({}));
    let load = editor.ask("session/load", &json!({"sessionId": "e", "cwd": "/", "mcpServers": []}));
    ui.serve("session/load", &json!({}));
    assert_eq!(editor.answer(&load)["result"], json!({}));
}

#[test]
fn an_agent_that_dies_ends_what_is_under_way() {
    let stage = Stage::new();
    let (_team, mut ui, mut port) = team(&stage, "");
    let mut editor = attached(&stage, &mut ui, &all(), "e");
    let turn = editor.begin("e", "long");
    ui.prompted();
    let agent_pid = port.call("list_agents", &json!({})).unwrap()[0]["pid"].as_i64().unwrap();
    let pid = nix::unistd::Pid::from_raw(i32::try_from(agent_pid).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    let error = editor.answer(&turn)["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("the agent ended: ") && message.contains("SIGKILL"), "{message}");
    let (code, complaint) = editor.end();
    assert_eq!(code, 1);
    let expected = "error: `ui` is no longer there: the agent or its team ended";
    assert!(complaint.starts_with(expected), "{complaint}");
}

#[test]
fn a_team_that_stops_ends_what_is_under_way() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    team.steer_when_ready(&["ui"]);
    let mut editor = stage.attach("ui");
    editor.initialize(&json!({}));
    let session = editor.open();
    let turn = editor.begin(&session, "wait");
    editor.expect(&json!({"method": "session/update"}));
    assert_eq!(team.stop().code, 0);
    let error = &editor.answer(&turn)["error"];
    assert_eq!(error["message"], "the agent ended: it was stopped");
    assert_eq!(editor.end().0, 1);
}

#[test]
fn several_editors_share_an_agent_and_not_their_sessions() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    team.steer_when_ready(&["ui"]);
    let mut editors = [stage.attach("ui"), stage.attach("ui")];
    let mut sessions = Vec::new();
    for editor in &mut editors {
        editor.initialize(&json!({}));
        sessions.push(editor.open());
    }
    let [one, two] = &mut editors;
    let turns = (one.begin(&sessions[0], "wait"), two.begin(&sessions[1], "say hello"));
    assert_eq!(two.answer(&turns.1)["result"]["stopReason"], "end_turn");
    assert_eq!(two.reported(), "say hello");
    let params = json!({"sessionId": sessions[0], "prompt": []});
    let refused = two.call("session/prompt", &params)["error"].clone();
    assert_eq!(refused["code"], -32602, "{refused}");
    one.send(&json!({"method": "session/cancel", "params": {"sessionId": sessions[0]}}));
    assert_eq!(one.answer(&turns.0)["result"]["stopReason"], "cancelled");
    assert_eq!(one.count(&json!({"params": {"sessionId": sessions[1]}})), 0);
    for editor in &mut editors {
        editor.close();
        assert_eq!(editor.end(), (0, String::new()));
    }
}

#[test]
fn who_cannot_be_attached_to_is_said() {
    let stage = Stage::new();
    let ended = stage.run(&["attach", "ui"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert!(ended.stderr.contains("no team is running"), "{}", ended.stderr);
    let agents = vec![agent("ui"), agent("late").with("autostart = false")];
    let team = stage.team("", agents);
    let mut port = team.steer_when_ready(&["ui"]);
    for (name, sentence) in [
        ("nobody", "there is no agent `nobody`; there are: ui, late (code 404)"),
        ("late", "agent `late` is stopped, not ready (code 409)"),
    ] {
        let ended = stage.run(&["attach", name]);
        let expected = (1, String::new(), format!("error: {sentence}\n"));
        assert_eq!((ended.code, ended.stdout, ended.stderr), expected);
    }
    // On the port itself: a refusal leaves the connection as it was.
    let mut stranger = team.watch();
    let error = stranger.call("attach", &json!({"agent_id": "ui"})).unwrap_err();
    assert_eq!(error["code"], 401);
    let turn = port.begin_waiting("ui");
    let error = port.call("attach", &json!({"agent_id": "ui"})).unwrap_err();
    assert_eq!(error["code"], 409, "{error}");
    port.call("cancel", &json!({"agent_id": "ui"})).unwrap();
    assert_eq!(port.answer(turn).unwrap()["stop_reason"], "cancelled");
}

#[test]
fn a_script_that_says_all_at_once_hears_its_answers() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    team.steer_when_ready(&["ui"]);
    let mut editor = stage.attach("ui");
    editor.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}));
    editor.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}));
    editor.close();
    let answers = editor.until_end();
    assert_eq!(answers[0]["result"]["protocolVersion"], 1, "{answers:?}");
    assert!(answers[1]["result"]["sessionId"].is_string(), "{answers:?}");
    assert_eq!(editor.end(), (0, String::new()));
}
