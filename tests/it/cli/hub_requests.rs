//! What is asked of hosts through a hub, and from one host of another: tasks, budgets and decisions, with tokens of
//! the hub, and what comes twice.

use serde_json::{Value, json};

use super::hub::{HOLD, KEY, are_there, code, host, host_of, hub, steer};
use crate::harness::{Nats, Port, Program, Stage, Team, agent};

/// A client of a hub with a token of that hub.
fn holder((stage, program): &(Stage, Program), args: &[&str]) -> Port {
    let made = stage.run(&[&["token", "create", "--team", "hub"], args].concat());
    assert_eq!(made.code, 0, "{made:?}");
    let mut port = program.connect();
    port.auth(made.stdout.trim());
    port
}

/// Hears of tasks from now on.
fn hear_tasks(port: &mut Port) {
    port.send(&json!({ "type": "subscribe", "topics": ["task"] }));
    port.call("list_budgets", &json!({})).unwrap();
}

/// Gives a task; returns its id.
fn give(port: &mut Port, agent: &str, task: &str) -> Value {
    port.call("delegate_task", &json!({ "agent": agent, "task": task })).unwrap()["id"].clone()
}

/// Agent, owner and state of all tasks, sorted.
fn tasks(port: &mut Port) -> Vec<Value> {
    let listed = port.call("check_tasks", &json!({})).unwrap();
    let row = |task: &Value| json!([task["agent"], task["owner"], task["state"]]);
    let mut rows: Vec<_> = listed["tasks"].as_array().unwrap().iter().map(row).collect();
    rows.sort_by_key(Value::to_string);
    rows
}

#[test]
fn a_task_that_is_given_anywhere_is_done_by_its_host() {
    let Some(nats) = Nats::shared() else { return };
    let (a, team_a) = host(&nats, "a", "ui", HOLD);
    a.file("shop/src/ui/app.ts", "of a\n");
    let (_b, team_b) = host(&nats, "b", "api", "");
    let hub = hub(&nats, KEY);
    let mut port = steer(&hub);
    are_there(&mut port, &["a/ui", "b/api"]);
    let mut eve = holder(&hub, &["--owner", "eve", "--may", "read", "--agents", "a/ui"]);
    for port in [&mut port, &mut eve] {
        hear_tasks(port);
    }
    let other = give(&mut port, "b/api", "hello");
    port.expect(&json!({ "type": "task", "id": other, "host": "b", "state": "done" }));
    let id = give(&mut port, "a/ui", "read src/ui/app.ts");
    assert!(id.as_str().unwrap().starts_with("a/t-"), "{id}");
    let is_done = json!({ "type": "task", "id": id, "agent_id": "a/ui", "state": "done" });
    let line = port.expect(&is_done);
    assert_eq!((&line["host"], &line["by"]), (&json!("a"), &json!("orchestrator")), "{line}");
    assert_eq!(line.get("owner"), None, "{line}");
    // Who is for one agent hears of its tasks only.
    eve.expect(&is_done);
    assert_eq!(eve.count(&json!({ "type": "task", "host": "b" })), 0);
    let result = port.call("task_result", &json!({ "id": id, "page": 1 })).unwrap();
    assert_eq!((&result["agent"], &result["text"]), (&json!("a/ui"), &json!("got of a\n")));

    // One that needs a decision, of the owner of a token.
    let mut ada = holder(&hub, &["--owner", "ada", "--may", "read,prompt"]);
    let id = give(&mut ada, "a/ui", "read src/api/cart.rs");
    port.expect(&json!({ "type": "task", "id": id, "owner": "ada", "state": "needs_approval" }));
    let blocked = port.blocked("pending");
    port.resolve(&blocked, &json!({ "decision": "allow" })).unwrap();
    port.expect(&json!({ "type": "task", "id": id, "owner": "ada", "state": "done" }));
    // One that is taken back.
    let id = give(&mut port, "a/ui", "wait");
    port.expect(&json!({ "type": "usage", "agent_id": "a/ui", "used": 7 }));
    port.call("cancel_task", &json!({ "id": id })).unwrap();
    port.expect(&json!({ "type": "task", "id": id, "state": "cancelled" }));
    // One that the port of another host takes there.
    let mut on_b = team_b.steer();
    let id = give(&mut on_b, "a/ui", "hello");
    let found = on_b.call("wait_for_tasks", &json!({ "ids": [id] })).unwrap();
    assert_eq!(found["tasks"][0]["state"], "done", "{found}");

    let of = |host: &str| {
        vec![
            json!([format!("{host}ui"), "ada", "done"]),
            json!([format!("{host}ui"), null, "cancelled"]),
            json!([format!("{host}ui"), null, "done"]),
            json!([format!("{host}ui"), null, "done"]),
        ]
    };
    let last = vec![json!(["b/api", null, "done"])];
    assert_eq!(tasks(&mut port), [of("a/"), last].concat());
    assert_eq!(tasks(&mut team_a.steer()), of(""));
    assert_eq!(tasks(&mut on_b), [json!(["api", null, "done"])]);
}

