//! Rules of `[[routing]]`: owners answer beside their work, persons decide though time passes.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::{AgentTable, Puppet, Stage, agent, eventually};
use crate::serve::tools::{Client, server};

const PATH: &str = "src/api/cart.rs";

fn opened(puppet: &mut Puppet, session: &str) -> Value {
    puppet.serve("initialize", &json!({ "protocolVersion": 1 }));
    server(&puppet.serve("session/new", &json!({ "sessionId": session })))
}

fn agents() -> Vec<AgentTable> {
    let zoned = |id: &str, zone: &str| agent(id).puppet().zone(zone);
    vec![agent("lead").puppet(), zoned("ui", "src/ui/**"), zoned("api", "src/api/**")]
}

const LEAD: &str = "[orchestrator]\nagent = \"lead\"\n";

#[test]
fn an_owner_is_asked_beside_its_work_and_its_answer_is_kept() {
    let stage = Stage::new();
    let keys = format!("{LEAD}[[routing]]\naction = \"read\"\ndecide = \"owner\"\n");
    let mut puppets = ["lead", "ui", "api"].map(|name| stage.puppet(name));
    let team = stage.team(&keys, agents());
    let [lead, ui, api] = &mut puppets;
    lead.connect("s-lead");
    let ui_server = opened(ui, "s-ui");
    api.connect("s-api");
    let mut port = team.steer_when_ready(&["lead", "ui", "api"]);
    // The owner is in the middle of its own work.
    port.begin("api", "work");
    let (work, _) = api.prompted();
    let read = json!({ "sessionId": "s-ui", "path": stage.in_shop(PATH) });
    let asked = ui.ask("fs/read_text_file", &read);
    api.serve("session/new", &json!({ "sessionId": "s-beside" }));
    let (prompt, text) = api.prompted();
    assert!(text.contains("`ui`") && text.contains(&format!("`{PATH}`")), "{text}");
    api.say("s-beside", "total: u64");
    api.end_turn(&prompt);
    assert_eq!(ui.answer(&asked)["result"]["content"], "total: u64");
    let line = port.expect(&json!({ "type": "blocked", "status": "answered", "via": "fs" }));
    assert_eq!((&line["rule"], &line["decide"]), (&json!(1), &json!("owner")));
    assert_eq!((&line["answered_by"], &line["tokens_saved"]), (&json!("api"), &Value::Null));

    // The same again is answered without the owner.
    assert_eq!(ui.call("fs/read_text_file", &read)["result"]["content"], "total: u64");
    let kept = json!({ "type": "blocked", "id": "b2", "status": "answered" });
    let kept = port.expect(&kept);
    assert!(
        kept["tokens_saved"].as_u64().unwrap() > 0 && kept["tokens_estimated"] == true,
        "{kept}"
    );
    let shown = stage.run(&["blocked"]).stdout;
    assert!(shown.contains("rule 1: owner api, kept: "), "{shown}");

    // Another question, and another content, are put to it: the session beside is the same.
    let mut client = Client::of(&ui_server);
    let ask = json!({ "path": PATH, "action": "read", "reason": "Is it signed?" });
    let request = json!({ "name": "request_access", "arguments": ask });
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": request });
    client.peer.send(&call);
    let (prompt, text) = api.prompted();
    assert!(text.contains("Is it signed?"), "{text}");
    api.say("s-beside", "No.");
    api.end_turn(&prompt);
    let answer = client.peer.expect(&json!({ "id": 7 }))["result"]["structuredContent"].clone();
    assert_eq!((&answer["state"], &answer["content"]), (&json!("answered"), &json!("No.")));
    stage.file(&format!("shop/{PATH}"), "changed\n");
    let asked = ui.ask("fs/read_text_file", &read);
    let (prompt, _) = api.prompted();
    api.say("s-beside", "changed");
    api.end_turn(&prompt);
    assert_eq!(ui.answer(&asked)["result"]["content"], "changed");

    // An owner that is gone answers nothing: without another rule it is denied.
    api.end_turn(&work);
    port.call("stop_agent", &json!({ "agent_id": "api" })).unwrap();
    let other = json!({ "sessionId": "s-ui", "path": stage.in_shop("src/api/other.rs") });
    let refused = ui.call("fs/read_text_file", &other)["error"].clone();
    assert!(refused["message"].as_str().unwrap().contains("`api` is not ready"), "{refused}");
}

#[test]
fn an_owner_that_waits_for_the_asker_is_not_asked() {
    let stage = Stage::new();
    let keys = "[[routing]]\nvia = [\"fs\"]\ndecide = \"owner\"\n";
    let mut puppets = ["lead", "ui", "api"].map(|name| stage.puppet(name));
    let team = stage.team(keys, agents());
    let [lead, ui, api] = &mut puppets;
    lead.connect("s-lead");
    ui.connect("s-ui");
    let api_server = opened(api, "s-api");
    let _port = team.steer_when_ready(&["lead", "ui", "api"]);
    let mut client = Client::of(&api_server);
    let request = json!({ "name": "ask_owner", "arguments": { "agent": "ui", "question": "?" } });
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": request });
    client.peer.send(&call);
    ui.serve("session/new", &json!({ "sessionId": "s-beside" }));
    let (prompt, _) = ui.prompted();
    let read = json!({ "sessionId": "s-beside", "path": stage.in_shop(PATH) });
    let refused = ui.call("fs/read_text_file", &read)["error"].clone();
    let why = refused["message"].as_str().unwrap();
    assert!(why.contains("`ui` → `api` → `ui`"), "{why}");
    ui.say("s-beside", "No.");
    ui.end_turn(&prompt);
    let answer = client.peer.expect(&json!({ "id": 7 }))["result"]["structuredContent"].clone();
    assert_eq!(answer["content"], "No.");
}

