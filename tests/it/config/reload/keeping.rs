//! Agents that are added and removed over the port, and kept.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::{agents, ids, reload};
use crate::harness::{Port, Stage, agent};

/// An agent's table, as `add_agent` takes it, that plays as `like` does.
fn table(stage: &Stage, id: &str, like: &str) -> Value {
    let script = stage.path(&format!("{like}.toml"));
    json!({
        "id": id,
        "command": ["eisen-core", "scripted-agent", script],
        "zone": {"allowed": ["src/api/**"]},
        "restart": {"backoff_ms": [1, 2]},
    })
}

fn add(port: &mut Port, config: &Value) -> Result<Value, Value> {
    port.call("add_agent", &json!({"config": config}))
}

fn remove(port: &mut Port, agent: &str) -> Result<Value, Value> {
    port.call("remove_agent", &json!({"agent_id": agent}))
}

#[test]
fn what_was_added_and_removed_is_kept_over_a_restart_of_the_team() {
    let stage = Stage::new();
    let file = vec![agent("ui").zone("src/ui/**"), agent("away"), agent("lead")];
    let team = stage.team("", file);
    let mut port = team.steer_when_ready(&["ui", "away", "lead"]);
    let added = add(&mut port, &table(&stage, "api", "ui")).unwrap();
    assert_eq!(added["agent_id"], "api");
    port.agent_is("api", "ready");
    assert_eq!(port.prompt("api", "read src/api/cart.rs"), "got api\n");
    assert!(port.prompt("api", "read src/ui/app.ts").starts_with("refused"));
    let blocked = port.blocked("denied");
    assert_eq!(blocked["owners"], json!(["ui"]));
    let gone = remove(&mut port, "away").unwrap();
    assert_eq!((&gone["state"], &gone["pid"]), (&json!("stopped"), &Value::Null));
    assert_eq!(ids(&mut port), ["ui", "lead", "api"]);
    let kept = stage.path("home/teams/shop.json");
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let file = stage.read("eisen.toml");
    team.stop();
    assert_eq!(stage.read("eisen.toml"), file);

    let check = stage.run(&["check"]);
    for part in ["agent `api` is added", "agent `away` stays away"] {
        assert!(check.stdout.contains(part), "{part} is not in {}", check.stdout);
    }
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui", "lead", "api"]);
    assert_eq!(ids(&mut port), ["ui", "lead", "api"]);
    assert!(port.prompt("api", "read src/ui/app.ts").starts_with("refused"));
    // A reload keeps it so, and says so.
    let result = port.call("reload", &json!({})).unwrap();
    assert_eq!(result["notes"], json!(["agent `api` is added", "agent `away` stays away"]));
    assert_eq!((&result["applied"], &result["needs_restart"]), (&json!([]), &json!([])));
    // A file that doesn't fit is an error with the reason.
    let file = stage.read("eisen.toml");
    stage.file(
        "eisen.toml",
        &file.replace("id = \"ui\"\n", "id = \"ui\"\ndepends_on = [\"away\"]\n"),
    );
    let refused = stage.run(&["reload"]).stderr;
    assert!(refused.contains("agent `api` is added; agent `away` stays away"), "{refused}");
    stage.file("eisen.toml", &file);
    // By its id alone it comes back as the file has it, in its place.
    add(&mut port, &json!({"id": "away"})).unwrap();
    port.agent_is("away", "ready");
    remove(&mut port, "api").unwrap();
    assert_eq!(ids(&mut port), ["ui", "away", "lead"]);
    let stderr = team.stop().stderr;
    for part in ["agent `api` is added", "agent `away` stays away", "home/teams/shop.json"] {
        assert!(stderr.contains(part), "{part} is not in {stderr}");
    }
    assert!(!kept.exists());
}

#[test]
fn another_agent_can_take_the_place_of_a_removed_one() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui"), agent("api")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    assert_eq!(port.prompt("ui", "read src/ui/app.ts"), "got ui\n");
    remove(&mut port, "ui").unwrap();
    add(&mut port, &table(&stage, "ui", "api")).unwrap();
    port.agent_is("ui", "stopped");
    port.agent_is("ui", "ready");
    assert!(port.prompt("ui", "read src/ui/app.ts").starts_with("refused"));
    team.stop();
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui", "api"]);
    assert!(port.prompt("ui", "read src/ui/app.ts").starts_with("refused"));
    remove(&mut port, "ui").unwrap();
    assert_eq!(ids(&mut port), ["api"]);
}