/// A client with the token of an agent, which the agent shows.
fn with_token_of(team: &Team, agent: &str) -> Port {
    let token = team.steer().prompt(agent, "run printf %s \"$EISEN_TOKEN\"");
    let mut port = team.watch();
    port.auth(&token);
    port
}

#[test]
fn an_orchestrator_elsewhere_has_the_same_name_on_all_ports() {
    let Some(nats) = Nats::shared() else { return };
    let (_b, team_b) = host(&nats, "b", "lead", "[orchestrator]\nagent = \"lead\"");
    let far = "[orchestrator]\nagent = \"b/lead\"\non_block = \"hold\"";
    let (_a, team_a) = host(&nats, "a", "ui", far);
    let hub = hub(&nats, KEY);
    let mut port = steer(&hub);
    are_there(&mut port, &["a/ui", "b/lead"]);
    let mut own = team_a.steer();
    for port in [&mut port, &mut own] {
        hear_tasks(port);
    }
    let mut lead = with_token_of(&team_b, "lead");
    let task = json!({ "agent": "a/ui", "task": "read src/api/cart.rs", "key": "cart" });
    let id = lead.call("delegate_task", &task).unwrap()["id"].clone();
    for port in [&mut port, &mut own] {
        let line = port.expect(&json!({ "type": "task", "state": "needs_approval" }));
        assert_eq!((&line["by"], line.get("owner")), (&json!("b/lead"), None), "{line}");
        let line = port.blocked("pending");
        assert_eq!(line["orchestrator"]["agent_id"], "b/lead", "{line}");
    }
    // The key of another giver is another one.
    let of_person = port.call("delegate_task", &task).unwrap();
    assert_ne!(of_person["id"], id);
    assert_eq!(lead.call("delegate_task", &task).unwrap()["id"], id);
    lead.call("resolve_blocked", &json!({ "id": "a/b1", "decision": "deny" })).unwrap();
    for port in [&mut port, &mut own] {
        let line = port.expect(&json!({ "type": "blocked", "status": "denied" }));
        assert_eq!(line["decided_by"], "agent:b/lead", "{line}");
    }
}

