//! A team takes in another configuration while it is up: agents that did not change never notice.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{Port, Stage, agent};

mod keeping;

/// The agents as `list_agents` shows them: id, state and pid.
fn agents(port: &mut Port) -> Vec<(String, String, Value)> {
    let agents = port.call("list_agents", &json!({})).unwrap();
    let agent = |agent: &Value| {
        let text = |key: &str| agent[key].as_str().unwrap().to_owned();
        (text("agent_id"), text("state"), agent["pid"].clone())
    };
    agents.as_array().unwrap().iter().map(agent).collect()
}

fn ids(port: &mut Port) -> Vec<String> {
    agents(port).into_iter().map(|(id, ..)| id).collect()
}

/// What a reload did: a word each, `agent key`, with what is to be restarted.
fn reload(port: &mut Port) -> (Vec<String>, Vec<String>) {
    let result = port.call("reload", &json!({})).unwrap();
    let list = |list: &str| {
        let change = |change: &Value| {
            let agent = change["agent_id"].as_str().map(|agent| format!("{agent} "));
            let kind = match change["change"].as_str().unwrap() {
                "changed" => String::new(),
                kind => format!(" {kind}"),
            };
            let restart = change["restart"].as_str().map(|restart| format!(" ({restart})"));
            let key = change["key"].as_str().unwrap();
            format!("{}{key}{kind}{}", agent.unwrap_or_default(), restart.unwrap_or_default())
        };
        result[list].as_array().unwrap().iter().map(change).collect()
    };
    (list("applied"), list("needs_restart"))
}

#[test]
fn a_zone_is_widened_and_narrowed_under_a_running_agent() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**"), agent("api")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let before = agents(&mut port);
    assert!(port.prompt("ui", "read src/api/cart.rs").starts_with("refused"));

    stage.configure("", vec![agent("ui").zone("src/**"), agent("api").zone("src/api/**")]);
    assert_eq!(
        reload(&mut port),
        (vec!["ui zone.allowed".into(), "api zone".into(), "api zone.allowed".into()], vec![])
    );
    assert_eq!(port.prompt("ui", "read src/api/cart.rs"), "got api\n");
    // The other has a zone now, and so owns what is in it.
    port.prompt("ui", "read types/cart.ts");
    port.prompt("api", "read src/ui/app.ts");
    let blocked = port.expect(&json!({"type": "blocked", "path": "src/ui/app.ts"}));
    assert_eq!(blocked["owners"], json!(["ui"]));

    stage.configure("", vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")]);
    assert_eq!(reload(&mut port).0, ["ui zone.allowed"]);
    assert!(port.prompt("ui", "read src/api/cart.rs").starts_with("refused"));
    assert_eq!(port.prompt("ui", "read src/ui/app.ts"), "got ui\n");

    // For every agent, by the team's own table.
    stage.configure(
        "[zones]\nshared = [\"types/**\"]\ndenied = [\"src/ui/app.ts\"]",
        vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")],
    );
    assert_eq!(reload(&mut port).0, ["zones.shared", "zones.denied"]);
    assert_eq!(port.prompt("api", "read types/cart.ts"), "got types\n");
    assert!(port.prompt("ui", "read src/ui/app.ts").starts_with("refused"));
    assert_eq!(reload(&mut port), (vec![], vec![]));

    // The same processes, and of each one session only.
    assert_eq!(agents(&mut port), before);
    for agent in ["ui", "api"] {
        let sessions = port.transcript.iter().filter(|line| {
            line["type"] == "snapshot" && line["agent_id"] == agent && line["seq"] == 0
        });
        assert!(sessions.count() <= 1);
    }
}

#[test]
fn a_grant_stays_when_a_zone_changes() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "read src/api/cart.rs");
    let blocked = port.blocked("denied");
    port.resolve(&blocked, &json!({"decision": "allow", "scope": "session"})).unwrap();
    stage.configure("", vec![agent("ui").zone("types/**")]);
    assert_eq!(reload(&mut port).0, ["ui zone.allowed"]);
    assert_eq!(port.prompt("ui", "read src/api/cart.rs"), "got api\n");
    assert!(port.prompt("ui", "read src/ui/app.ts").starts_with("refused"));
}

