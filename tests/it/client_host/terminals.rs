//! `terminal/*`: real processes, where the zone lets them run.

use serde_json::json;

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