#[test]
fn budgets_are_shown_and_set_through_the_hub_and_hold_at_their_hosts() {
    let Some(nats) = Nats::shared() else { return };
    let ui = agent("ui").zone("src/ui/**").with("[agents.budget]\ntokens = 10_000");
    let (_a, team_a) = host_of(&nats, "a", vec![ui], "[budget]\nturns = 100");
    let (_b, team_b) = host(&nats, "b", "api", "");
    let hub = hub(&nats, KEY);
    let mut port = steer(&hub);
    are_there(&mut port, &["a/ui", "b/api"]);
    let (mut on_a, mut on_b) = (team_a.steer(), team_b.steer());
    let listed = port.call("list_budgets", &json!({})).unwrap();
    let row = |it: &Value| {
        json!([it["host"], it["agent_id"], it["tokens"]["limit"], it["turns"]["limit"]])
    };
    let rows: Vec<_> = listed.as_array().unwrap().iter().map(row).collect();
    assert_eq!(rows, [json!(["a", null, null, 100]), json!(["a", "a/ui", 10_000, null])]);
    let refused = |port: &mut Port, agent: &str, why: &str| {
        let prompt = json!({ "agent_id": agent, "text": "hello" });
        let error = port.call("prompt", &prompt).unwrap_err();
        let message = error["message"].as_str().unwrap();
        assert!(error["code"] == 409 && message.contains(why), "{error}");
    };

    let why = "the budget of `ui` is used up: ";
    let prompt = json!({ "agent_id": "a/ui", "text": "go wild" });
    let ended = port.call("prompt", &prompt).unwrap();
    assert_eq!(ended["stop_reason"], "cancelled");
    assert!(ended["reason"].as_str().unwrap().starts_with(why), "{ended}");
    let exceeded = json!({ "type": "budget", "agent_id": "a/ui", "state": "exceeded" });
    let line = port.expect(&exceeded);
    assert!(line["reason"].as_str().unwrap().starts_with(why) && line["host"] == "a", "{line}");
    // Who comes now is told, too.
    steer(&hub).expect(&exceeded);
    for (port, agent) in [(&mut port, "a/ui"), (&mut on_a, "ui"), (&mut on_b, "a/ui")] {
        refused(port, agent, why);
    }

    let raised = hub.0.run(&["budget", "--team", "hub", "a/ui", "--tokens", "1000000"]);
    assert!(raised.stdout.starts_with("a/ui: open, "), "{raised:?}");
    assert!(raised.stdout.contains(" of 1.0M tokens"), "{raised:?}");
    port.expect(&json!({ "type": "budget", "agent_id": "a/ui", "state": "open" }));
    let shown = hub.0.run(&["ps", "--team", "hub"]).stdout;
    for line in ["budget of host a: open, 1 of 100 turns", "budget of a/ui: open, "] {
        assert!(shown.contains(line), "{shown}");
    }
    assert_eq!(on_a.prompt("ui", "hello"), "hello");
    let lowered =
        on_b.call("raise_budget", &json!({ "agent_id": "a/ui", "tokens": 1_000 })).unwrap();
    assert_eq!((&lowered["agent_id"], &lowered["state"]), (&json!("a/ui"), &json!("exceeded")));
    port.expect(&exceeded);
    refused(&mut port, "a/ui", why);

    // That of a whole team.
    assert_eq!(code(port.call("raise_budget", &json!({ "turns": 1 }))), 400);
    let turns = ["budget", "--team", "hub", "--host", "b", "--team-wide", "--turns", "1"];
    let lowered = hub.0.run(&turns);
    assert!(lowered.stdout.starts_with("host b: open, 0 of 1 turns"), "{lowered:?}");
    assert_eq!(port.prompt("b/api", "hello"), "hello");
    let line = port.expect(&json!({ "type": "budget", "host": "b", "state": "exceeded" }));
    assert_eq!(line["agent_id"], Value::Null);
    let why = "the team's budget is used up: 1 of 1 turns are used";
    for (port, agent) in [(&mut port, "b/api"), (&mut on_b, "api")] {
        refused(port, agent, why);
    }
}

/// The methods that a token's owner used, as the journal of a host has them, with the code of a refusal.
fn uses(stage: &Stage, owner: &str) -> Vec<Value> {
    let events = stage.run(&["history", "--type", "token", "--json"]).stdout;
    let used = |line: &str| {
        let payload = serde_json::from_str::<Value>(line).unwrap()["payload"].take();
        let is_own = payload["owner"] == owner && payload["token_id"] == "hub";
        is_own.then(|| json!([payload["method"], payload["refused"]]))
    };
    events.lines().filter_map(used).collect()
}

