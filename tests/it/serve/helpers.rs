//! Helpers: started for a task within their parent's zone, ended with it, bounded.

use serde_json::{Value, json};

use super::tools::{Client, server};
use crate::harness::{Port, Puppet, Stage, agent, eventually};

fn helper(port: &mut Port, parent: &str, task: &str, zone: &str) -> Result<Value, Value> {
    let params = json!({ "parent": parent, "task": task, "zone": [zone] });
    port.call("start_helper", &params)
}

fn ended(port: &mut Port, id: &Value) -> Value {
    let found = port.call("wait_for_tasks", &json!({ "ids": [id] })).unwrap();
    assert_eq!(found["timed_out"], false, "{found}");
    let pages = port.call("task_result", &json!({ "id": id })).unwrap()["pages"].clone();
    let page = json!({ "id": id, "page": if pages == 0 { Value::Null } else { 1.into() } });
    port.call("task_result", &page).unwrap()
}

/// The id of the next prompt, and all that it says.
fn notes(puppet: &mut Puppet) -> (Value, String) {
    let request = puppet.expect(&json!({ "method": "session/prompt" }));
    (request["id"].clone(), request["params"]["prompt"].to_string())
}

fn agents(port: &mut Port) -> Vec<Value> {
    let agents = port.call("list_agents", &json!({})).unwrap();
    agents.as_array().unwrap().iter().map(|it| it["agent_id"].clone()).collect()
}

/// Waits until the team has these agents.
fn has(port: &mut Port, wanted: &[&str]) {
    eventually("the team has these agents", || agents(port) == wanted);
}

