//! Teams of several hosts, each with an `EISEN_DIR` of its own, behind one hub, over a real server of NATS.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::conflicts;
use crate::harness::{AgentTable, EISEN_CORE, Nats, Port, Program, Stage, Team, agent, eventually};

/// The key that all hosts have.
pub(super) const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n";

/// A host whose team has one agent, which is ready.
pub(super) fn host(nats: &Nats, name: &str, agent_id: &str, keys: &str) -> (Stage, Team) {
    let (stage, team) = host_of(nats, name, vec![agent(agent_id).zone("src/ui/**")], keys);
    team.steer_when_ready(&[agent_id]);
    (stage, team)
}

/// A host with these agents.
pub(super) fn host_of(
    nats: &Nats,
    name: &str,
    agents: Vec<AgentTable>,
    keys: &str,
) -> (Stage, Team) {
    let stage = Stage::new();
    stage.file("home/hub.key", KEY);
    let keys = format!("{keys}\n[hub]\nnats = {:?}\nhost = {name:?}\n", nats.url());
    let team = stage.team(&keys, agents);
    (stage, team)
}

pub(super) fn hub(nats: &Nats, key: &str) -> (Stage, Program) {
    let stage = Stage::new();
    stage.file("home/hub.key", key);
    let program = stage.start(&["hub", "--nats", &nats.url(), "--port", "0"]);
    (stage, program)
}

/// A client of a hub that may do what a person may.
pub(super) fn steer((stage, program): &(Stage, Program)) -> Port {
    let mut port = program.connect();
    port.auth(stage.run_file("hub").unwrap()["token"].as_str().unwrap());
    port
}

fn agents(port: &mut Port) -> Vec<Value> {
    let Ok(Value::Array(agents)) = port.call("list_agents", &json!({})) else { return Vec::new() };
    agents
}

/// Waits until these agents are listed as ready, and nobody says otherwise.
pub(super) fn are_there(port: &mut Port, wanted: &[&str]) {
    eventually(&format!("{wanted:?} are there"), || {
        let agents = agents(port);
        let is_well = |agent: &&Value| agent["state"] == "ready" && agent["reason"].is_null();
        let ids = agents.iter().filter(is_well).filter_map(|agent| agent["agent_id"].as_str());
        ids.eq(wanted.iter().copied())
    });
}

pub(super) fn code(answer: Result<Value, Value>) -> u64 {
    answer.unwrap_err()["code"].as_u64().unwrap()
}

pub(super) const HOLD: &str = "[orchestrator]\non_block = \"hold\"";

#[test]
fn a_hub_shows_the_teams_of_all_hosts_and_steers_them() {
    let Some(nats) = Nats::shared() else { return };
    let (_a, team_a) = host(&nats, "a", "ui", HOLD);
    let (_b, _team_b) = host(&nats, "b", "api", "");
    let hub = hub(&nats, KEY);
    let mut port = steer(&hub);
    are_there(&mut port, &["a/ui", "b/api"]);
    // A turn on one host, with its lines.
    let said = port.prompt("a/ui", "read src/ui/app.ts");
    assert_eq!(said, "got ui\n");
    port.expect(&json!({ "type": "turn", "agent_id": "a/ui", "host": "a", "turn": 0 }));
    // What waits is decided through the hub, once.
    let reading = port.begin("a/ui", "read src/api/cart.rs");
    let blocked =
        port.expect(&json!({ "type": "blocked", "agent_id": "a/ui", "status": "pending" }));
    assert_eq!(blocked["id"], "a/b1");
    // A client that comes now has it, too, and the maps.
    let mut late = steer(&hub);
    late.expect(&json!({ "type": "snapshot", "agent_id": "a/ui" }));
    late.expect(&json!({ "type": "blocked", "id": "a/b1", "status": "pending" }));
    late.resolve(&blocked, &json!({ "decision": "allow" })).unwrap();
    assert_eq!(port.said(reading), "got api\n");
    port.expect(&json!({ "type": "blocked", "id": "a/b1", "status": "allowed" }));
    assert_eq!(code(port.resolve(&blocked, &json!({ "decision": "deny" }))), 409);
    // Lists of all hosts say whose their items are.
    let hot = port.call("hot_files", &json!({})).unwrap();
    assert!(hot["files"].as_array().unwrap().iter().any(|file| file["host"] == "a"), "{hot}");
    // The team itself has the same.
    let mut own = team_a.steer();
    let listed = own.call("list_blocked", &json!({})).unwrap();
    assert_eq!((&listed[0]["id"], &listed[0]["status"]), (&json!("b1"), &json!("allowed")));
    // What is for one host, and what for none.
    assert_eq!(code(port.call("prompt", &json!({ "agent_id": "c/ui", "text": "x" }))), 404);
    assert_eq!(code(port.call("prompt", &json!({ "agent_id": "ui", "text": "x" }))), 400);
    assert_eq!(code(port.call("reload", &json!({}))), 400);
    let reloaded = hub.0.run(&["reload", "--team", "hub", "--host", "b"]);
    assert_eq!((reloaded.code, &*reloaded.stdout), (0, "nothing changed\n"), "{reloaded:?}");
    // Its team keeps a stream for the hub.
    let streams = hub.0.run(&["streams", "--team", "hub", "--host", "b"]).stdout;
    assert!(streams.contains("b/hub") && !streams.contains("a/hub"), "{streams}");
    // Without a token nobody steers.
    let mut stranger = hub.1.connect();
    assert_eq!(code(stranger.call("prompt", &json!({ "agent_id": "a/ui", "text": "x" }))), 401);
    // A token of the hub for one agent.
    let params = json!({ "owner": "ada", "may": ["read", "prompt"], "agents": ["b/api"] });
    let token = port.call("token_create", &params).unwrap();
    let mut ada = hub.1.connect();
    ada.auth(token["token"].as_str().unwrap());
    assert_eq!(ada.prompt("b/api", "read src/ui/app.ts"), "got ui\n");
    assert_eq!(code(ada.call("prompt", &json!({ "agent_id": "a/ui", "text": "x" }))), 403);
    let seen = agents(&mut ada);
    assert_eq!(seen.len(), 1, "{seen:?}");
}

