//! An agent's life: its start, its restarts, and the answers to clients that wait for it.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{Port, Stage, agent};

/// The states that an agent went through, as far as the client saw.
fn states(port: &Port, agent: &str) -> Vec<String> {
    let of_agent =
        port.transcript.iter().filter(|line| line["type"] == "agent" && line["agent_id"] == agent);
    let mut states: Vec<String> =
        of_agent.map(|line| line["state"].as_str().unwrap().to_owned()).collect();
    states.dedup();
    states
}

#[test]
fn an_agent_starts_once_those_it_depends_on_are_ready() {
    let stage = Stage::new();
    let mut base = stage.puppet("base");
    let top = agent("top").with("depends_on = [\"middle\", \"base\"]");
    let middle = agent("middle").with("depends_on = [\"base\"]");
    let team = stage.team("", vec![top, middle, agent("base").puppet()]);
    let mut port = team.steer();
    let waiting = port.agent_is("top", "initializing");
    assert_eq!(waiting["pid"], Value::Null);
    port.agent_is("middle", "initializing");
    base.serve("initialize", &json!({"protocolVersion": 1}));
    let session = base.expect(&json!({"method": "session/new"}));
    // Without its session it is not ready, so the others wait on.
    assert_eq!(port.count(&json!({"agent_id": "middle", "state": "connecting"})), 0);
    base.send(&json!({"jsonrpc": "2.0", "id": session["id"], "result": {"sessionId": "b1"}}));
    port.agent_is("top", "ready");
    let at = |agent: &str, state: &str| {
        port.position(&json!({"type": "agent", "agent_id": agent, "state": state}))
    };
    assert!(at("base", "ready") < at("middle", "connecting"));
    assert!(at("middle", "ready") < at("top", "connecting"));
    let pid = port.transcript[at("top", "ready")]["pid"].as_u64().unwrap();
    assert!(PathBuf::from(format!("/proc/{pid}")).exists());
}

#[test]
fn an_agent_that_fails_is_started_again_until_it_is_in_error() {
    let stage = Stage::new();
    let keys = "depends_on = [\"gate\"]\n[agents.restart]\nmax_restarts = 2\nbackoff_ms = [1, 2]";
    let bad = agent("bad").start("{ stderr = \"no such model: x\" }, { exit = 3 }").with(keys);
    let mut gate = stage.puppet("gate");
    let team = stage.team("", vec![bad, agent("gate").puppet()]);
    let mut port = team.steer();
    port.agent_is("bad", "initializing");
    gate.connect("g1");
    let error = port.agent_is("bad", "error");
    let once = ["connecting", "restarting", "initializing"];
    let expected = [&["initializing"], &once[..], &once[..], &["connecting", "error"]].concat();
    assert_eq!(states(&port, "bad"), expected);
    assert_eq!((&error["restarts"], &error["pid"]), (&json!(2), &Value::Null));
    let reason = error["reason"].as_str().unwrap();
    for part in ["exited with status 3", "no such model: x", "2 times"] {
        assert!(reason.contains(part), "{part} is not in {reason}");
    }
    assert!(stage.read("home/logs/shop/bad.log").contains("no such model: x"));
    let refused = port.call("prompt", &json!({"agent_id": "bad", "text": "x"})).unwrap_err();
    assert_eq!(refused["code"], 409);
    assert!(refused["message"].as_str().unwrap().contains("no such model: x"), "{refused}");
    // It may be started by hand, and its count begins anew.
    port.call("start_agent", &json!({"agent_id": "bad"})).unwrap();
    assert_eq!(port.agent_is("bad", "error")["restarts"], 4);
}

#[test]
fn an_agent_that_ends_before_it_speaks_says_why() {
    let stage = Stage::new();
    let ends = |id: &str, line: &str| {
        let never = "[agents.restart]\npolicy = \"never\"";
        agent(id).behind(&format!("{line}; exit 0;")).with(never)
    };
    let gone = "gone is no longer maintained: install gone2";
    let agents = vec![
        ends("gone", &format!("echo '{gone}'")),
        ends("mute", "echo 'no licence' >&2"),
        ends("zoned", &format!("echo '{gone}'")).zone("src/ui/**"),
    ];
    let team = stage.team("", agents);
    let mut port = team.steer();
    for (agent, said) in [("gone", gone), ("mute", "no licence"), ("zoned", gone)] {
        let error = port.agent_is(agent, "error");
        let expected = format!("exited with status 0; its last words: {said}");
        assert_eq!(error["reason"], expected, "{agent}");
    }
}

