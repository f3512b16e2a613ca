//! Tasks of agents: given, waited for, cancelled, lost, and kept over a killed team.

use serde_json::{Value, json};

use super::tools::{Client, server};
use crate::harness::{Port, Puppet, Stage, agent};

#[test]
fn the_result_of_a_task_says_what_was_refused() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let team = stage.team("", vec![agent("ui").puppet().zone("src/ui/**")]);
    ui.connect("s1");
    let mut port = team.steer_when_ready(&["ui"]);
    let task = json!({ "agent": "ui", "task": "go" });
    let id = port.call("delegate_task", &task).unwrap()["id"].clone();
    let (turn, _) = ui.prompted();
    let outside = stage.path("shop/src/api/x.rs");
    let write = json!({ "sessionId": "s1", "path": outside, "content": "x" });
    let write = ui.ask("fs/write_text_file", &write);
    assert!(ui.answer(&write)["error"].is_object());
    ui.end_turn(&turn);
    port.call("wait_for_tasks", &json!({ "ids": [id] })).unwrap();
    let result = port.call("task_result", &json!({ "id": id })).unwrap();
    let refused = &result["blocked"][0];
    let expected = (&json!("src/api/x.rs"), &json!("denied"), &json!(true));
    assert_eq!(
        (&refused["path"], &refused["status"], &refused["stops_work"]),
        expected,
        "{result}"
    );
}

#[test]
fn results_outlive_a_killed_team_until_they_are_acknowledged() {
    let stage = Stage::new();
    let ui = agent("ui").start("");
    let mut api = stage.puppet("api");
    let team = stage.team("", vec![ui, agent("api").puppet()]);
    api.connect("s-api");
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let give = |port: &mut Port, agent: &str, task: &str| {
        let params = json!({ "agent": agent, "task": task, "key": task });
        port.call("delegate_task", &params).unwrap()["id"].clone()
    };
    let done = give(&mut port, "ui", "run echo all is there");
    assert_eq!(give(&mut port, "ui", "run echo all is there"), done);
    let found = port.call("wait_for_tasks", &json!({ "ids": [done] })).unwrap();
    assert_eq!((&found["tasks"][0]["state"], &found["timed_out"]), (&json!("done"), &json!(false)));
    let running = give(&mut port, "api", "never ends");
    api.prompted();
    let found = port.call("wait_for_tasks", &json!({ "ids": [running], "timeout_s": 0 })).unwrap();
    let row = &found["tasks"][0];
    assert_eq!((&row["state"], &found["timed_out"]), (&json!("running"), &json!(true)));
    team.program.signal(nix::sys::signal::Signal::SIGKILL);
    team.program.wait();

    let mut api = Puppet::again(&stage, "api");
    let team = stage.up();
    api.connect("s-api");
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let result = port.call("task_result", &json!({ "id": done, "page": 1, "ack": true })).unwrap();
    assert_eq!(result["text"].as_str().unwrap().trim(), "all is there");
    let left = port.call("check_tasks", &json!({})).unwrap()["tasks"].clone();
    assert_eq!(left.as_array().unwrap().len(), 1);
    assert_eq!((&left[0]["id"], &left[0]["state"]), (&running, &json!("lost")));
}

#[test]
fn tasks_are_cancelled_in_their_turn_and_before_it() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let team = stage.team("", vec![agent("ui").puppet()]);
    ui.connect("s-ui");
    let mut port = team.steer_when_ready(&["ui"]);
    let mut give = |task: &str| {
        let params = json!({ "agent": "ui", "task": task });
        port.call("delegate_task", &params).unwrap()["id"].clone()
    };
    let first = give("first");
    let (prompt, _) = ui.prompted();
    let [second, third] = ["second", "third"].map(give);
    let cancel = |port: &mut Port, id: &Value| {
        port.call("cancel_task", &json!({ "id": id })).unwrap();
    };
    let state_of = |port: &mut Port, id: &Value| {
        let found = port.call("wait_for_tasks", &json!({ "ids": [id] })).unwrap();
        found["tasks"][0]["state"].as_str().unwrap().to_owned()
    };
    cancel(&mut port, &second);
    assert_eq!(state_of(&mut port, &second), "cancelled");
    // An agent may go on all the same: it is asked again.
    for _ in 0..2 {
        cancel(&mut port, &first);
        ui.expect(&json!({ "method": "session/cancel" }));
    }
    // By the agent's own queue, not by the task.
    port.call("cancel", &json!({ "agent_id": "ui" })).unwrap();
    assert_eq!(state_of(&mut port, &third), "cancelled");
    let result = json!({ "stopReason": "cancelled" });
    ui.send(&json!({ "jsonrpc": "2.0", "id": prompt, "result": result }));
    assert_eq!(state_of(&mut port, &first), "cancelled");
}

