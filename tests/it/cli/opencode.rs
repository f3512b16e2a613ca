//! An agent that is OpenCode's own server: one that speaks as it does, and the real one where it is installed.

mod real;
mod server;

use serde_json::json;

use self::server::{HEADERS, Server, configure};
use crate::harness::{Editor, Stage, eventually};

#[test]
fn it_is_a_member_whose_zone_holds_at_its_requests_for_permission() {
    let stage = Stage::new();
    let server = Server::start("127.0.0.1:0");
    server.configure(&stage, HEADERS);
    let team = stage.up();
    let mut port = team.steer_when_ready(&["oc"]);
    assert_eq!(port.prompt("oc", "hello there"), "hello there");
    let ui = stage.in_shop("src/ui/app.ts");
    assert_eq!(port.prompt("oc", &format!("read {ui}")), "did read");
    assert_eq!(port.prompt("oc", &format!("edit {ui}")), "did edit");
    assert_eq!(stage.read("shop/src/ui/app.ts"), "edited\n");

    // Neither a file outside, nor one that only the input of the call names.
    for (tool, action) in [("edit", "write"), ("read", "read")] {
        let api = stage.in_shop("src/api/cart.rs");
        let said = port.prompt("oc", &format!("{tool} {api}"));
        assert!(said.starts_with("refused: This is not allowed here."), "{said}");
        let blocked = json!({"type": "blocked", "path": "src/api/cart.rs", "action": action, "via": "permission"});
        port.expect(&blocked);
    }
    assert_eq!(stage.read("shop/src/api/cart.rs"), "api\n");

    let shown = stage.run(&["ps"]).stdout;
    assert!(shown.contains("protocol"), "{shown}");
    let checked = stage.run(&["check", "-c", "eisen.toml"]).stdout;
    assert!(checked.contains("protocol"), "{checked}");
    assert!(!shown.contains("b3BlbmNvZGU6") && !checked.contains("b3BlbmNvZGU6"));
    // Its sessions ask for all that its own settings don't deny.
    let rules = server.state.lock().opened[0]["permission"].clone();
    let rule = |permission: &str, pattern: &str, action: &str| json!({"permission": permission, "pattern": pattern, "action": action});
    assert_eq!(
        rules,
        json!([
            rule("*", "*", "ask"),
            rule("*", "*", "ask"),
            rule("bash", "rm *", "deny"),
            rule("todowrite", "*", "allow"),
            rule("task", "*", "deny"),
            rule("question", "*", "deny"),
        ])
    );
}

#[test]
fn a_turn_ends_with_what_the_server_says_of_it() {
    let stage = Stage::new();
    let server = Server::start("127.0.0.1:0");
    server.configure(&stage, HEADERS);
    let team = stage.up();
    let mut port = team.steer_when_ready(&["oc"]);
    for _ in 0..2 {
        // The news that it is idle comes twice, and ends no later turn.
        let failing = port.begin("oc", "fail");
        let error = port.answer(failing).unwrap_err();
        assert!(
            error["message"].as_str().unwrap().contains("Incorrect API key provided"),
            "{error}"
        );
        assert_eq!(port.prompt("oc", "well"), "well");
    }
    // What it said before and after the stream of events was lost.
    assert_eq!(port.prompt("oc", "lose"), "half of it");
    assert_eq!(port.prompt("oc", "again"), "again");
    assert_eq!(port.prompt("oc", "hostile"), "fine");
    eventually("what names no file is refused", || {
        server.state.lock().replies.last().is_some_and(|it| it["reply"] == "reject")
    });

    let waiting = port.begin("oc", "wait");
    eventually("the turn runs", || server.state.lock().is_waiting());
    port.call("cancel", &json!({"agent_id": "oc"})).unwrap();
    let ended = port.answer(waiting).unwrap();
    assert_eq!(ended["stop_reason"], "cancelled", "{ended}");
    assert_eq!(port.prompt("oc", "after"), "after");
}