#[test]
fn nats_that_is_away_stops_no_team_and_what_waits_is_decided_later() {
    let Some(nats) = Nats::own() else { return };
    let (_a, team) = host(&nats, "a", "ui", HOLD);
    let hub = hub(&nats, KEY);
    let mut port = steer(&hub);
    are_there(&mut port, &["a/ui"]);
    let mut own = team.steer();
    let reading = own.begin("ui", "read src/api/cart.rs");
    let blocked = port.expect(&json!({ "type": "blocked", "status": "pending" }));
    nats.kill();
    port.expect_that("the agent is said to be away", |line| {
        line["type"] == "agent"
            && line["reason"].as_str().is_some_and(|why| why.contains("not heard"))
    });
    assert_eq!(code(port.resolve(&blocked, &json!({ "decision": "allow" }))), 500);
    assert!(agents(&mut port)[0]["reason"].as_str().unwrap().contains("not heard"));
    nats.run();
    are_there(&mut port, &["a/ui"]);
    port.resolve(&blocked, &json!({ "decision": "allow" })).unwrap();
    assert_eq!(own.said(reading), "got api\n");
    // A decision that was made meanwhile is told.
    let reading = own.begin("ui", "read src/api/order.rs");
    let blocked = port.expect(&json!({ "type": "blocked", "id": "a/b2", "status": "pending" }));
    let status = port.call("team_status", &json!({})).unwrap();
    assert_eq!((&status["pending"], &status["agents"][0]["host"]), (&json!(1), &json!("a")));
    nats.signal(Signal::SIGSTOP);
    own.call("resolve_blocked", &json!({ "id": "b2", "decision": "deny" })).unwrap();
    assert!(own.said(reading).starts_with("refused"));
    nats.kill();
    nats.run();
    port.expect(&json!({ "type": "blocked", "id": "a/b2", "status": "denied" }));
    assert_eq!(code(port.resolve(&blocked, &json!({ "decision": "allow" }))), 409);
}

#[test]
fn a_write_in_conflict_that_goes_on_while_nats_is_away_is_told() {
    let Some(nats) = Nats::own() else { return };
    let stage = Stage::new();
    stage.file("home/hub.key", KEY);
    let keys = format!("[conflicts]\n{HOLD}\n[hub]\nnats = {:?}\nhost = \"a\"\n", nats.url());
    let mut pair = conflicts::pair(&stage, &keys);
    let hub = hub(&nats, KEY);
    let mut port = steer(&hub);
    are_there(&mut port, &["a/ui", "a/api"]);
    pair.ui.write("ui\n");
    let held = pair.api.begin_write("api\n");
    let waits = port.expect(&json!({ "type": "conflict", "status": "pending" }));
    assert_eq!((&waits["id"], &waits["agents"]), (&json!("a/c1"), &json!(["a/api", "a/ui"])));
    nats.signal(Signal::SIGSTOP);
    pair.ui.end_turn();
    assert_eq!(pair.api.puppet.answer(&held)["result"], json!({}));
    nats.kill();
    nats.run();
    port.expect(&json!({ "type": "conflict", "id": "a/c1", "status": "allowed" }));
}