#[test]
fn a_lead_hears_of_what_its_tasks_wait_for_and_of_their_loss() {
    let stage = Stage::new();
    stage.file("shop/src/api/cart.rs", "total\n");
    let [mut lead, mut ui] = ["lead", "ui"].map(|name| stage.puppet(name));
    let agents = vec![agent("lead").puppet(), agent("ui").puppet().zone("src/ui/**")];
    let team = stage.team("[orchestrator]\nagent = \"lead\"\non_block = \"hold\"\n", agents);
    lead.serve("initialize", &json!({ "protocolVersion": 1 }));
    let lead_server = server(&lead.serve("session/new", &json!({ "sessionId": "s-lead" })));
    ui.serve("initialize", &json!({ "protocolVersion": 1 }));
    let ui_server = server(&ui.serve("session/new", &json!({ "sessionId": "s-ui" })));
    let port = team.steer_when_ready(&["lead", "ui"]);
    let [mut leads, mut works] = [Client::of(&lead_server), Client::of(&ui_server)];
    let given = leads.call("delegate_task", &json!({ "agent": "ui", "task": "read the cart" }));
    let id = given["structuredContent"]["id"].clone();
    let (prompt, _) = ui.prompted();
    let read = json!({ "sessionId": "s-ui", "path": stage.in_shop("src/api/cart.rs") });
    let held = ui.ask("fs/read_text_file", &read);
    let wait = json!({ "ids": [id] });
    let found = leads.call("wait_for_tasks", &wait)["structuredContent"].clone();
    assert_eq!(found["tasks"][0]["state"], "needs_approval", "{found}");
    let listed = leads.call("list_blocked", &json!({ "status": "pending" }));
    let blocked = listed["structuredContent"]["blocked"][0]["id"].clone();
    leads.call("resolve_blocked", &json!({ "id": blocked, "decision": "allow" }));
    assert_eq!(ui.answer(&held)["result"]["content"], "total\n");

    // While the lead waits for the member's answer, the member can't wait for the lead's decision.
    let question = json!({ "agent": "ui", "question": "What is it?" });
    let request = json!({ "name": "ask_owner", "arguments": question });
    let call = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": request });
    leads.peer.send(&call);
    ui.serve("session/new", &json!({ "sessionId": "s-beside" }));
    let (asked, _) = ui.prompted();
    let access = json!({ "path": "src/api/x.rs", "action": "read", "reason": "I need it" });
    let refused = works.call("request_access", &access);
    let why = refused["content"][0]["text"].as_str().unwrap();
    assert!(why.contains("`ui` → `lead` → `ui`") && why.contains("(code 409)"), "{why}");
    let listed = leads.call("list_blocked", &json!({ "status": "pending" }));
    assert_eq!(listed["structuredContent"]["blocked"], json!([]));
    ui.say("s-beside", "A cart.");
    ui.end_turn(&asked);
    let answer = leads.peer.expect(&json!({ "id": 5 }))["result"]["structuredContent"].clone();
    assert_eq!(answer["content"], "A cart.", "{answer}");
    ui.end_turn(&prompt);
    let found = leads.call("wait_for_tasks", &wait)["structuredContent"].clone();
    assert_eq!(found["tasks"][0]["state"], "done");

    let given = leads.call("delegate_task", &json!({ "agent": "ui", "task": "never ends" }));
    let id = given["structuredContent"]["id"].clone();
    ui.prompted();
    ui.close();
    let found = leads.call("wait_for_tasks", &json!({ "ids": [id] }));
    assert_eq!(found["structuredContent"]["tasks"][0]["state"], "lost", "{found}");
    drop(port);
}