#[test]
fn the_policy_says_whether_it_starts_again() {
    let stage = Stage::new();
    let policy =
        |policy: &str| format!("[agents.restart]\npolicy = {policy:?}\nbackoff_ms = [1, 2]");
    let team = stage.team(
        "",
        vec![
            agent("never").with(&policy("never")),
            agent("failure").with(&policy("on-failure")),
            agent("always").with(&policy("always")),
        ],
    );
    let mut port = team.steer_when_ready(&["never", "failure", "always"]);
    for agent in ["never", "failure", "always"] {
        port.begin(agent, "leave");
    }
    for agent in ["never", "failure"] {
        let stopped = port.agent_is(agent, "stopped");
        assert!(stopped["reason"].as_str().unwrap().contains("status 0"), "{stopped}");
    }
    assert_eq!(port.agent_is("always", "ready")["restarts"], 1);
    port.call("start_agent", &json!({"agent_id": "never"})).unwrap();
    port.agent_is("never", "ready");
    port.begin("never", "die");
    let error = port.agent_is("never", "error");
    assert!(error["reason"].as_str().unwrap().contains("SIGKILL"), "{error}");
}

#[test]
fn a_program_that_is_not_there_is_an_error_and_no_other_agent_cares() {
    let stage = Stage::new();
    stage.configure("", vec![agent("ui")]);
    let mut config = stage.read("eisen.toml");
    config.push_str("[[agents]]\nid = \"ghost\"\ncommand = [\"no-such-agent\"]\n");
    stage.file("eisen.toml", &config);
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    let error = port.agent_is("ghost", "error");
    assert!(error["reason"].as_str().unwrap().contains("no-such-agent"), "{error}");
    assert_eq!(port.prompt("ui", "hello"), "hello");
}

#[test]
fn an_agent_that_never_answers_is_in_error_in_time() {
    let stage = Stage::new();
    let keys = "initialize_timeout_s = 1";
    let team =
        stage.team("stop_grace_s = 1", vec![agent("mute").start("{ hang = true }").with(keys)]);
    let error = team.steer().agent_is("mute", "error");
    let reason = error["reason"].as_str().unwrap();
    assert!(reason.contains("initialize") && reason.contains("1 s"), "{reason}");
    assert_eq!(error["pid"], Value::Null);
}

#[test]
fn a_death_in_the_middle_of_a_turn_is_reported_to_whoever_asked() {
    let stage = Stage::new();
    let ui = agent("ui").with("[agents.restart]\nbackoff_ms = [1, 2]");
    let team = stage.team("", vec![ui]);
    let mut port = team.steer_when_ready(&["ui"]);
    let dying = port.begin("ui", "die");
    let queued = port.begin("ui", "never said");
    let error = port.answer(dying).unwrap_err();
    assert_eq!(error["code"], 500, "{error}");
    assert!(error["message"].as_str().unwrap().contains("SIGKILL"), "{error}");
    // The other may have been sent never or, by bad luck, to the one that came after.
    let _ = port.answer(queued);
    let turn = port.expect(&json!({"type": "turn", "agent_id": "ui", "turn": 0}));
    assert_eq!(turn["stop_reason"], "error");
    for part in ["SIGKILL", "I cannot go on"] {
        assert!(turn["reason"].as_str().unwrap().contains(part), "{turn}");
    }
    let at = |line: &Value| port.position(line);
    let turn_line = at(&json!({"type": "turn", "turn": 0}));
    assert!(turn_line < at(&json!({"type": "rpc_error", "id": dying})));
    let back = port.agent_is("ui", "ready");
    assert_eq!(back["restarts"], 1);
    assert_eq!(port.prompt("ui", "hello"), "hello");
}