#[test]
fn a_team_that_ends_or_is_killed_is_gone_or_away() {
    let Some(nats) = Nats::shared() else { return };
    let (a, team_a) = host(&nats, "a", "ui", "");
    let (_b, team_b) = host(&nats, "b", "api", "");
    let hub = hub(&nats, KEY);
    let mut port = steer(&hub);
    are_there(&mut port, &["a/ui", "b/api"]);
    for agent in ["a/ui", "b/api"] {
        port.expect(&json!({ "type": "agent", "agent_id": agent, "state": "ready" }));
    }
    // A turn whose team is killed ends with an error.
    let waiting = port.begin("b/api", "wait");
    team_b.program.signal(Signal::SIGKILL);
    assert_eq!(team_a.stop().code, 0);
    port.expect(&json!({ "type": "agent", "agent_id": "a/ui", "state": "stopped" }));
    are_there(&mut port, &[]);
    assert_eq!(code(port.answer(waiting)), 500);
    assert_eq!(agents(&mut port)[0]["agent_id"], "b/api");
    // Its next start takes its place.
    let again = a.up();
    again.steer_when_ready(&["ui"]);
    are_there(&mut port, &["a/ui"]);
    assert_eq!(port.prompt("a/ui", "read src/ui/app.ts"), "got ui\n");
}

#[test]
fn a_host_is_one_team_and_a_hub_with_another_key_hears_none() {
    let Some(nats) = Nats::shared() else { return };
    let (_a, _first) = host(&nats, "a", "ui", "");
    let others = hub(&nats, &KEY.replace('0', "f"));
    others.1.stderr.until("not signed with this hub's key");
    let hub = hub(&nats, KEY);
    let mut port = steer(&hub);
    are_there(&mut port, &["a/ui"]);
    let (_b, second) = host(&nats, "a", "api", "");
    second.program.stderr.until("has this name of a host");
    are_there(&mut port, &["a/ui"]);
    assert_eq!(agents(&mut steer(&others)), Vec::<Value>::new());
}

#[test]
fn an_orchestrator_on_another_host_is_asked_and_decides() {
    let Some(nats) = Nats::shared() else { return };
    let leading = "[orchestrator]\nagent = \"lead\"";
    let (_b, team_b) = host(&nats, "b", "lead", leading);
    let far = "[orchestrator]\nagent = \"b/lead\"\non_block = \"hold\"";
    let (_a, team_a) = host(&nats, "a", "ui", far);
    let (mut on_a, mut on_b) = (team_a.steer(), team_b.steer());
    // The port of one takes it to the other.
    eventually("the hosts have heard each other", || {
        let asked = on_b.call("agent_status", &json!({ "agent_id": "a/ui" }));
        asked.is_ok_and(|status| status["agent_id"] == "a/ui")
    });
    let reading = on_a.begin("ui", "read src/api/cart.rs");
    let blocked = on_a.blocked("pending");
    assert_eq!(blocked["orchestrator"]["agent_id"], "b/lead");
    // The lead is prompted, with names as it has to write them.
    eventually("the lead has the briefing", || {
        let found = on_b.call("search_events", &json!({ "query": "inbox" })).unwrap();
        found.to_string().contains("a/b1")
    });
    let run = |words: &str| format!("run {EISEN_CORE} {words} 2>&1 || true");
    let said = on_b.prompt("lead", &run("resolve a/b1 allow"));
    assert!(said.contains("a/b1: allowed"), "{said}");
    assert_eq!(on_a.said(reading), "got api\n");
    let listed = on_a.call("list_blocked", &json!({})).unwrap();
    assert_eq!(listed[0]["decided_by"], "agent:b/lead");
    let said = on_b.prompt("lead", &run("resolve a/b1 deny"));
    assert!(said.contains("(code 409)"), "{said}");
    // It gives work there, and may not do what a person alone may.
    let said = on_b.prompt("lead", &run("prompt a/ui 'read src/ui/app.ts'"));
    assert!(said.contains("got ui"), "{said}");
    let said = on_b.prompt("lead", &run("stop a/ui"));
    assert!(said.contains("takes the control token of a person"), "{said}");
    // Nor does it become another one on the way.
    let said = on_b.prompt("lead", &run("resolve a/b/b1 allow"));
    assert!(said.contains("(code 404)"), "{said}");
}