#[test]
fn agents_come_and_go_with_the_file() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("lead"), agent("ui")]);
    let mut port = team.steer_when_ready(&["lead", "ui"]);
    let lead = agents(&mut port)[0].clone();
    let gone = agents(&mut port)[1].2.clone();
    port.prompt("ui", "read src/ui/app.ts");

    let top = agent("top").with("depends_on = [\"base\"]");
    let idle = agent("idle").with("autostart = false");
    stage.configure("", vec![top, agent("lead"), agent("base"), idle]);
    let (applied, needs_restart) = reload(&mut port);
    assert_eq!(
        applied,
        ["top agents added", "base agents added", "idle agents added", "ui agents removed"]
    );
    assert!(needs_restart.is_empty());
    port.agent_is("top", "ready");
    let at = |port: &Port, agent: &str, state: &str| {
        port.position(&json!({"type": "agent", "agent_id": agent, "state": state}))
    };
    assert!(at(&port, "base", "ready") < at(&port, "top", "connecting"));
    assert_eq!(port.prompt("top", "hello"), "hello");
    // In the file's order, and nothing is left of the one that went.
    let now = agents(&mut port);
    assert_eq!(now.iter().map(|(id, ..)| id).collect::<Vec<_>>(), ["top", "lead", "base", "idle"]);
    assert_eq!(now[3].1, "stopped");
    assert_eq!(now[1], lead);
    assert!(!PathBuf::from(format!("/proc/{gone}")).exists());
    let last = port.agent_is("ui", "stopped");
    assert_eq!(
        (&last["pid"], &last["reason"]),
        (&Value::Null, &json!("it was removed from the team"))
    );
    // Its session took back what it showed before that.
    let removed = json!({"type": "delta", "agent_id": "ui", "removed": ["src/ui/app.ts"]});
    assert!(port.position(&removed) < at(&port, "ui", "stopped"));
    for method in ["prompt", "start_agent", "cancel"] {
        let error = port.call(method, &json!({"agent_id": "ui", "text": "x"})).unwrap_err();
        assert_eq!(error["code"], 404, "{method}");
    }
    let ended = team.stop();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn an_agent_waits_for_one_that_comes_with_the_same_reload() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("top")]);
    let mut port = team.steer_when_ready(&["top"]);
    let base = agent("base").with("autostart = false");
    stage.configure("", vec![agent("top").with("depends_on = [\"base\"]"), base]);
    assert_eq!(reload(&mut port).0, ["top depends_on", "base agents added"]);
    port.call("restart_agent", &json!({"agent_id": "top"})).unwrap();
    let why = "waits for `base` to be ready";
    port.expect(&json!({"type": "agent", "agent_id": "top", "reason": why}));
    port.call("start_agent", &json!({"agent_id": "base"})).unwrap();
    port.agent_is("top", "ready");
}

#[test]
fn what_is_taken_at_a_start_is_reported_and_a_restart_applies_it() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui"), agent("off").with("autostart = false")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let before = agents(&mut port);
    let env = "env = { GREETING = \"hello\" }";
    let off = agent("off").with("autostart = false").with(env);
    stage.configure(
        "scratch = true\nstop_grace_s = 4",
        vec![agent("ui").with(env).with("prompt = \"run echo $GREETING\""), off],
    );
    let waits = ["team.scratch (team)", "ui env (agent)", "ui prompt (agent)"];
    let (applied, needs_restart) = reload(&mut port);
    assert_eq!(needs_restart, waits);
    // Who does not run takes it at its next start, whatever that is.
    assert_eq!(applied, ["team.stop_grace_s", "off env"]);
    assert_eq!(agents(&mut port), before);
    // It is reported until it is done.
    assert_eq!(reload(&mut port), (vec![], waits.map(str::to_owned).into()));
    port.call("restart_agent", &json!({"agent_id": "ui"})).unwrap();
    let ready = port.agent_is("ui", "ready");
    assert_ne!(ready["pid"], before[0].2);
    // Another prompt than before is said.
    port.expect(&json!({"type": "turn", "agent_id": "ui", "turn": 0}));
    assert_eq!(port.prompt("ui", "run echo $GREETING"), "hello\n");
    assert_eq!(reload(&mut port), (vec![], vec![waits[0].to_owned()]));
}