#[test]
fn what_is_for_a_person_no_agent_decides_and_it_outlasts_the_team() {
    let stage = Stage::new();
    let keys = format!("{LEAD}hold_timeout_s = 1\n[[routing]]\ndecide = \"person\"\n");
    let mut puppets = ["lead", "ui", "api"].map(|name| stage.puppet(name));
    let team = stage.team(&keys, agents());
    let [lead, ui, api] = &mut puppets;
    let lead_server = opened(lead, "s-lead");
    ui.connect("s-ui");
    api.connect("s-api");
    let mut port = team.steer_when_ready(&["lead", "ui", "api"]);
    let read = json!({ "sessionId": "s-ui", "path": stage.in_shop(PATH) });
    ui.ask("fs/read_text_file", &read);
    let line = port.expect(&json!({ "type": "blocked", "status": "pending" }));
    assert_eq!((&line["decide"], &line["orchestrator"]), (&json!("person"), &Value::Null));
    let mut leads = Client::of(&lead_server);
    let allow = json!({ "id": line["id"], "decision": "allow" });
    let refused = leads.call("resolve_blocked", &allow);
    let why = refused["content"][0]["text"].as_str().unwrap();
    assert!(why.contains("(code 403)") && why.contains("rule 1"), "{why}");

    // Neither the end of the agent nor that of the team takes it out of the queue.
    port.call("stop_agent", &json!({ "agent_id": "ui" })).unwrap();
    let listed = port.call("list_blocked", &json!({ "status": "pending" })).unwrap();
    assert_eq!(listed[0]["id"], line["id"], "{listed}");
    eventually("the queue is in its file", || stage.has("home/teams/shop/person.json"));
    team.program.signal(Signal::SIGKILL);
    team.program.wait();
    drop(puppets);
    let mut puppets = ["lead", "ui", "api"].map(|name| Puppet::again(&stage, name));
    let team = stage.up();
    let [lead, ui, api] = &mut puppets;
    lead.connect("s-lead");
    ui.connect("s-ui");
    api.connect("s-api");
    let mut port = team.steer_when_ready(&["lead", "ui", "api"]);
    let listed = port.call("list_blocked", &json!({ "status": "pending" })).unwrap();
    assert_eq!((&listed[0]["path"], &listed[0]["agent_id"]), (&json!(PATH), &json!("ui")));
    let allowed = stage.run(&["resolve", listed[0]["id"].as_str().unwrap(), "allow"]);
    assert_eq!(allowed.code, 0, "{}", allowed.stderr);

    // Nor does the end of the team take back what a person allowed.
    let kept = || stage.read("home/teams/shop/person.json").contains("even_denied");
    eventually("the permit is in its file", kept);
    team.program.signal(Signal::SIGKILL);
    team.program.wait();
    drop(puppets);
    let mut puppets = ["lead", "ui", "api"].map(|name| Puppet::again(&stage, name));
    let team = stage.up();
    let [lead, ui, api] = &mut puppets;
    lead.connect("s-lead");
    ui.connect("s-ui");
    api.connect("s-api");
    let mut port = team.steer_when_ready(&["lead", "ui", "api"]);
    // The agent hears of it, and its next try goes through.
    port.begin("ui", "go on");
    let (prompt, text) = ui.prompted();
    assert!(text.contains("a person allowed it"), "{text}");
    assert_eq!(ui.call("fs/read_text_file", &read)["result"]["content"], "api\n");
    ui.end_turn(&prompt);
    eventually("nothing waits", || !stage.has("home/teams/shop/person.json"));
    team.stop();
}

#[test]
fn rules_are_checked_shown_and_taken_by_a_reload() {
    let stage = Stage::new();
    let mut puppets = ["lead", "ui", "api"].map(|name| stage.puppet(name));
    let rules = "[[routing]]\npaths = [\"src/api/**\"]\naction = \"read\"\ndecide = \"allow\"\n\
                 [[routing]]\npaths = [\"src/api/*.rs\"]\naction = \"read\"\ndecide = \"owner\"\n";
    let team = stage.team(rules, agents());
    for (puppet, session) in puppets.iter_mut().zip(["s-lead", "s-ui", "s-api"]) {
        puppet.connect(session);
    }
    let mut port = team.steer_when_ready(&["lead", "ui", "api"]);
    let read = json!({ "sessionId": "s-ui", "path": stage.in_shop(PATH) });
    let [_, ui, _] = &mut puppets;
    assert_eq!(ui.call("fs/read_text_file", &read)["result"]["content"], "api\n");
    let check = |more: &[&str]| {
        let args = [&["check", "-c", "eisen.toml"], more].concat();
        let checked = stage.run(&args);
        assert_eq!(checked.code, 0, "{}", checked.stderr);
        checked.stdout
    };
    let shown = check(&["--path", PATH, "--agent", "ui", "--action", "read"]);
    assert!(shown.contains("rule 1   it is allowed"), "{shown}");
    let shown = check(&[]);
    assert!(shown.contains("rule 2 of [[routing]] never matches: rule 1 matches all"), "{shown}");
    stage.configure("[[routing]]\nagents = [\"ui\"]\ndecide = \"deny\"\n", agents());
    let reloaded = port.call("reload", &json!({})).unwrap();
    assert!(reloaded.to_string().contains("routing"), "{reloaded}");
    let refused = ui.call("fs/read_text_file", &read)["error"].clone();
    assert!(refused["message"].as_str().unwrap().contains("Rule 1"), "{refused}");
}