#[test]
fn the_file_wins_over_what_was_added() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    add(&mut port, &table(&stage, "api", "ui")).unwrap();
    port.agent_is("api", "ready");
    stage.configure("", vec![agent("ui"), agent("api").zone("types/**")]);
    let result = port.call("reload", &json!({})).unwrap();
    assert!(result["notes"][0].as_str().unwrap().contains("now stands in the configuration"));
    let applied: Vec<_> =
        result["applied"].as_array().unwrap().iter().map(|change| &change["key"]).collect();
    assert_eq!(applied, ["zone.allowed", "restart.backoff_ms"]);
    assert_eq!(port.prompt("api", "read types/cart.ts"), "got types\n");
    // What the file took over goes with the file.
    stage.configure("", vec![agent("ui")]);
    assert_eq!(reload(&mut port).0, ["api agents removed"]);
    assert_eq!(ids(&mut port), ["ui"]);
}

#[test]
fn an_agent_that_makes_no_sense_is_not_added() {
    let stage = Stage::new();
    let team = stage.team(
        "[orchestrator]\nagent = \"lead\"",
        vec![agent("lead"), agent("top").with("depends_on = [\"base\"]"), agent("base")],
    );
    let mut port = team.steer_when_ready(&["lead", "top", "base"]);
    let config = json!({"id": "x", "comand": ["a"], "autostart": "yes", "zone": {"alowed": ["a"], "denied": ["../b"]}, "depends_on": ["bas"]});
    let error = add(&mut port, &config).unwrap_err();
    assert_eq!(error["code"], 400);
    let message = error["message"].as_str().unwrap();
    for part in [
        "`x`",
        "`comand`",
        "did you mean `command`?",
        "`autostart`",
        "`alowed`",
        "did you mean `allowed`?",
        "../b",
        "did you mean \"base\"?",
        "neither `command` nor `profile`",
    ] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
    for (config, code, part) in [
        (json!({}), 400, "no `id`"),
        (json!({"id": "x"}), 400, "neither `command` nor `profile`"),
        (json!({"id": 7, "command": ["a"]}), 400, "`id` must be a string"),
        (json!({"id": "orchestrator", "command": ["a"]}), 400, "reserved"),
        (json!({"id": "../x", "command": ["a"]}), 400, "../x"),
        (json!({"id": "base", "command": ["a"]}), 409, "`base`"),
        (json!({"id": "x", "command": ["a"], "model": null}), 400, "`model` is null"),
        (
            json!({"id": "x", "command": ["a"], "zone": {"allowed": ["a", null]}}),
            400,
            "`zone.allowed` is null",
        ),
        (json!({"id": "x", "command": ["a"], "depends_on": ["x"]}), 400, "x → x"),
        (json!({"id": "x", "command": ["a"], "cwd": "nowhere"}), 400, "nowhere"),
        (json!({"id": "x", "command": ["a"], "initialize_timeout_s": u64::MAX}), 400, "x"),
        (json!([]), 400, "object"),
        (json!("x"), 400, "object"),
    ] {
        let error = add(&mut port, &config).unwrap_err();
        assert_eq!(error["code"], code, "{config} {error}");
        assert!(error["message"].as_str().unwrap().contains(part), "{config} {error}");
    }
    port.send_raw(b"{\"type\":\"rpc\",\"id\":\"two\",\"method\":\"add_agent\",\"params\":{\"config\":{\"id\":\"x\",\"command\":[\"a\"],\"zone\":{\"allowed\":[],\"allowed\":[\"**\"]}}}}\n");
    let error = port.expect(&json!({"type": "rpc_error", "id": "two"}));
    assert!(
        error["error"]["message"].as_str().unwrap().contains("duplicate key `allowed`"),
        "{error}"
    );
    assert_eq!(port.call("add_agent", &json!({})).unwrap_err()["code"], 400);

    for (agent, code, part) in
        [("nobody", 404, "nobody"), ("lead", 409, "orchestrator"), ("base", 409, "`top`")]
    {
        let error = remove(&mut port, agent).unwrap_err();
        assert_eq!(error["code"], code, "{error}");
        assert!(error["message"].as_str().unwrap().contains(part), "{error}");
    }
    assert_eq!(ids(&mut port), ["lead", "top", "base"]);
    assert!(!stage.has("home/teams/shop.json"));
    let mut watching = team.watch();
    for method in ["add_agent", "remove_agent", "reload"] {
        assert_eq!(watching.call(method, &json!({})).unwrap_err()["code"], 401);
    }
}