#[test]
fn a_helper_does_one_task_in_its_zone_and_is_gone() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let started = helper(&mut port, "ui", "run echo level $EISEN_DEPTH", "src/ui/**").unwrap();
    assert_eq!((&started["agent"], &started["state"]), (&json!("ui-h1"), &json!("running")));
    let result = ended(&mut port, &started["id"]);
    assert_eq!(
        (&result["state"], result["text"].as_str().unwrap().trim()),
        (&json!("done"), "level 2")
    );
    has(&mut port, &["ui", "api"]);

    // Its zone is narrower than its parent's.
    let started = helper(&mut port, "ui", "write src/ui/app.ts x", "src/ui/tests/**").unwrap();
    let result = ended(&mut port, &started["id"]);
    assert!(result["text"].as_str().unwrap().starts_with("refused"), "{result}");
    assert_eq!(stage.read("shop/src/ui/app.ts"), "ui\n");
    has(&mut port, &["ui", "api"]);

    for (parent, zone, code) in
        [("ui", "src/**", 400), ("ui", "/etc/*", 400), ("ui", "../x", 400), ("nobody", "a", 404)]
    {
        assert_eq!(helper(&mut port, parent, "x", zone).unwrap_err()["code"], code, "{zone}");
    }
    let key = json!({ "parent": "ui", "task": "run echo x", "zone": ["src/ui/a"], "key": "k" });
    let first = port.call("start_helper", &key).unwrap();
    assert_eq!(port.call("start_helper", &key).unwrap()["id"], first["id"]);
    ended(&mut port, &first["id"]);
    has(&mut port, &["ui", "api"]);

    let events = json!({ "types": ["subagent.spawn", "subagent.complete"] });
    let listed = port.call("list_events", &events).unwrap()["events"].clone();
    let shown: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            format!("{} {} {}", it["type"], it["agent_id"], it["payload"]["state"]).replace('"', "")
        })
        .collect();
    expect_test::expect![[r#"
        subagent.spawn ui null
        subagent.complete ui-h1 done
        subagent.spawn ui null
        subagent.complete ui-h2 done
        subagent.spawn ui null
        subagent.complete ui-h3 done"#]]
    .assert_eq(&shown.join("\n"));
}

#[test]
fn helpers_are_bounded_in_depth_number_and_lifetime() {
    let stage = Stage::new();
    let keys = "max_depth = 1\nmax_agents = 2\nmax_spawns = 2\n";
    let team = stage.team(keys, vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let refused = |port: &mut Port, parent: &str| {
        let error = helper(port, parent, "run echo x", "src/ui/a").unwrap_err();
        assert_eq!(error["code"], 409, "{error}");
        error["message"].as_str().unwrap().to_owned()
    };
    let slow = helper(&mut port, "ui", "run sleep 600", "src/ui/a").unwrap();
    port.agent_is("ui-h1", "ready");
    assert!(refused(&mut port, "ui").contains("`[team] max_agents` is 2"));
    assert!(refused(&mut port, "ui-h1").contains("`[team] max_depth` is 1"));
    port.call("cancel_task", &json!({ "id": slow["id"] })).unwrap();
    assert_eq!(ended(&mut port, &slow["id"])["state"], "cancelled");
    has(&mut port, &["ui"]);
    let second = helper(&mut port, "ui", "run echo x", "src/ui/a").unwrap();
    ended(&mut port, &second["id"]);
    has(&mut port, &["ui"]);
    assert!(refused(&mut port, "ui").contains("`[team] max_spawns` is 2"));

    // A crash does not begin a new count, an orderly end does.
    team.program.signal(nix::sys::signal::Signal::SIGKILL);
    team.program.wait();
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    assert!(refused(&mut port, "ui").contains("max_spawns"));
    team.stop();
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    let third = helper(&mut port, "ui", "run echo x", "src/ui/a").unwrap();
    assert_eq!(ended(&mut port, &third["id"])["state"], "done");
}

#[test]
fn helpers_end_with_their_parent_and_not_with_its_restart() {
    let stage = Stage::new();
    let ui = agent("ui").zone("src/ui/**");
    let below = agent("below").with("parent = \"ui\"");
    let team = stage.team("", vec![ui, below]);
    let mut port = team.steer_when_ready(&["ui", "below"]);
    let started = helper(&mut port, "ui", "run sleep 600", "src/ui/a").unwrap();
    port.agent_is("ui-h1", "ready");
    port.call("restart_agent", &json!({ "agent_id": "ui" })).unwrap();
    port.agent_is("ui", "ready");
    assert_eq!(agents(&mut port), ["ui", "below", "ui-h1"]);
    port.call("stop_agent", &json!({ "agent_id": "ui" })).unwrap();
    assert_eq!(ended(&mut port, &started["id"])["state"], "lost");
    has(&mut port, &["ui", "below"]);
    port.agent_is("below", "stopped");
}

#[test]
fn what_a_helper_used_is_told_though_it_ends_with_its_parent() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let parent = helper(&mut port, "ui", "run sleep 600", "src/ui/a").unwrap();
    port.agent_is("ui-h1", "ready");
    let nested = helper(&mut port, "ui-h1", "go wild", "src/ui/a").unwrap();
    port.expect(&json!({ "type": "usage", "agent_id": "ui-h1-h2" }));
    port.call("cancel_task", &json!({ "id": parent["id"] })).unwrap();
    assert_eq!(ended(&mut port, &nested["id"])["state"], "lost");
    has(&mut port, &["ui"]);
    let completed = json!({ "types": ["subagent.complete"], "agent_id": "ui-h1-h2" });
    let found = port.call("list_events", &completed).unwrap();
    let usage = &found["events"][0]["payload"]["usage"][0];
    assert!(usage["total"].as_u64().is_some_and(|tokens| tokens >= 1000), "{found}");
}

#[test]
fn an_agent_starts_helpers_of_its_own_and_learns_of_their_ends() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let keys = format!("[profiles.worker]\ncommand = {:?}\n", stage.command(&agent("worker")));
    let team = stage.team(&keys, vec![agent("ui").puppet().zone("src/ui/**"), agent("api")]);
    ui.serve("initialize", &json!({ "protocolVersion": 1 }));
    let own = server(&ui.serve("session/new", &json!({ "sessionId": "s-ui" })));
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let mut client = Client::of(&own);
    let other = json!({ "task": "run echo x", "zone": ["src/ui/a"], "parent": "api" });
    assert_eq!(client.call("start_helper", &other)["isError"], true);
    let params = json!({ "task": "run echo all good", "zone": ["src/ui/a"], "profile": "worker" });
    let started = client.call("start_helper", &params)["structuredContent"].clone();
    ended(&mut port, &started["id"]);

    // It has not waited: one of its next prompts says so, and no later one.
    let id = started["id"].as_str().unwrap();
    let mut hears = |port: &mut Port| {
        port.begin("ui", "go on");
        let (prompt, text) = notes(&mut ui);
        ui.end_turn(&prompt);
        text.contains(id) && text.contains("is done")
    };
    eventually("the parent hears of the end", || hears(&mut port));
    assert!(!hears(&mut port));
    let result = client.call("task_result", &json!({ "id": id, "page": 1, "ack": true }));
    assert!(result["structuredContent"]["text"].as_str().unwrap().contains("all good"));
}