#[test]
fn a_file_with_a_mistake_changes_nothing() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let before = agents(&mut port);
    stage.configure(
        "stop_grace = 1",
        vec![agent("ui").zone("src/**"), agent("api").with("depends_on = [\"uii\"]")],
    );
    let error = port.call("reload", &json!({})).unwrap_err();
    assert_eq!(error["code"], 400);
    let message = error["message"].as_str().unwrap();
    for part in ["eisen.toml", "stop_grace_s", "did you mean \"ui\"?"] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
    assert!(!message.contains('\u{1b}'));
    let checked = stage.run(&["check"]).stderr;
    assert_eq!(message, checked.trim_end());
    assert_eq!(stage.run(&["reload"]).stderr, format!("error: nothing was changed:\n{checked}"));
    assert_eq!(agents(&mut port), before);
    assert!(port.prompt("ui", "read src/api/cart.rs").starts_with("refused"));
    std::fs::remove_file(stage.path("eisen.toml")).unwrap();
    assert_eq!(port.call("reload", &json!({})).unwrap_err()["code"], 400);
    let ended = stage.run(&["reload"]);
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("eisen.toml"), "{}", ended.stderr);
    assert_eq!(port.prompt("ui", "hello"), "hello");
}

#[test]
fn a_team_stays_where_it_is_until_it_is_brought_up_again() {
    let stage = Stage::new();
    let team = stage.team(
        "[orchestrator]\nagent = \"lead\"",
        vec![agent("lead"), agent("ui").zone("src/ui/**")],
    );
    let mut port = team.steer_when_ready(&["lead", "ui"]);
    // The orchestrator stays to the end, whatever the file says.
    stage.configure("", vec![agent("ui").zone("src/**")]);
    let (applied, needs_restart) = reload(&mut port);
    assert_eq!(applied, ["ui zone.allowed"]);
    assert_eq!(needs_restart, ["orchestrator.agent (team)", "lead agents removed (team)"]);
    assert_eq!(ids(&mut port), ["ui", "lead"]);
    // In another workspace every path means another file.
    stage.file("elsewhere/src/api/cart.rs", "other\n");
    stage.configure("", vec![agent("ui").zone("types/**"), agent("new")]);
    let text =
        stage.read("eisen.toml").replace("workspace = \"shop\"", "workspace = \"elsewhere\"");
    stage.file("eisen.toml", &text);
    let (applied, needs_restart) = reload(&mut port);
    assert!(applied.is_empty(), "{applied:?}");
    for change in ["team.workspace (team)", "ui zone.allowed (team)", "new agents added (team)"] {
        assert!(needs_restart.contains(&change.to_owned()), "{change} is not in {needs_restart:?}");
    }
    assert_eq!(port.prompt("ui", "read src/api/cart.rs"), "got api\n");
    assert_eq!(ids(&mut port), ["ui", "lead"]);
}

#[test]
fn how_blocks_and_permissions_are_answered_changes_at_once() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "ask src/ui/app.ts"), "allow_once");
    let denying = || agent("ui").with("permissions = \"deny\"").zone("src/ui/**");
    let hold = "[orchestrator]\non_block = \"hold\"";
    stage.configure(hold, vec![denying()]);
    assert_eq!(reload(&mut port).0, ["orchestrator.on_block", "ui permissions"]);
    assert_eq!(port.prompt("ui", "ask src/ui/app.ts"), "refused with reject_once");
    let reading = port.begin("ui", "read src/api/cart.rs");
    let blocked = port.blocked("pending");
    port.resolve(&blocked, &json!({"decision": "allow"})).unwrap();
    assert_eq!(port.said(reading), "got api\n");
    stage.configure(
        hold,
        vec![agent("ui").with("permissions = \"orchestrator\"").zone("src/ui/**")],
    );
    reload(&mut port);
    let asking = port.begin("ui", "ask src/ui/app.ts");
    let blocked = port.blocked("pending");
    assert_eq!(blocked["via"], "permission");
    port.resolve(&blocked, &json!({"decision": "allow"})).unwrap();
    assert_eq!(port.said(asking), "allow_once");
}

