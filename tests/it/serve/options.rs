//! Mode and model of a session, as its agent offers them.

use serde_json::{Value, json};

use crate::harness::{Port, Stage, agent};

fn options(port: &mut Port) -> Value {
    port.call("list_session_options", &json!({"agent_id": "ui"})).unwrap()["options"].take()
}

fn set(port: &mut Port, option: &str, value: &str) -> Result<Value, Value> {
    let params = json!({"agent_id": "ui", "option": option, "value": value});
    port.call("set_session_option", &params)
}

/// The options of the agent's session by `list_agents`.
fn chosen(port: &mut Port) -> Value {
    port.call("list_agents", &json!({})).unwrap()[0]["sessions"][0]["chosen"].clone()
}

#[test]
fn mode_and_model_are_set_and_everybody_hears_of_it() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").offers(), agent("api")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let offered = json!([
        {"id": "mode", "name": "Mode", "category": "mode", "current": "code",
         "values": [{"value": "code", "name": "code"}, {"value": "plan", "name": "plan"}]},
        {"id": "model", "name": "Model", "category": "model", "current": "large",
         "values": [{"value": "large", "name": "large"}, {"value": "small", "name": "small"}]},
    ]);
    assert_eq!(options(&mut port), offered);
    assert_eq!(chosen(&mut port), json!({"mode": "code", "model": "large"}));
    let nothing = port.call("list_session_options", &json!({"agent_id": "api"})).unwrap();
    assert_eq!(nothing["options"], json!([]));

    let mut other = team.watch();
    let set_mode = set(&mut port, "mode", "plan").unwrap();
    assert_eq!(set_mode["options"][0]["current"], "plan");
    set(&mut port, "model", "small").unwrap();
    let now = json!({"mode": "plan", "model": "small"});
    other.expect(
        &json!({"type": "options", "agent_id": "ui", "session_id": "ui-s1", "chosen": now}),
    );
    assert_eq!(chosen(&mut port), now);
    assert_eq!(port.prompt("ui", "what is chosen"), "plan small");

    // The agent may choose by itself.
    port.prompt("ui", "go to code");
    other.expect(&json!({"type": "options", "agent_id": "ui", "chosen": {"mode": "code"}}));
    assert_eq!(options(&mut port)[0]["current"], "code");

    // A new start is as configured.
    port.call("restart_agent", &json!({"agent_id": "ui"})).unwrap();
    port.agent_is("ui", "restarting");
    port.agent_is("ui", "ready");
    assert_eq!(options(&mut port), offered);
}

#[test]
fn what_is_not_offered_is_refused() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").offers()]);
    let mut port = team.steer_when_ready(&["ui"]);
    for (option, value, message) in [
        ("mode", "yolo", "the agent offers no value `yolo`; it offers `code`, `plan`"),
        ("colour", "red", "the agent offers no option `colour`; it offers `mode`, `model`"),
    ] {
        let refused = set(&mut port, option, value).unwrap_err();
        assert_eq!(refused, json!({"code": 404, "message": message}));
    }
    let elsewhere =
        json!({"agent_id": "ui", "session_id": "nowhere", "option": "mode", "value": "plan"});
    assert_eq!(port.call("set_session_option", &elsewhere).unwrap_err()["code"], 404);
    let mut nobody = team.watch();
    assert_eq!(options(&mut nobody)[0]["current"], "code");
    assert_eq!(set(&mut nobody, "mode", "plan").unwrap_err()["code"], 401);
    for (may, code) in [("read", Some(403)), ("read,prompt", None)] {
        let made = stage.run(&["token", "create", "--json", "--owner", "ada", "--may", may]);
        let made: Value = serde_json::from_str(&made.stdout).unwrap();
        let mut holder = team.watch();
        holder.auth(made["token"].as_str().unwrap());
        let outcome = set(&mut holder, "mode", "plan");
        assert_eq!(
            outcome.err().map(|it| it["code"].clone()),
            code.map(|it: u16| json!(it)),
            "{may}"
        );
    }
}

#[test]
fn a_command_shows_and_sets_them() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").offers(), agent("api")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let shown = stage.run(&["agent", "set", "ui"]);
    assert_eq!(shown.stdout, "mode: code\n  code\n  plan\nmodel: large\n  large\n  small\n");
    let set = stage.run(&["agent", "set", "ui", "mode", "plan"]);
    assert_eq!((set.code, &*set.stdout), (0, "ui: mode is plan\n"));
    assert_eq!(port.prompt("ui", "what is chosen"), "plan large");
    let refused = stage.run(&["agent", "set", "ui", "mode", "yolo"]);
    assert!(refused.code == 1 && refused.stderr.contains("`code`, `plan`"), "{refused:?}");
    let nothing = stage.run(&["agent", "set", "api"]);
    assert_eq!(nothing.stdout, "api: it offers nothing to choose\n");
}
