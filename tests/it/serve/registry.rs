//! The registry of sessions, over the ports of several programs that share it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::{Port, Program, Stage, agent, has};

fn observe(stage: &Stage) -> Program {
    stage.start(&["observe", "--port", "0", "--agent-id", "ui", "--", "cat"])
}

fn file(stage: &Stage) -> Value {
    serde_json::from_str(&stage.read("home/core_sessions.json")).unwrap()
}

#[test]
fn every_port_shows_and_changes_the_same_sessions_without_a_token() {
    let stage = Stage::new();
    let (one, other) = (observe(&stage), observe(&stage));
    let (mut one, mut other) = (one.connect(), other.connect());
    let created = one
        .call(
            "create_session",
            &json!({"agent_id": "ui", "session_id": "s", "mode": "single_agent",
                "model": {"model_id": "m", "name": "M"}, "summary": "x", "history": [1, "two"]}),
        )
        .unwrap();
    let s = json!({"agent_id": "ui", "session_id": "s"});
    assert_eq!(other.call("get_session_state", &s), Ok(created.clone()));
    assert_eq!(file(&stage), json!({"active": null, "sessions": [created]}));

    other
        .call(
            "create_session",
            &json!({"agent_id": "lead", "session_id": "l", "mode": "single_agent", "providers": [s]}),
        )
        .unwrap();
    assert_eq!(other.call("set_active_session", &s), Ok(json!({"active": true})));
    let list = one.call("list_sessions", &json!({})).unwrap();
    let keys = |list: &Value| -> Vec<Value> {
        list.as_array()
            .unwrap()
            .iter()
            .map(|listed| json!([listed["session_id"], listed["mode"], listed["is_active"]]))
            .collect()
    };
    assert_eq!(
        keys(&list),
        [json!(["l", "orchestrator", false]), json!(["s", "single_agent", true])]
    );
    let of_lead = one.call("list_sessions", &json!({"agent_id": "lead"})).unwrap();
    assert_eq!(keys(&of_lead).len(), 1);

    let l = json!({"agent_id": "lead", "session_id": "l"});
    let mut items = l.clone();
    items["items"] = json!([{"path": "x"}]);
    let session = one.call("add_context_items", &items).unwrap();
    assert_eq!(session["context"], items["items"]);
    let mut providers = l.clone();
    providers["providers"] = json!([]);
    let session = one.call("set_orchestrator_providers", &providers).unwrap();
    assert_eq!((&session["providers"], &session["context"]), (&json!([]), &items["items"]));

    assert_eq!(one.call("close_session", &s), Ok(json!({"closed": true})));
    assert_eq!(one.call("close_session", &s), Ok(json!({"closed": false})));
    assert_eq!(file(&stage)["active"], Value::Null);
    for method in ["get_session_state", "set_active_session"] {
        assert_eq!(other.call(method, &s).unwrap_err()["code"], 404, "{method}");
    }
}

#[test]
fn the_sessions_of_a_team_appear_and_stay() {
    let stage = Stage::new();
    let (mut ui, mut lead) = (stage.puppet("ui"), stage.puppet("lead"));
    let agents = vec![agent("ui").puppet(), agent("lead").puppet().with("depends_on = [\"ui\"]")];
    let team = stage.team("[orchestrator]\nagent = \"lead\"", agents);
    let mut port = team.watch();
    ui.serve("initialize", &json!({"protocolVersion": 1}));
    let models = json!({"currentModelId": "a", "availableModels": [{"modelId": "a", "name": "A"}]});
    ui.serve("session/new", &json!({"sessionId": "u", "models": models}));
    port.agent_is("ui", "ready");
    let of_ui = json!({"agent_id": "ui", "session_id": "u"});
    let session = port.call("get_session_state", &of_ui).unwrap();
    let expected = json!({"mode": "single_agent", "model": {"model_id": "a", "name": "A"}});
    assert!(has(&session, &expected), "{session}");

    lead.connect("l");
    port.agent_is("lead", "ready");
    let session =
        port.call("get_session_state", &json!({"agent_id": "lead", "session_id": "l"})).unwrap();
    assert!(has(&session, &json!({"mode": "orchestrator", "providers": [of_ui]})), "{session}");

    let option = json!({"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "b",
        "options": [{"value": "b", "name": "B"}]});
    let update = json!({"sessionUpdate": "config_option_update", "configOptions": [option]});
    ui.send(&json!({"jsonrpc": "2.0", "method": "session/update",
        "params": {"sessionId": "u", "update": update}}));
    // What the agent says next is answered after that was read.
    ui.call(
        "fs/read_text_file",
        &json!({"sessionId": "u", "path": stage.in_shop("src/ui/app.ts")}),
    );
    let session = port.call("get_session_state", &of_ui).unwrap();
    assert!(has(&session, &json!({"model": {"model_id": "b", "name": "B"}})), "{session}");
    assert_eq!(team.stop().code, 0);
    assert_eq!(file(&stage)["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn the_sessions_of_a_removed_agent_leave() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui"), agent("api")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    port.call("new_session", &json!({"agent_id": "api"})).unwrap();
    let listed = |port: &mut Port| {
        let list = port.call("list_sessions", &json!({})).unwrap();
        let agent = |listed: &Value| listed["agent_id"].as_str().unwrap().to_owned();
        let mut agents: Vec<_> = list.as_array().unwrap().iter().map(agent).collect();
        agents.sort();
        agents
    };
    assert_eq!(listed(&mut port), ["api", "api", "ui"]);
    port.call("remove_agent", &json!({"agent_id": "api"})).unwrap();
    assert_eq!(listed(&mut port), ["ui"]);
}

#[test]
fn the_active_session_is_the_default_target() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui"), agent("api")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let first = |of: Value| {
        let late = team.watch();
        assert!(has(&late.transcript[0], &of), "{of}: {:#?}", late.transcript[0]);
    };
    first(json!({"session_id": "team-shop"}));
    let activate = |port: &mut Port, agent: &str, session: &str| {
        let key = json!({"agent_id": agent, "session_id": session, "mode": "single_agent"});
        port.call("create_session", &key).unwrap();
        port.call("set_active_session", &key).unwrap();
    };
    activate(&mut port, "api", "api-s1");
    first(json!({"agent_id": "api", "session_id": "api-s1"}));
    activate(&mut port, "ui", "ui-s1");
    first(json!({"agent_id": "ui", "session_id": "ui-s1"}));
    // One that does not live here is not shown.
    activate(&mut port, "editor", "ui-s1");
    first(json!({"session_id": "team-shop"}));
}

