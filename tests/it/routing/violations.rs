//! `on_violation`: reactions to an access outside the zone without a request.

use serde_json::{Value, json};

use crate::harness::{Editor, Port, Puppet, Stage, Team, agent};

/// A team whose agent `ui`, inside `src/ui`, is played by the test; its session is `own`. (Behind a
/// wall there is nothing to be seen after the fact.)
fn team(stage: &Stage, on_violation: &str) -> (Team, Puppet, Port) {
    let mut ui = stage.puppet("ui");
    let keys = format!(
        "on_violation = {on_violation:?}\n[agents.zone]\nallowed = [\"src/ui/**\"]\nenforce = \"protocol\""
    );
    let team = stage.team("", vec![agent("ui").puppet().with(&keys)]);
    ui.connect("own");
    let port = team.steer_when_ready(&["ui"]);
    (team, ui, port)
}

/// An editor that is attached to `ui` and has a session `e`.
fn edit(stage: &Stage, ui: &mut Puppet) -> Editor {
    let mut editor = stage.attach("ui");
    editor.initialize(&json!({}));
    let opening = editor.ask("session/new", &json!({"cwd": stage.in_shop(""), "mcpServers": []}));
    ui.serve("session/new", &json!({"sessionId": "e"}));
    editor.answer(&opening);
    editor
}

/// Has the agent say that it is done with reading a file past its client.
fn done(ui: &mut Puppet, stage: &Stage, session: &str, path: &str) {
    let update = json!({
        "sessionUpdate": "tool_call", "toolCallId": path, "title": "Read", "kind": "read",
        "status": "completed", "locations": [{"path": stage.in_shop(path)}],
    });
    let params = json!({"sessionId": session, "update": update});
    ui.send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
}

/// Ends a turn as agents do that were cancelled.
fn end_cancelled(ui: &mut Puppet, prompt: &Value) {
    let result = json!({"stopReason": "cancelled"});
    ui.send(&json!({"jsonrpc": "2.0", "id": prompt, "result": result}));
}

#[test]
fn a_violation_can_end_its_turn() {
    let stage = Stage::new();
    let (_team, mut ui, mut port) = team(&stage, "cancel");
    let turn = port.begin("ui", "look around");
    let (prompt, _) = ui.prompted();
    done(&mut ui, &stage, "own", "src/ui/app.ts");
    done(&mut ui, &stage, "own", "src/api/cart.rs");
    done(&mut ui, &stage, "own", "src/api/order.rs");
    let cancel = json!({"method": "session/cancel", "params": {"sessionId": "own"}});
    ui.expect(&cancel);
    assert_eq!(port.blocked("observed")["path"], "src/api/cart.rs");
    assert_eq!(port.blocked("observed")["path"], "src/api/order.rs");
    end_cancelled(&mut ui, &prompt);
    assert_eq!(port.answer(turn).unwrap()["stop_reason"], "cancelled");
    // The next turn runs as any other.
    let turn = port.begin("ui", "go on");
    let (prompt, _) = ui.prompted();
    ui.end_turn(&prompt);
    assert_eq!(port.answer(turn).unwrap()["stop_reason"], "end_turn");
    assert_eq!(ui.count(&cancel), 1);
}

#[test]
fn the_turn_of_an_attached_editor_is_ended_likewise() {
    let stage = Stage::new();
    let (_team, mut ui, mut port) = team(&stage, "cancel");
    let mut editor = edit(&stage, &mut ui);
    let turn = editor.begin("e", "look");
    let (prompt, _) = ui.prompted();
    done(&mut ui, &stage, "e", "src/api/cart.rs");
    ui.expect(&json!({"method": "session/cancel", "params": {"sessionId": "e"}}));
    assert_eq!(port.blocked("observed")["session_id"], "e");
    end_cancelled(&mut ui, &prompt);
    assert_eq!(editor.answer(&turn)["result"]["stopReason"], "cancelled");
}

#[test]
fn what_a_turn_that_was_ended_still_asks_its_editor_for_is_answered_in_its_place() {
    let stage = Stage::new();
    let (_team, mut ui, _port) = team(&stage, "cancel");
    let mut editor = edit(&stage, &mut ui);
    let turn = editor.begin("e", "look");
    let (prompt, _) = ui.prompted();
    let permission = json!({
        "sessionId": "e", "toolCall": {"toolCallId": "c", "kind": "read"},
        "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}],
    });
    let open = ui.ask("session/request_permission", &permission);
    let asked = editor.expect(&json!({"method": "session/request_permission"}));
    done(&mut ui, &stage, "e", "src/api/cart.rs");
    let cancelled = json!({"outcome": {"outcome": "cancelled"}});
    assert_eq!(ui.answer(&open)["result"], cancelled);
    // The editor can close its dialog, and what it answers all the same goes nowhere.
    let back = json!({"method": "$/cancel_request", "params": {"requestId": asked["id"]}});
    editor.expect(&back);
    let late = json!({"outcome": {"outcome": "selected", "optionId": "late"}});
    editor.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": late}));
    // What it asks for from now on, the editor doesn't hear of.
    assert_eq!(ui.call("session/request_permission", &permission)["result"], cancelled);
    end_cancelled(&mut ui, &prompt);
    assert_eq!(editor.answer(&turn)["result"]["stopReason"], "cancelled");
    // The next turn asks as any other, under the same id.
    let turn = editor.begin("e", "go on");
    let (prompt, _) = ui.prompted();
    ui.send(&json!({"jsonrpc": "2.0", "id": open, "method": "session/request_permission", "params": permission}));
    let asked = editor.expect(&json!({"method": "session/request_permission"}));
    let allowed = json!({"outcome": {"outcome": "selected", "optionId": "y"}});
    editor.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": allowed}));
    assert_eq!(ui.answer(&open)["result"], allowed);
    ui.end_turn(&prompt);
    assert_eq!(editor.answer(&turn)["result"]["stopReason"], "end_turn");
}