#[test]
fn a_token_of_the_hub_decides_for_its_agent_and_does_nothing_else() {
    let Some(nats) = Nats::shared() else { return };
    let (a, _team_a) = host(&nats, "a", "ui", HOLD);
    let (b, _team_b) = host(&nats, "b", "api", HOLD);
    let hub = hub(&nats, KEY);
    let mut port = steer(&hub);
    are_there(&mut port, &["a/ui", "b/api"]);
    let mut ada = holder(&hub, &["--owner", "ada", "--may", "read,decide", "--agents", "a/ui"]);
    let read_b = port.begin("b/api", "read src/api/cart.rs");
    let of_b = port.expect(&json!({ "type": "blocked", "agent_id": "b/api" }));
    let read_a = port.begin("a/ui", "read src/api/cart.rs");
    let of_a = ada.expect(&json!({ "type": "blocked", "agent_id": "a/ui", "status": "pending" }));
    assert_eq!(ada.count(&json!({ "type": "blocked", "agent_id": "b/api" })), 0);
    let shown = ada.call("show_blocked", &json!({ "id": of_a["id"] })).unwrap();
    assert_eq!((&shown["id"], &shown["content"]), (&json!("a/b1"), &json!("api\n")));
    for (method, params) in [
        ("show_blocked", json!({ "id": of_b["id"] })),
        ("resolve_blocked", json!({ "id": of_b["id"], "decision": "allow" })),
        ("resolve_blocked", json!({ "id": "a/b1", "decision": "allow", "even_denied": true })),
        ("agent_status", json!({ "agent_id": "b/api" })),
        ("prompt", json!({ "agent_id": "a/ui", "text": "hello" })),
        ("delegate_task", json!({ "agent": "a/ui", "task": "hello" })),
        ("stop_agent", json!({ "agent_id": "a/ui" })),
        ("raise_budget", json!({ "agent_id": "a/ui", "turns": 9 })),
        ("reload", json!({ "host": "a" })),
        ("token_list", json!({})),
    ] {
        assert_eq!(code(ada.call(method, &params)), 403, "{method} {params}");
    }
    ada.resolve(&of_a, &json!({ "decision": "allow" })).unwrap();
    assert_eq!(port.said(read_a), "got api\n");
    let line = port.expect(&json!({ "type": "blocked", "id": "a/b1", "status": "allowed" }));
    assert_eq!(line["decided_by"], "token:ada", "{line}");
    assert_eq!(code(ada.resolve(&of_a, &json!({ "decision": "deny" }))), 409);
    let listed = ada.call("list_blocked", &json!({})).unwrap();
    let ids: Vec<_> = listed.as_array().unwrap().iter().map(|it| it["id"].clone()).collect();
    assert_eq!(ids, ["a/b1"]);
    // What ada could not decide still waits.
    port.resolve(&of_b, &json!({ "decision": "deny" })).unwrap();
    assert!(port.said(read_b).starts_with("refused"));

    let [show, resolve] = ["show_blocked", "resolve_blocked"].map(|it| json!([it, null]));
    let lists = json!(["list_blocked", null]);
    assert_eq!(uses(&a, "ada"), [show, resolve.clone(), resolve, lists.clone()]);
    let [show, resolve] = ["show_blocked", "resolve_blocked"].map(|it| json!([it, 403]));
    assert_eq!(uses(&b, "ada"), [show, resolve, lists]);

    let tokens = hub.0.run(&["token", "list", "--team", "hub", "--json"]).stdout;
    let tokens: Value = serde_json::from_str(&tokens).unwrap();
    let revoked =
        hub.0.run(&["token", "revoke", "--team", "hub", tokens[0]["id"].as_str().unwrap()]);
    assert_eq!(revoked.stdout, "revoked a token of ada\n", "{revoked:?}");
    ada.expect(&json!({ "type": "rpc_error", "error": { "code": 401 } }));
    ada.until_end();
}

