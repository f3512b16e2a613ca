//! `replay` and `replay_session`: an earlier run in the lines of the wire.

use serde_json::{Value, json};

use crate::harness::{Port, Program, Stage, agent, assert_server_line};

/// A team that wrote and was blocked, and is gone.
fn gone(stage: &Stage) {
    let team = stage.team("", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "write src/ui/new.ts fresh margins");
    port.prompt("ui", "spend dollars");
    port.prompt("ui", "read src/api/cart.rs");
    drop(port);
    team.stop();
}

fn replay(stage: &Stage, args: &[&str]) -> (Program, Port) {
    let program = stage.start(&[&["replay", "--port", "0"], args].concat());
    let port = program.connect();
    (program, port)
}

/// Reads up to the last turn; each line has the mark, and is valid but for it.
fn until_the_last_turn(port: &mut Port) -> Vec<Value> {
    let mut lines = Vec::new();
    loop {
        let line = port.expect_that("a line", |_| true);
        assert_eq!(line["replay"], true, "{line}");
        assert_server_line(&line);
        let is_last = line["type"] == "turn" && line["turn"] == 2;
        lines.push(line);
        if is_last {
            return lines;
        }
    }
}

fn assert_shows_the_run(lines: &[Value]) {
    let has = |kind: &str, is_it: &dyn Fn(&Value) -> bool| {
        let found = lines.iter().any(|line| line["type"] == kind && is_it(line));
        assert!(found, "no such {kind}: {lines:#?}");
    };
    has("snapshot", &|line| line["agent_id"] == "ui" && line["session_id"] == "ui-s1");
    has("delta", &|line| {
        let mut updates = line["updates"].as_array().unwrap().iter();
        line["agent_id"] == "ui"
            && updates.any(|it| it["path"] == "src/ui/new.ts" && it["last_action"] == "write")
    });
    has("usage", &|line| line["agent_id"] == "ui" && line["used"] == 100);
    has("blocked", &|line| line["path"] == "src/api/cart.rs" && line["status"] == "denied");
    has("turn", &|line| line["turn"] == 0 && line["stop_reason"] == "end_turn");
}

#[test]
fn a_run_that_is_over_is_shown_in_the_lines_of_the_wire() {
    let stage = Stage::new();
    gone(&stage);
    let (program, mut port) = replay(&stage, &["shop", "--speed", "max"]);
    let lines = until_the_last_turn(&mut port);
    assert_shows_the_run(&lines);
    assert!(lines.iter().any(|line| line["type"] == "agent" && line["state"] == "ready"));
    assert!(lines.iter().any(|line| line["session_mode"] == "orchestrator"));

    // The last map stays, for clients that come later too, and nothing can be controlled.
    let token = stage.run_file(&format!("replay-{}", program.id())).unwrap()["token"].clone();
    let mut later = program.connect();
    later.auth(token.as_str().unwrap());
    let map = later.call("list_agents", &json!({})).unwrap();
    assert_eq!(map[0]["agent_id"], "ui");
    let snapshot = later.expect_that("the map", |line| {
        line["session_id"] == "ui-s1" && line["nodes"]["src/ui/new.ts"].is_object()
    });
    assert_eq!(snapshot["replay"], true);
    let error = later.call("prompt", &json!({"agent_id": "ui", "text": "go on"})).unwrap_err();
    assert_eq!(error["code"], 409);
    program.signal(nix::sys::signal::Signal::SIGINT);
    assert_eq!(program.wait().code, 0);
}

#[test]
fn an_export_is_shown_and_what_is_none_is_refused() {
    let stage = Stage::new();
    gone(&stage);
    let export = stage.run(&["export"]);
    stage.file("shop.ndjson", &export.stdout);
    let args = ["shop.ndjson", "--speed", "max", "--session", "ui/ui-s1"];
    let (program, mut port) = replay(&stage, &args);
    let lines = until_the_last_turn(&mut port);
    assert_shows_the_run(&lines);
    assert!(lines.iter().all(|line| line["session_mode"] != "orchestrator"));
    drop(program);
    stage.file("other.txt", "no journal\n");
    for (args, code, why) in [
        (["replay", "nothing"].as_slice(), 1, "no team with a journal `nothing`; teams: shop"),
        (&["replay", "other.txt"], 1, "is no journal, and no export of one"),
        (&["replay", "shop", "--session", "x"], 1, "there is no session `x`"),
        (&["replay", "shop", "--speed", "0"], 2, "the speed is a number from 0.01 to 1000"),
    ] {
        let ended = stage.run(args);
        assert_eq!(ended.code, code, "{}", ended.stderr);
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
    }
}

#[test]
fn a_client_gets_a_session_again_beside_the_live_stream() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    for prompt in ["write src/ui/new.ts margins", "spend dollars", "read src/api/cart.rs"] {
        port.prompt("ui", prompt);
    }
    let mut other = team.watch();
    port.send(&json!({"type": "subscribe", "topics": ["session_update"]}));
    let params = json!({"session_id": "ui/ui-s1", "speed": "max"});
    let id = port.ask("replay_session", &params);
    let first = port.expect(&json!({"replay": true}));
    assert_eq!((&first["type"], &first["session_id"]), (&json!("snapshot"), &json!("ui-s1")));
    let asked = port.expect(&json!({"type": "session_update", "replay": true}));
    assert_eq!(asked["update"]["content"]["text"], "write src/ui/new.ts margins");
    port.expect(&json!({"type": "turn", "turn": 2, "replay": true}));
    let over = port.answer(id).unwrap();
    assert!(over["events"].as_u64().unwrap() > 10, "{over}");

    // Others get nothing of it, and live lines have no mark.
    let live = port.begin("ui", "spend dollars");
    port.answer(live).unwrap();
    let turn = other.expect(&json!({"type": "turn", "turn": 3}));
    assert!(turn.get("replay").is_none());
    assert_eq!(other.count(&json!({"replay": true})), 0);

    for (params, code) in [
        (json!({"session_id": "nobody"}), 404),
        (json!({"session_id": "ui-s1", "speed": 0}), 400),
        (json!({"session_id": "ui-s1", "speed": "fast"}), 400),
    ] {
        assert_eq!(port.call("replay_session", &params).unwrap_err()["code"], code, "{params}");
    }
    assert_eq!(other.call("replay_session", &params).unwrap_err()["code"], 401);
}
