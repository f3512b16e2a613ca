//! `terminal/*`: real processes, where the zone lets them run.

use std::fs::OpenOptions;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::harness::{Port, Stage, Team, agent};

fn team(stage: &Stage) -> (Team, Port) {
    let team = stage.team("", vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")]);
    let port = team.steer_when_ready(&["ui"]);
    (team, port)
}

#[test]
fn a_command_runs_in_the_workspace_or_in_its_cwd() {
    let stage = Stage::new();
    let (_team, mut port) = team(&stage);
    let shop = stage.in_shop("");
    let shop = shop.trim_end_matches('/');
    assert_eq!(port.prompt("ui", "run pwd"), format!("{shop}\n"));
    assert_eq!(port.prompt("ui", "run in src/ui: pwd"), format!("{shop}/src/ui\n"));
    // A folder above what is allowed will do.
    assert_eq!(port.prompt("ui", "run in src: pwd"), format!("{shop}/src\n"));
    assert_eq!(port.prompt("ui", "run cat src/ui/app.ts | tr a-z A-Z"), "UI\n");
    assert_eq!(port.prompt("ui", "run exit 3"), "failed: `exit 3` exited with code 3");
    assert_eq!(port.prompt("ui", "run kill -9 $$"), "failed: `kill -9 $$` ended by signal SIGKILL");
    assert_eq!(port.prompt("ui", "run echo out; echo err >&2"), "out\nerr\n");
    assert_eq!(port.count(&json!({"type": "blocked"})), 0);
}

/// Returns the next update of a terminal that has these members.
fn printed(port: &mut Port, members: &Value) -> Value {
    let update = json!({"type": "session_update", "agent_id": "ui", "update": members});
    port.expect(&update)["update"].take()
}

#[test]
fn what_a_terminal_prints_is_seen_while_it_runs_and_is_in_the_journal() {
    let stage = Stage::new();
    let (_team, mut port) = team(&stage);
    port.send(&json!({"type": "subscribe", "topics": ["session_update"]}));
    mkfifo(&stage.path("shop/src/ui/gate"), Mode::S_IRWXU).unwrap();
    let line = "run echo one; read x < src/ui/gate; echo API_KEY=hunter2; echo two; exit 3";
    let turn = port.begin("ui", line);
    let shown = json!({"sessionUpdate": "_eisen/terminal", "output": "one\n"});
    let running = printed(&mut port, &shown);
    assert_eq!(running.get("exitStatus"), None, "{running}");
    drop(OpenOptions::new().write(true).open(stage.path("shop/src/ui/gate")).unwrap());
    let ended = json!({"sessionUpdate": "_eisen/terminal", "exitStatus": {"exitCode": 3}});
    let ended = printed(&mut port, &ended);
    let output = "one\nAPI_KEY=***\ntwo\n";
    assert_eq!((&ended["output"], &ended["truncated"]), (&json!(output), &json!(false)));
    assert!(port.said(turn).contains("exited with code 3"));
    let content = json!([{"type": "terminal", "terminalId": ended["terminalId"]}]);
    let of_call = json!({"update": {"sessionUpdate": "tool_call_update", "content": content}});
    assert!(port.count(&of_call) > 0, "the call names the terminal");
    let seen = port.position(&json!({"update": {"exitStatus": {"exitCode": 3}}}));
    assert!(seen < port.position(&json!({"update": {"status": "failed"}})));
    let asked = json!({"agent_id": "ui", "types": ["tool.result"]});
    let kept = port.call("list_events", &asked).unwrap();
    let terminal = json!([{
        "type": "terminal", "terminalId": ended["terminalId"], "output": output,
        "truncated": false, "exitStatus": {"exitCode": 3},
    }]);
    assert_eq!(kept["events"][0]["payload"]["content"], terminal, "{kept}");

    port.prompt("ui", "run seq 1 20000");
    let long = json!({"sessionUpdate": "_eisen/terminal", "exitStatus": {"exitCode": 0}});
    let long = printed(&mut port, &long);
    let output = long["output"].as_str().unwrap();
    assert_eq!(long["truncated"], true);
    assert!(output.ends_with("\n20000\n") && output.len() <= 16 << 10, "{}", output.len());
}

#[test]
fn a_folder_outside_the_zone_and_a_file_that_a_command_names_are_denied() {
    let stage = Stage::new();
    let (_team, mut port) = team(&stage);
    for (prompt, path, action) in [
        ("run in src/api: pwd", "src/api", "read"),
        ("run cat src/api/cart.rs", "src/api/cart.rs", "read"),
        ("run echo x > src/api/cart.rs", "src/api/cart.rs", "write"),
        ("run true && cat < src/api/order.rs", "src/api/order.rs", "read"),
        ("run in src/ui: cat ../api/cart.rs", "src/api/cart.rs", "read"),
    ] {
        let said = port.prompt("ui", prompt);
        assert!(said.contains(&format!("Outside agent zone: {path}. ")), "{prompt}: {said}");
        let blocked = port.blocked("denied");
        let seen = (&blocked["path"], &blocked["via"], &blocked["action"]);
        assert_eq!(seen, (&json!(path), &json!("terminal"), &json!(action)), "{prompt}");
    }
    assert_eq!(stage.read("shop/src/api/cart.rs"), "api\n");
}

#[test]
fn a_command_that_was_granted_runs() {
    let stage = Stage::new();
    let (_team, mut port) = team(&stage);
    port.prompt("ui", "run cat src/api/cart.rs");
    let blocked = port.blocked("denied");
    port.resolve(&blocked, &json!({"decision": "allow"})).unwrap();
    assert_eq!(port.prompt("ui", "run cat src/api/cart.rs"), "api\n");
    // Every path that it names is judged: a grant of one is none of the next.
    port.prompt("ui", "run cat src/api/cart.rs src/api/order.rs");
    let first = port.blocked("denied");
    assert_eq!(first["path"], "src/api/cart.rs");
    port.resolve(&first, &json!({"decision": "allow"})).unwrap();
    port.prompt("ui", "run cat src/api/cart.rs src/api/order.rs");
    assert_eq!(port.blocked("denied")["path"], "src/api/order.rs");
}

#[test]
fn an_agent_without_terminals_is_not_offered_any_and_gets_none() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let zone = "[agents.zone]\nterminals = \"deny\"";
    let team = stage.team("", vec![agent("ui").puppet().with(zone)]);
    let offered = ui.serve("initialize", &json!({"protocolVersion": 1}));
    assert_eq!(offered["clientCapabilities"]["terminal"], json!(false));
    assert_eq!(offered["clientCapabilities"]["fs"]["readTextFile"], json!(true));
    ui.serve("session/new", &json!({"sessionId": "u1"}));
    team.steer_when_ready(&["ui"]);
    let answer = ui.call("terminal/create", &json!({"sessionId": "u1", "command": "true"}));
    assert!(answer["error"]["message"].as_str().unwrap().contains("terminals"), "{answer}");
}

