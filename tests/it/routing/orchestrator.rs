//! An agent as orchestrator: it is prompted with what was blocked, and decides with a command.

use serde_json::{Value, json};

use crate::harness::{Port, Puppet, Stage, Team, agent};

/// A team whose orchestrator `lead` is played by the test.
struct Led {
    lead: Puppet,
    port: Port,
    team: Team,
}

fn led(stage: &Stage, on_block: &str) -> Led {
    let mut lead = stage.puppet("lead");
    let agents = vec![
        agent("lead").puppet().zone("docs/**"),
        agent("ui").zone("src/ui/**"),
        agent("api").zone("src/api/**"),
    ];
    let keys = format!("[orchestrator]\nagent = \"lead\"\non_block = {on_block:?}");
    let team = stage.team(&keys, agents);
    lead.connect("l1");
    let port = team.steer_when_ready(&["lead", "ui", "api"]);
    Led { lead, port, team }
}

/// Where in a briefing an id stands, if it does.
fn mention(briefing: &str, blocked: &Value) -> Option<usize> {
    briefing.find(&format!("{}:", blocked["id"].as_str().unwrap()))
}

#[test]
fn it_is_briefed_and_decides_from_its_terminal() {
    let stage = Stage::new();
    let Led { mut lead, mut port, team: _team } = led(&stage, "hold");
    let prompt = port.begin("ui", "read src/api/cart.rs");
    let blocked = port.blocked("pending");
    assert_eq!(blocked["orchestrator"], json!({"agent_id": "lead", "session_id": "l1"}));

    let (briefing, text) = lead.prompted();
    let id = blocked["id"].as_str().unwrap();
    for part in
        ["`ui`", "read", "`src/api/cart.rs`", "api", id, &format!("eisen-core inbox allow {id}")]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let said = lead.run("l1", &format!("eisen-core resolve {id} allow"));
    assert!(said.contains(id), "{said}");
    assert_eq!(port.said(prompt), "got api\n");
    assert_eq!(port.blocked("allowed")["id"], blocked["id"]);
    lead.end_turn(&briefing);
    let turn = port.expect(&json!({"type": "turn", "agent_id": "lead"}));
    assert_eq!(turn["stop_reason"], "end_turn");

    // The other two decisions.
    for (verb, said) in [
        ("answer 'it is 7'", "got it is 7".to_owned()),
        ("deny --message 'Ask api.'", "refused: Outside agent zone: src/api/cart.rs. Request cross-region info through the orchestrator. Ask api.".to_owned()),
    ] {
        let prompt = port.begin("ui", "read src/api/cart.rs");
        let id = port.blocked("pending")["id"].as_str().unwrap().to_owned();
        let (briefing, _) = lead.prompted();
        lead.run("l1", &format!("eisen-core resolve {id} {verb}"));
        assert_eq!(port.said(prompt), said);
        lead.end_turn(&briefing);
    }
    let failed = lead.run("l1", "eisen-core resolve b99 allow; echo $?");
    assert!(failed.contains("b99") && failed.ends_with("1\n"), "{failed}");
}

#[test]
fn several_come_as_one_prompt_behind_its_turn_and_before_other_prompts() {
    let stage = Stage::new();
    let Led { mut lead, mut port, team: _team } = led(&stage, "deny");
    port.begin("lead", "work");
    let (turn, _) = lead.prompted();
    port.begin("lead", "what was queued before");
    port.prompt("ui", "read src/api/cart.rs");
    let first = port.blocked("denied");
    port.prompt("ui", "read src/api/cart.rs");
    let again = port.blocked("denied");
    port.prompt("ui", "read src/api/order.rs");
    let decided = port.blocked("denied");
    port.prompt("api", "write src/ui/app.ts x");
    let other = port.blocked("denied");
    port.resolve(&decided, &json!({"decision": "deny"})).unwrap();
    lead.end_turn(&turn);

    let (turn, text) = lead.prompted();
    assert!(mention(&text, &first).unwrap() < mention(&text, &other).unwrap(), "{text}");
    assert!(text.contains("`api` wants to write `src/ui/app.ts`"), "{text}");
    // The same once, and what was decided meanwhile not at all.
    assert_eq!((mention(&text, &again), mention(&text, &decided)), (None, None), "{text}");
    // While it is undecided, it is not put to it again.
    port.prompt("ui", "read src/api/cart.rs");
    lead.end_turn(&turn);
    let (turn, text) = lead.prompted();
    assert_eq!(text, "what was queued before");
    lead.end_turn(&turn);

    // Once it is decided, it may be asked again.
    port.resolve(&first, &json!({"decision": "deny"})).unwrap();
    port.prompt("ui", "read src/api/cart.rs");
    let (_, text) = lead.prompted();
    assert!(text.contains("`src/api/cart.rs`"), "{text}");
}