#[test]
fn a_designated_orchestrator_comes_before_the_active_session() {
    let stage = Stage::new();
    let team = stage.team("[orchestrator]\nagent = \"lead\"", vec![agent("lead"), agent("ui")]);
    let mut port = team.steer_when_ready(&["lead", "ui"]);
    port.call("set_active_session", &json!({"agent_id": "ui", "session_id": "ui-s1"})).unwrap();
    let late = team.watch();
    assert_eq!(late.transcript[0]["session_id"], "lead-s1");
}

#[test]
fn a_corrupt_file_is_kept_aside_and_reported() {
    let stage = Stage::new();
    stage.file("home/core_sessions.json", "{\"sessions\": [{\"agent_id\"");
    let program = observe(&stage);
    let mut port = program.connect();
    assert_eq!(port.call("list_sessions", &json!({})), Ok(json!([])));
    let key = json!({"agent_id": "ui", "session_id": "s", "mode": "single_agent"});
    port.call("create_session", &key).unwrap();
    let log = program.wait().stderr;
    let aside = std::fs::read_dir(stage.path("home")).unwrap().find_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.starts_with("core_sessions.corrupt-").then_some(name)
    });
    let aside = aside.unwrap();
    assert_eq!(stage.read(&format!("home/{aside}")), "{\"sessions\": [{\"agent_id\"");
    assert!(log.contains("core_sessions.json") && log.contains(&aside), "{log}");
}

/// Creates sessions one after the other until the port is gone; returns those that it confirmed.
fn create_without_end(port: u16, name: &str) -> BTreeSet<String> {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
    let mut confirmed = BTreeSet::new();
    for n in 0.. {
        let session = format!("{name}-{n}");
        let params = json!({"agent_id": "ui", "session_id": session, "mode": "single_agent"});
        let request = json!({"type": "rpc", "id": n, "method": "create_session", "params": params});
        if socket.write_all(format!("{request}\n").as_bytes()).is_err() {
            break;
        }
        let answer = lines.by_ref().map_while(Result::ok).find(|line| line.contains("\"rpc_"));
        let Some(answer) = answer else { break };
        assert!(answer.contains("rpc_result"), "{answer}");
        confirmed.insert(session);
    }
    confirmed
}

#[test]
fn processes_killed_while_they_write_lose_nothing_and_leave_no_lock() {
    let stage = Stage::new();
    let programs: Vec<_> = (0..4).map(|_| observe(&stage)).collect();
    let clients: Vec<_> = programs
        .iter()
        .enumerate()
        .map(|(n, program)| {
            let port = program.port;
            std::thread::spawn(move || create_without_end(port, &format!("p{n}")))
        })
        .collect();
    let watching = observe(&stage);
    let mut watcher = watching.connect();
    let count = |watcher: &mut Port, name: &str| {
        let list = watcher.call("list_sessions", &json!({})).unwrap();
        let of = |listed: &&Value| listed["session_id"].as_str().unwrap().starts_with(name);
        list.as_array().unwrap().iter().filter(of).count()
    };
    // Each dies in the midst of its work.
    for (n, program) in programs.into_iter().enumerate() {
        let name = format!("p{n}-");
        while count(&mut watcher, &name) < 10 * (n + 1) {}
        program.signal(Signal::SIGKILL);
        assert_eq!(program.wait().code, 128 + 9);
    }
    let confirmed: BTreeSet<_> =
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    // Of each one session was perhaps written and not confirmed any more.
    assert!(confirmed.len() >= 100 - 4, "{}", confirmed.len());

    let last = observe(&stage);
    let mut port = last.connect();
    let key = json!({"agent_id": "ui", "session_id": "after", "mode": "single_agent"});
    port.call("create_session", &key).unwrap();
    let there = file(&stage);
    let there: BTreeSet<_> = there["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["session_id"].as_str().unwrap().to_owned())
        .collect();
    let missing: Vec<_> = confirmed.difference(&there).collect();
    assert!(missing.is_empty() && there.contains("after"), "{missing:?}");
}