#[test]
fn a_violation_can_end_the_agent_until_somebody_has_looked() {
    let stage = Stage::new();
    let (_team, mut ui, mut port) = team(&stage, "stop");
    let turn = port.begin("ui", "look around");
    ui.prompted();
    done(&mut ui, &stage, "own", "src/api/cart.rs");
    let id = port.blocked("observed")["id"].as_str().unwrap().to_owned();
    let why = format!("it read `src/api/cart.rs`, outside its zone ({id}), and is stopped for it");
    let stopped = port.agent_is("ui", "error");
    assert_eq!((&stopped["reason"], &stopped["restarts"]), (&json!(why), &json!(0)));
    let ended = port.expect(&json!({"type": "turn", "agent_id": "ui"}));
    assert_eq!((&ended["stop_reason"], &ended["reason"]), (&json!("error"), &json!(why)));
    let error = port.answer(turn).unwrap_err();
    let reported = format!("the agent ended: {why}");
    assert_eq!((&error["code"], &error["message"]), (&json!(500), &json!(reported)));
    // The `reason` stays for a later look.
    let listed = port.call("list_agents", &json!({})).unwrap();
    assert_eq!(listed[0]["reason"], json!(why));
    assert_eq!(ui.count(&json!({"method": "session/cancel"})), 0);
}

#[test]
fn a_denied_call_that_completes_all_the_same_is_named() {
    let stage = Stage::new();
    let (team, mut ui, mut port) = team(&stage, "report");
    let path = stage.in_shop("src/api/cart.rs");
    let denied = ui.call("fs/read_text_file", &json!({"sessionId": "own", "path": path}));
    let id = &denied["error"]["data"]["blocked_id"];
    done(&mut ui, &stage, "own", "src/api/cart.rs");
    let named = port.expect(&json!({"type": "blocked", "id": id, "completed": true}));
    assert_eq!((&named["status"], &named["via"]), (&json!("denied"), &json!("fs")));
    assert_eq!(port.blocked("observed")["path"], "src/api/cart.rs");
    let listed = stage.run(&["blocked"]);
    assert!(listed.stdout.contains("denied, completed anyway"), "{}", listed.stdout);
    let ended = team.stop();
    assert!(ended.stderr.contains("a tool call that was denied reports that it completed"));
}

#[test]
fn an_agent_that_ends_by_itself_after_its_violation_is_not_started_again() {
    let stage = Stage::new();
    let (_team, mut ui, mut port) = team(&stage, "stop");
    port.begin("ui", "look around");
    ui.prompted();
    done(&mut ui, &stage, "own", "src/api/cart.rs");
    drop(ui);
    let id = port.blocked("observed")["id"].as_str().unwrap().to_owned();
    let why = format!("it read `src/api/cart.rs`, outside its zone ({id}), and is stopped for it");
    let stopped = port.agent_is("ui", "error");
    assert_eq!((&stopped["reason"], &stopped["restarts"]), (&json!(why), &json!(0)));
}

#[test]
fn what_gate_and_kernel_let_pass_ends_no_turn() {
    let stage = Stage::new();
    let ui = agent("ui").with("template = \"worker\"").zone("src/**").with("enforce = \"kernel\"");
    let team = stage.team("", vec![ui]);
    let mut port = team.steer_when_ready(&["ui"]);
    let outside = stage.path("outside").display().to_string();
    let lines = [
        "cat /etc/os-release".to_owned(),
        "cp /bin/true src/t".to_owned(),
        "ls /usr/share".to_owned(),
        "wc -l /proc/cpuinfo".to_owned(),
        format!("touch {outside}"),
        format!("cat {outside}"),
    ];
    for line in lines {
        port.prompt("ui", &format!("run {line}"));
    }
    assert!(stage.has("outside") && stage.has("shop/src/t"));
    assert_eq!(port.call("list_blocked", &json!({})).unwrap(), json!([]));
    // What the kernel stops is stopped there, though a terminal's text names it.
    let journal = stage.path("home/teams/shop/journal.db").display().to_string();
    port.prompt("ui", &format!("run cat {journal}"));
    let blocked = port.call("list_blocked", &json!({})).unwrap();
    assert_eq!(blocked.as_array().map(Vec::len), Some(1), "{blocked}");
}