#[test]
fn agents_and_their_terminals_know_their_team() {
    let stage = Stage::new();
    let lines = |of: &str| {
        let show = "echo $EISEN_TEAM $EISEN_AGENT_ID $EISEN_DEPTH $EISEN_PORT ${EISEN_TOKEN:-none}";
        format!("{show} > {}; ", stage.path(of).display())
    };
    let (ui, lead) =
        (agent("ui").behind(&lines("ui.env")), agent("lead").behind(&lines("lead.env")));
    let team = stage.team("[orchestrator]\nagent = \"lead\"", vec![lead, ui]);
    let mut port = team.steer_when_ready(&["lead", "ui"]);
    let number = team.program.port;
    let [ui, lead] = ["ui", "lead"].map(|agent| {
        let environment = stage.read(&format!("{agent}.env"));
        let token = environment.trim().rsplit(' ').next().unwrap().to_owned();
        assert_eq!(environment, format!("shop {agent} 1 {number} {token}\n"));
        assert!(token.len() >= 32 && token != team.token(), "{token}");
        environment
    });
    let show = "run echo $EISEN_TEAM $EISEN_AGENT_ID $EISEN_DEPTH $EISEN_PORT ${EISEN_TOKEN:-none}";
    assert_eq!(port.prompt("ui", show), ui);
    assert_eq!(port.prompt("lead", show), lead);
    assert!(port.prompt("lead", "run command -v eisen-core").ends_with("/eisen-core\n"));
}