#[test]
fn the_lead_adds_members_within_what_it_may() {
    let stage = Stage::new();
    let mut lead = stage.puppet("lead");
    let may_add = "may_add = { profiles = [\"worker\"], zone = [\"src/**\"], max = 1 }\n";
    let keys = format!(
        "[orchestrator]\nagent = \"lead\"\n{may_add}[profiles.worker]\ncommand = {:?}\n",
        stage.command(&agent("worker"))
    );
    let team = stage.team(&keys, vec![agent("lead").puppet(), agent("api").zone("src/api/**")]);
    lead.serve("initialize", &json!({ "protocolVersion": 1 }));
    let own = server(&lead.serve("session/new", &json!({ "sessionId": "s-lead" })));
    let mut port = team.steer_when_ready(&["lead", "api"]);
    let mut client = Client::of(&own);
    let mut add = |id: &str, profile: &str, zone: &str| {
        let task = "run echo $EISEN_AGENT_ID";
        let params = json!({ "id": id, "profile": profile, "zone": [zone], "task": task });
        let answer = client.call("add_member", &params);
        match answer["isError"].as_bool() {
            Some(true) => Err(answer["content"][0]["text"].as_str().unwrap().to_owned()),
            _ => Ok(answer["structuredContent"]["id"].clone()),
        }
    };
    for (id, profile, zone, code) in [
        ("docs", "codex", "src/**", "code 403"),
        ("docs", "worker", "docs/**", "code 403"),
        ("api", "worker", "src/**", "code 409"),
        ("no/name", "worker", "src/**", "code 400"),
    ] {
        let refused = add(id, profile, zone).unwrap_err();
        assert!(refused.contains(code), "{refused}");
    }
    let task = add("ui", "worker", "src/ui/**").unwrap();
    assert!(add("more", "worker", "src/**").unwrap_err().contains("may have 1"));
    assert_eq!(ended(&mut port, &task)["text"].as_str().unwrap().trim(), "ui");
    // It stays, over a restart of the team too.
    team.stop();
    let team = stage.start(&["up", "-c", "eisen.toml"]);
    let team = crate::harness::Team::of(team, &stage);
    lead = Puppet::again(&stage, "lead");
    lead.serve("initialize", &json!({ "protocolVersion": 1 }));
    let own = server(&lead.serve("session/new", &json!({ "sessionId": "s-lead" })));
    let mut port = team.steer_when_ready(&["lead", "api", "ui"]);
    let mut client = Client::of(&own);
    let refused = client.call("remove_member", &json!({ "id": "api" }));
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("code 403"), "{refused}");
    assert_eq!(client.call("remove_member", &json!({ "id": "ui" }))["isError"], false);
    has(&mut port, &["lead", "api"]);
}

#[test]
fn without_a_word_of_the_configuration_the_lead_adds_nobody() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let params = json!({ "id": "x", "profile": "codex", "zone": ["a"], "task": "x" });
    let refused = port.call("add_member", &params).unwrap_err();
    assert_eq!(refused["code"], 403);
    assert!(refused["message"].as_str().unwrap().contains("`may_add`"), "{refused}");
}