#[test]
fn a_restart_policy_holds_from_the_reload_on() {
    let stage = Stage::new();
    let policy = |policy: &str| {
        agent("ui").with(&format!("[agents.restart]\npolicy = {policy:?}\nbackoff_ms = [1, 2]"))
    };
    let team = stage.team("", vec![policy("never")]);
    let mut port = team.steer_when_ready(&["ui"]);
    stage.configure("", vec![policy("always")]);
    assert_eq!(reload(&mut port).0, ["ui restart.policy"]);
    port.begin("ui", "leave");
    assert_eq!(port.agent_is("ui", "ready")["restarts"], 1);
}

#[test]
fn terminals_are_refused_at_once() {
    let stage = Stage::new();
    let zone = |rest: &str| agent("ui").with(&format!("[agents.zone]\n{rest}"));
    let team = stage.team("", vec![zone("")]);
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "run echo hello"), "hello\n");
    stage.configure("", vec![zone("terminals = \"deny\"")]);
    assert_eq!(reload(&mut port), (vec!["ui zone.terminals".to_owned()], vec![]));
    assert!(port.prompt("ui", "run echo hello").starts_with("failed"));
}

#[test]
fn the_command_line_says_what_was_done() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**"), agent("api")]);
    let port = team.steer_when_ready(&["ui", "api"]);
    let unchanged = stage.run(&["reload"]);
    assert_eq!((unchanged.code, unchanged.stdout.as_str()), (0, "nothing changed\n"));
    stage.configure("scratch = true", vec![agent("ui").zone("src/**").with(""), agent("new")]);
    let text = stage.read("eisen.toml").replace("id = \"ui\"\n", "id = \"ui\"\nmodel = \"m\"\n");
    stage.file("eisen.toml", &text);
    let done = stage.run(&["reload", "--team", "shop"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(
        done.stdout,
        "applied\n  agent ui: zone.allowed\n  agent new: added\n  agent api: removed\n\
         needs a restart\n  team.scratch (stop the team and start it again)\n  \
         agent ui: model (eisen-core agent restart ui)\n"
    );
    let json: Value = serde_json::from_str(&stage.run(&["reload", "--json"]).stdout).unwrap();
    assert_eq!(json["applied"], json!([]));
    assert_eq!(json["needs_restart"][1]["restart"], "agent");
    drop(port);
    team.stop();
    assert_eq!(stage.run(&["reload"]).code, 1);
}

#[test]
fn changes_are_made_one_after_the_other() {
    const ROUNDS: usize = 8;
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let config = |id: &str| json!({"config": {"id": id, "command": ["eisen-core", "scripted-agent", "ui.toml"], "autostart": false}});
    stage.configure("", vec![agent("ui").zone("src/**")]);
    let mut asked = Vec::new();
    for round in 0..ROUNDS {
        asked.push(port.ask("reload", &json!({})));
        asked.push(port.ask("add_agent", &config(&format!("a{round}"))));
        asked.push(port.ask("add_agent", &config("same")));
    }
    let mut conflicts = 0;
    for id in asked {
        if let Err(error) = port.answer(id) {
            assert_eq!(error["code"], 409, "{error}");
            conflicts += 1;
        }
    }
    assert_eq!(conflicts, ROUNDS - 1);
    assert_eq!(agents(&mut port).len(), ROUNDS + 2);
    assert_eq!(port.prompt("ui", "read src/api/cart.rs"), "got api\n");
}