#[test]
fn one_that_goes_away_is_connected_again_with_its_session() {
    let stage = Stage::new();
    let server = Server::start("127.0.0.1:0");
    let address = server.address.clone();
    server.configure(&stage, HEADERS);
    let team = stage.up();
    let mut port = team.steer_when_ready(&["oc"]);
    let waiting = port.begin("oc", "wait");
    eventually("the turn runs", || server.state.lock().is_waiting());
    drop(server);
    let why = port.answer(waiting).unwrap_err();
    port.agent_is("oc", "restarting");
    let server = Server::start(&address);
    port.agent_is("oc", "ready");
    assert_eq!(port.prompt("oc", "well"), "well", "{why}");
    // It went on with the session that it had.
    assert_eq!(server.state.lock().opened, Vec::<serde_json::Value>::new());
}

#[test]
fn one_that_can_t_be_reached_is_degraded_and_then_unavailable() {
    let stage = Stage::new();
    let server = Server::start("127.0.0.1:0");
    let restart = "restart = { policy = \"always\", max_restarts = 1000, backoff_ms = [1, 2] }";
    // Without the password.
    configure(&stage, &format!("http://{}", server.address), restart);
    let team = stage.up();
    let mut port = team.watch();
    for health in ["degraded, 5 failures in a row: ", "unavailable, 10 failures in a row: "] {
        let line = port.expect_that(health, |line| {
            line["reason"].as_str().is_some_and(|reason| reason.starts_with(health))
        });
        let reason = line["reason"].as_str().unwrap();
        assert!(reason.contains("the server answered 401: Unauthorized"), "{reason}");
    }
}

#[test]
fn by_hand_a_session_is_loaded_and_what_works_is_ended_with_the_client() {
    let stage = Stage::new();
    let server = Server::start("127.0.0.1:0");
    let url = format!("http://{}/", server.address);
    let args = ["connect", "--protocol", "opencode", &url];
    let start = || {
        let mut command = stage.eisen_core(&args);
        command.env("EISEN_CONNECT_HEADERS", "{\"authorization\": \"Basic b3BlbmNvZGU6c2VjcmV0\"}");
        Editor::start(&mut command)
    };
    let mut editor = start();
    let introduced = editor.initialize(&json!({}));
    assert_eq!(introduced["agentInfo"]["version"], "1.18.33", "{introduced}");
    let session = editor.open();
    let prompt = editor.begin(&session, "lose");
    assert_eq!(editor.answer(&prompt)["result"]["stopReason"], "end_turn");
    let prompt = editor.begin(&session, "wait");
    eventually("the turn runs", || server.state.lock().is_waiting());
    let second = editor.begin(&session, "more");
    assert_eq!(editor.answer(&second)["error"]["code"], -32600);
    assert_eq!(editor.count(&json!({"id": prompt})), 0);
    editor.close();
    assert_eq!(editor.end(), (0, String::new()));
    eventually("the turn is aborted", || server.state.lock().aborts >= 1);

    let mut editor = start();
    editor.initialize(&json!({}));
    let params = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
    let loaded = editor.call("session/load", &params);
    assert_eq!(loaded["result"]["configOptions"][0]["currentValue"], "fake/fake-model", "{loaded}");
    assert_eq!(editor.reported(), "half of it");
    // What was said before the session was loaded is not said again.
    let prompt = editor.begin(&session, "lose");
    assert_eq!(editor.answer(&prompt)["result"]["stopReason"], "end_turn");
    assert_eq!([editor.reported(), editor.reported()], ["half ", "of it"]);
    let chunk = json!({"params": {"update": {"sessionUpdate": "agent_message_chunk"}}});
    assert_eq!(editor.count(&chunk), 3);
    for (method, params, code) in [
        ("session/new", json!({"cwd": "here", "mcpServers": []}), -32602),
        ("session/new", json!({"cwd": "/", "mcpServers": [{"name": "x", "command": "x"}]}), -32602),
        ("session/prompt", json!({"sessionId": "ses_none", "prompt": []}), -32002),
        ("session/set_mode", json!({"sessionId": session, "modeId": "none"}), -32602),
        ("no/such", json!({}), -32601),
    ] {
        assert_eq!(editor.call(method, &params)["error"]["code"], code, "{method}");
    }
    drop(server);
    let (code, said) = editor.end();
    assert_eq!(code, 1);
    assert!(
        said.contains("the connection to http://") && said.contains("Connection refused"),
        "{said}"
    );
    for url in ["ws://127.0.0.1:1", "127.0.0.1:1", "http://127.0.0.1:1/?a"] {
        let ended = stage.run(&["connect", "--protocol", "opencode", url]);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
    }
}