#[test]
fn of_decisions_at_once_one_counts() {
    let Some(nats) = Nats::shared() else { return };
    let (_a, team) = host(&nats, "a", "ui", HOLD);
    let hubs = [hub(&nats, KEY), hub(&nats, KEY)];
    let [mut first, mut second] = hubs.each_ref().map(steer);
    are_there(&mut first, &["a/ui"]);
    are_there(&mut second, &["a/ui"]);
    let reading = first.begin("a/ui", "read src/api/cart.rs");
    let mut clients =
        [(first, "a/b1"), (second, "a/b1"), (steer(&hubs[0]), "a/b1"), (team.steer(), "b1")];
    for (client, id) in &mut clients {
        client.expect(&json!({ "type": "blocked", "id": id, "status": "pending" }));
    }
    let decide = |(client, id): &mut (Port, &str), decision: &str| {
        client.ask("resolve_blocked", &json!({ "id": id, "decision": decision }))
    };
    let decisions = ["allow", "deny", "deny", "deny"];
    let asked: Vec<_> =
        clients.iter_mut().zip(decisions).map(|(it, how)| decide(it, how)).collect();
    let mut won = Vec::new();
    for ((client, _), id) in clients.iter_mut().zip(asked) {
        match client.answer(id) {
            Ok(access) => won.push(access["status"].clone()),
            Err(error) => assert_eq!(error["code"], 409, "{error}"),
        }
    }
    let [status] = &won[..] else { panic!("{won:?}") };
    for (client, id) in &mut clients {
        client.expect(&json!({ "type": "blocked", "id": id, "status": status }));
    }
    let said = clients[0].0.said(reading);
    let is_allowed = said == "got api\n";
    assert_eq!(is_allowed, status == "allowed", "{said}");
}

#[test]
fn a_request_that_comes_twice_late_or_changed_is_performed_once() {
    let Some(nats) = Nats::shared() else { return };
    let (a, team) = host(&nats, "a", "ui", HOLD);
    let hub = hub(&nats, KEY);
    let mut port = steer(&hub);
    are_there(&mut port, &["a/ui"]);
    let mut tap = nats.tap("a");
    let id = give(&mut port, "a/ui", "hello");
    let giving = tap.request("delegate_task");
    let answer = tap.again(&giving).unwrap();
    assert_eq!(format!("a/{}", answer["result"]["id"].as_str().unwrap()), id.as_str().unwrap());
    let found = port.call("wait_for_tasks", &json!({ "ids": [id] })).unwrap();
    assert_eq!(found["tasks"][0]["state"], "done", "{found}");
    // While it is under way, and after its end.
    let waiting = port.begin("a/ui", "wait");
    port.expect(&json!({ "type": "usage", "agent_id": "a/ui", "used": 7 }));
    let prompt = tap.request("prompt");
    assert_eq!(tap.again(&prompt), None);
    port.call("cancel", &json!({ "agent_id": "a/ui" })).unwrap();
    let ended = port.answer(waiting).unwrap();
    assert_eq!(tap.again(&prompt), Some(json!({ "result": ended })));
    // With another id it is not signed.
    let mut forged = giving.clone();
    let text = String::from_utf8(giving.payload.to_vec()).unwrap();
    forged.payload = text.replacen("{\"id\":\"0", "{\"id\":\"1", 1).into();
    assert_ne!(forged.payload, giving.payload);
    tap.send(&forged);
    assert_eq!(tap.again(&giving), Some(answer));
    // A decision.
    let reading = port.begin("a/ui", "read src/api/cart.rs");
    let blocked = port.blocked("pending");
    port.resolve(&blocked, &json!({ "decision": "allow" })).unwrap();
    let decided = tap.request("resolve_blocked");
    assert_eq!(tap.again(&decided).unwrap()["result"]["status"], "allowed");
    assert_eq!(port.said(reading), "got api\n");
    assert_eq!(tasks(&mut port), [json!(["a/ui", null, "done"])]);
    assert_eq!(port.prompt("a/ui", "hello"), "hello");
    port.expect(&json!({ "type": "turn", "agent_id": "a/ui", "turn": 3 }));
    assert_eq!(port.count(&json!({ "type": "turn" })), 4);

    // What was meant for one start of a team is not performed by the next one.
    assert_eq!(team.stop().code, 0);
    port.expect(&json!({ "type": "agent", "agent_id": "a/ui", "state": "stopped" }));
    let again = a.up();
    let mut own = again.steer_when_ready(&["ui"]);
    are_there(&mut port, &["a/ui"]);
    for request in [&giving, &prompt] {
        tap.send(request);
    }
    assert_eq!(tasks(&mut port), [json!(["a/ui", null, "done"])]);
    assert_eq!(own.prompt("ui", "hello"), "hello");
    own.expect(&json!({ "type": "turn", "turn": 0 }));
}