#[test]
fn an_agent_is_removed_in_the_middle_of_a_turn() {
    let stage = Stage::new();
    let team = stage.team(
        "[orchestrator]\non_block = \"hold\"",
        vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")],
    );
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let turn = port.begin("ui", "read src/api/cart.rs");
    let queued = port.begin("ui", "hello");
    let blocked = port.blocked("pending");
    let running = port.begin_waiting("api");
    let others = [remove(&mut port, "api").unwrap(), remove(&mut port, "ui").unwrap()];
    assert_eq!(others[1]["reason"], "it was removed from the team");
    for id in [queued, running] {
        port.answer(id).unwrap_err();
    }
    // What it held is answered first, so that this agent may come to an end of its own.
    let _ = port.answer(turn);
    port.expect(&json!({"type": "blocked", "id": blocked["id"], "status": "expired"}));
    port.expect(&json!({"type": "turn", "agent_id": "api", "stop_reason": "error"}));
    for agent in ["ui", "api"] {
        assert_eq!(port.count(&json!({"type": "turn", "agent_id": agent})), 1);
    }
    assert_eq!(port.resolve(&blocked, &json!({"decision": "allow"})).unwrap_err()["code"], 409);
    assert!(agents(&mut port).is_empty());
    // Whoever joins now hears of none of them.
    let mut late = team.watch();
    late.call("list_agents", &json!({})).unwrap();
    assert_eq!(late.count(&json!({"type": "agent"})), 0);
    assert_eq!(late.count(&json!({"type": "snapshot", "agent_id": "ui"})), 0);
    assert_eq!(team.stop().code, 0);
}

#[test]
fn what_one_was_granted_is_not_its_successors() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    add(&mut port, &table(&stage, "api", "ui")).unwrap();
    port.agent_is("api", "ready");
    port.prompt("api", "read src/ui/app.ts");
    port.prompt("api", "read types/cart.ts");
    let granted = port.blocked("denied");
    let undecided = port.blocked("denied");
    port.resolve(&granted, &json!({"decision": "allow"})).unwrap();
    remove(&mut port, "api").unwrap();
    let refused = port.resolve(&undecided, &json!({"decision": "allow"})).unwrap_err();
    assert_eq!(refused["code"], 409);
    add(&mut port, &table(&stage, "api", "ui")).unwrap();
    port.agent_is("api", "stopped");
    port.agent_is("api", "ready");
    assert!(port.prompt("api", "read src/ui/app.ts").starts_with("refused"));
}

#[test]
fn a_team_that_keeps_nonsense_does_not_come_up() {
    let stage = Stage::new();
    stage.configure("", vec![agent("ui")]);
    for (kept, part) in [
        ("{", "can't be read"),
        ("[]", "can't be read"),
        ("{\"added\":[],\"zones\":{}}", "`zones`"),
        ("{\"added\":[{\"id\":\"x\"}]}", "neither `command` nor `profile`"),
        ("{\"added\":[{\"id\":\"x\",\"command\":[\"a\"],\"zone\":{\"allow\":[]}}]}", "`allow`"),
        (
            "{\"added\":[{\"id\":\"x\",\"command\":[\"a\"]},{\"id\":\"x\",\"command\":[\"a\"]}]}",
            "another agent",
        ),
        ("{\"added\":[{\"id\":\"x\",\"command\":[\"a\"],\"depends_on\":[\"gone\"]}]}", "gone"),
    ] {
        stage.file("home/teams/shop.json", kept);
        for command in ["up", "check"] {
            let ended = stage.run(&[command]);
            assert_eq!(ended.code, 2, "{kept} {}", ended.stderr);
            for part in [part, "home/teams/shop.json", "delete it"] {
                assert!(ended.stderr.contains(part), "{part} is not in {}", ended.stderr);
            }
        }
        assert_eq!(stage.read("home/teams/shop.json"), kept);
    }
}