#[test]
fn its_own_accesses_are_denied_at_once_and_not_put_to_it() {
    let stage = Stage::new();
    let Led { mut lead, mut port, team: _team } = led(&stage, "hold");
    port.begin("lead", "work");
    let (turn, _) = lead.prompted();
    let path = stage.in_shop("src/api/cart.rs");
    let answer = lead.call("fs/read_text_file", &json!({"sessionId": "l1", "path": path}));
    assert_eq!(answer["error"]["code"], -32001, "{answer}");
    let own = port.blocked("denied");
    assert_eq!((&own["agent_id"], &own["session_mode"]), (&json!("lead"), &json!("orchestrator")));
    let prompt = port.begin("ui", "read src/api/cart.rs");
    let pending = port.blocked("pending");
    lead.end_turn(&turn);
    let (_, text) = lead.prompted();
    assert!(mention(&text, &pending).is_some() && mention(&text, &own).is_none(), "{text}");
    port.resolve(&pending, &json!({"decision": "allow"})).unwrap();
    assert_eq!(port.said(prompt), "got api\n");
}

#[test]
fn its_token_neither_opens_its_own_zone_nor_changes_the_team() {
    let stage = Stage::new();
    let Led { mut lead, mut port, team } = led(&stage, "deny");
    let read = json!({"sessionId": "l1", "path": stage.in_shop("src/api/cart.rs")});
    let refused = lead.call("fs/read_text_file", &read);
    assert!(refused["error"].is_object(), "{refused}");
    let blocked = port.blocked("denied");
    let id = blocked["id"].as_str().unwrap();
    let said = lead.run("l1", &format!("eisen-core resolve {id} allow 2>&1"));
    assert!(said.contains("403") && said.contains("no agent decides its own"), "{said}");
    assert!(lead.call("fs/read_text_file", &read)["error"].is_object());

    let token = lead.run("l1", "printf %s \"$EISEN_TOKEN\"");
    let mut own = team.watch();
    own.auth(&token);
    let config = json!({"id": "evil", "command": ["sh"], "zone": {"allowed": ["**"]}});
    for (method, params) in [
        ("add_agent", json!({"config": config})),
        ("remove_agent", json!({"agent_id": "ui"})),
        ("start_agent", json!({"agent_id": "ui"})),
        ("stop_agent", json!({"agent_id": "ui"})),
        ("restart_agent", json!({"agent_id": "ui"})),
        ("attach", json!({"agent_id": "ui"})),
        ("reload", json!({})),
    ] {
        assert_eq!(own.call(method, &params).unwrap_err()["code"], 403, "{method}");
    }
    assert_eq!(own.call("list_agents", &json!({})).unwrap().as_array().unwrap().len(), 3);
    // A person decides it.
    port.resolve(&blocked, &json!({"decision": "allow"})).unwrap();
    assert_eq!(lead.call("fs/read_text_file", &read)["result"]["content"], "api\n");
}