#[test]
fn agents_can_be_stopped_started_and_restarted() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui"), agent("api")]);
    let mut port = team.steer();
    let first = port.agent_is("ui", "ready")["pid"].clone();
    port.agent_is("api", "ready");
    let running = port.begin_waiting("ui");
    port.call("stop_agent", &json!({"agent_id": "ui"})).unwrap();
    let stopped = port.agent_is("ui", "stopped");
    assert_eq!(stopped["pid"], Value::Null);
    assert!(!PathBuf::from(format!("/proc/{first}")).exists());
    assert_eq!(port.answer(running).unwrap_err()["code"], 500);
    port.expect(&json!({"type": "turn", "agent_id": "ui", "stop_reason": "error"}));
    assert_eq!(
        port.call("prompt", &json!({"agent_id": "ui", "text": "x"})).unwrap_err()["code"],
        409
    );

    port.call("start_agent", &json!({"agent_id": "ui"})).unwrap();
    let second = port.agent_is("ui", "ready")["pid"].clone();
    assert_ne!(first, second);
    port.call("restart_agent", &json!({"agent_id": "ui"})).unwrap();
    let third = port.agent_is("ui", "ready");
    assert_ne!(second, third["pid"]);
    assert_eq!(third["restarts"], 1);
    assert_eq!(port.prompt("ui", "hello"), "hello");
    // The other never noticed.
    assert_eq!(states(&port, "api").last().map(String::as_str), Some("ready"));
    assert_eq!(port.count(&json!({"type": "agent", "agent_id": "api", "state": "stopped"})), 0);
}

#[test]
fn the_configured_prompt_is_said_again_only_if_its_turn_had_not_ended() {
    let stage = Stage::new();
    let mut agents = Vec::new();
    for (id, prompt) in [("done", "hello"), ("broken", "die once")] {
        agents.push(
            agent(id).with(&format!("prompt = {prompt:?}\n[agents.restart]\nbackoff_ms = [1, 2]")),
        );
    }
    let team = stage.team("", agents);
    let mut port = team.steer();
    for agent in ["done", "broken"] {
        port.expect(&json!({"type": "turn", "agent_id": agent, "stop_reason": "end_turn"}));
    }
    assert_eq!(
        port.count(&json!({"type": "turn", "agent_id": "broken", "stop_reason": "error"})),
        1
    );
    port.agent_is("done", "ready");
    port.call("restart_agent", &json!({"agent_id": "done"})).unwrap();
    port.agent_is("done", "ready");
    // Had it been said again, it would stand before this.
    port.prompt("done", "and now");
    let turns =
        port.transcript.iter().filter(|line| line["type"] == "turn" && line["agent_id"] == "done");
    assert_eq!(turns.count(), 2);
}

#[test]
fn only_so_many_run_at_once() {
    let stage = Stage::new();
    let team = stage.team("max_running = 1", vec![agent("one"), agent("two")]);
    let mut port = team.steer();
    port.agent_is("one", "ready");
    port.agent_is("two", "initializing");
    assert_eq!(port.count(&json!({"agent_id": "two", "state": "connecting"})), 0);
    port.call("stop_agent", &json!({"agent_id": "one"})).unwrap();
    port.agent_is("two", "ready");
}

#[test]
fn lines_that_are_no_json_are_logged_a_few_times_with_their_beginning_and_how_many_there_were() {
    for zone in [None, Some("src/**")] {
        let stage = Stage::new();
        let noisy = agent("ui").behind("yes no-json | head -n 100000;");
        let noisy = if let Some(zone) = zone { noisy.zone(zone) } else { noisy };
        let team = stage.team("", vec![noisy]);
        let mut port = team.steer_when_ready(&["ui"]);
        assert_eq!(port.prompt("ui", "hello"), "hello");
        let stderr = team.stop().stderr;
        let shown: Vec<_> = stderr.lines().filter(|line| line.contains("no-json")).collect();
        assert!((3..10).contains(&shown.len()), "{stderr}");
        assert!(shown.iter().all(|line| line.contains("agent=ui")), "{stderr}");
        assert!(shown.last().unwrap().contains("count=100000"), "{stderr}");
    }
}