#[test]
fn a_prompted_agent_is_denied_at_once_and_the_result_lists_it() {
    let stage = Stage::new();
    let Led { mut lead, mut port, team } = led(&stage, "hold");
    let token = lead.run("l1", "printf %s \"$EISEN_TOKEN\"");
    let mut own = team.watch();
    own.auth(&token);
    let prompt = json!({"agent_id": "ui", "text": "read src/api/cart.rs"});
    let result = own.call("prompt", &prompt).unwrap();
    assert!(result["text"].as_str().unwrap().starts_with("refused"), "{result}");
    let blocked = port.blocked("denied");
    assert_eq!(result["blocked"], json!([blocked["id"]]));
    // It may let the next try through.
    own.resolve(&blocked, &json!({"decision": "allow"})).unwrap();
    let result = own.call("prompt", &prompt).unwrap();
    assert_eq!((&result["text"], &result["blocked"]), (&json!("got api\n"), &json!([])));

    // Another's prompt is held again, and only that is put to it.
    let held = port.begin("ui", "read src/api/order.rs");
    let pending = port.blocked("pending");
    let (_, text) = lead.prompted();
    assert!(mention(&text, &pending).is_some() && mention(&text, &blocked).is_none(), "{text}");
    own.resolve(&pending, &json!({"decision": "allow"})).unwrap();
    let result = port.answer(held).unwrap();
    assert_eq!((&result["text"], result.get("blocked")), (&json!("got order\n"), None));
}

#[test]
fn lines_before_its_death_are_sent_again() {
    let stage = Stage::new();
    let restart = "[agents.restart]\nbackoff_ms = [1, 2]";
    let team = stage.team(
        "[orchestrator]\nagent = \"lead\"\non_block = \"hold\"",
        vec![agent("lead").with(restart), agent("ui").zone("src/ui/**")],
    );
    let mut port = team.steer_when_ready(&["lead", "ui"]);
    // At the first briefing it dies, at the next it allows.
    let prompt = port.begin("ui", "read src/api/die-at-briefing.rs");
    let blocked = port.blocked("pending");
    port.expect(&json!({"type": "turn", "agent_id": "lead", "stop_reason": "error"}));
    assert_eq!(port.blocked("allowed")["id"], blocked["id"]);
    assert!(port.said(prompt).contains("not found"), "there is no such file");
}

#[test]
fn its_map_is_the_merge_of_all_and_its_usage_the_sum() {
    let stage = Stage::new();
    let lead = agent("lead");
    let team =
        stage.team("[orchestrator]\nagent = \"lead\"", vec![lead, agent("ui"), agent("api")]);
    let mut port = team.steer_when_ready(&["lead", "ui", "api"]);
    port.prompt("ui", "read types/cart.ts");
    port.prompt("api", "write types/cart.ts new");
    port.prompt("ui", "read src/ui/app.ts");
    port.prompt("lead", "read src/api/cart.rs");
    port.prompt("ui", "spend dollars");
    port.prompt("api", "spend dollars");
    let of_lead =
        json!({"agent_id": "lead", "session_id": "lead-s1", "session_mode": "orchestrator"});
    let sum = json!({"used": 200, "size": 2000, "cost": {"amount": 1.0, "currency": "USD"}});
    let usage = port.expect_that("the sum", |line| line["type"] == "usage" && line["used"] == 200);
    assert!(crate::harness::has(&usage, &of_lead) && crate::harness::has(&usage, &sum), "{usage}");
    port.prompt("lead", "spend euros");
    let usage = port.expect_that("the sum", |line| line["type"] == "usage" && line["used"] == 230);
    assert_eq!((&usage["size"], &usage["cost"]), (&json!(3000), &Value::Null), "{usage}");

    let mut late = team.watch();
    let snapshot = late.expect(&json!({"type": "snapshot", "session_mode": "orchestrator"}));
    assert_eq!(late.position(&of_lead), 0);
    let action = |path: &str| snapshot["nodes"][path]["last_action"].clone();
    assert_eq!(action("types/cart.ts"), "write");
    assert_eq!(action("src/ui/app.ts"), "read");
    assert_eq!(action("src/api/cart.rs"), "read");
    let own = late.expect(&json!({"type": "snapshot", "agent_id": "ui"}));
    assert_eq!(own["nodes"]["types/cart.ts"]["last_action"], "read");
    assert!(own["nodes"].get("src/api/cart.rs").is_none(), "{own}");
}
