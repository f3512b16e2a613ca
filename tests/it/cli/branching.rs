//! `fork` and `rewind`, over the port and from the command line.

use serde_json::{Value, json};

use crate::harness::{Port, Puppet, Stage, Team, agent, has};

const EMBEDS: &str = r#"{"promptCapabilities": {"embeddedContext": true}}"#;
const FORKS: &str = r#"{"sessionCapabilities": {"fork": {}}}"#;

/// An agent that the test plays, after two turns in its session `first`.
fn after_two_turns(stage: &Stage, capabilities: &str) -> (Team, Port, Puppet) {
    let mut puppet = stage.puppet("ui");
    let team = stage.team("", vec![agent("ui").puppet()]);
    let capabilities: Value = serde_json::from_str(capabilities).unwrap();
    let able = json!({"protocolVersion": 1, "agentCapabilities": capabilities});
    puppet.serve("initialize", &able);
    puppet.serve("session/new", &json!({"sessionId": "first"}));
    let mut port = team.steer_when_ready(&["ui"]);
    for (asked, said) in [("one", "Answer 1."), ("two", "Answer 2.")] {
        let id = port.begin("ui", asked);
        let (prompt, _) = puppet.prompted();
        puppet.say("first", said);
        puppet.end_turn(&prompt);
        port.answer(id).unwrap();
    }
    (team, port, puppet)
}

fn events(port: &mut Port, params: &Value) -> Vec<Value> {
    let result = port.call("list_events", params).unwrap();
    assert_eq!(result["next"], Value::Null);
    result["events"].as_array().unwrap().clone()
}

/// The event of the agent's first answer.
fn first_answer(port: &mut Port) -> Value {
    let params = json!({"session_id": "ui/first", "types": ["message.assistant"]});
    events(port, &params).swap_remove(0)
}

/// Sends a prompt; returns the request that reaches the agent, and the answer to the client.
fn prompt(port: &mut Port, puppet: &mut Puppet, session: &str, text: &str) -> (Value, Value) {
    let params = json!({"agent_id": "ui", "session_id": session, "text": text});
    let id = port.ask("prompt", &params);
    let request = puppet.expect(&json!({"method": "session/prompt"}));
    puppet.say(request["params"]["sessionId"].as_str().unwrap(), "Well.");
    puppet.end_turn(&request["id"]);
    (request["params"].clone(), port.answer(id).unwrap())
}

#[track_caller]
fn assert_knows_the_first_turn(document: &Value) {
    let text = document.as_str().unwrap_or_else(|| panic!("no document, but {document}"));
    for part in ["# The conversation so far", "## User\n\none\n", "## Assistant\n\nAnswer 1.\n"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("two") && !text.contains("Answer 2."), "{text}");
}

#[test]
fn a_fork_is_primed_with_the_conversation_up_to_its_point() {
    let stage = Stage::new();
    let (_team, mut port, mut puppet) = after_two_turns(&stage, EMBEDS);
    let at = first_answer(&mut port);
    let id = port.ask("fork_session", &json!({"session_id": "ui/first", "at": at["id"]}));
    puppet.serve("session/new", &json!({"sessionId": "second"}));
    let forked = port.answer(id).unwrap();
    assert!(has(&forked, &json!({"agent_id": "ui", "session_id": "second", "how": "primed"})));

    let of_fork = json!({"session_id": forked["journal_session_id"]});
    let begun = events(&mut port, &of_fork);
    let root = json!({
        "type": "session.fork", "parent_id": at["id"], "sequence": 0,
        "depth": at["depth"].as_u64().unwrap() + 1,
        "payload": {"from_session_id": at["session_id"], "from_event_id": at["id"], "how": "primed"},
    });
    assert!(has(&begun[0], &root), "{begun:?}");

    let (sent, answer) = prompt(&mut port, &mut puppet, "second", "three");
    assert_eq!((&sent["sessionId"], &answer["session_id"]), (&json!("second"), &json!("second")));
    assert_eq!(sent["prompt"][0]["type"], "resource");
    assert_knows_the_first_turn(&sent["prompt"][0]["resource"]["text"]);
    assert_eq!(sent["prompt"][1]["text"], "three");
    let (sent, _) = prompt(&mut port, &mut puppet, "second", "four");
    assert_eq!(sent["prompt"].as_array().unwrap().len(), 1);
    let (sent, _) = prompt(&mut port, &mut puppet, "first", "five");
    assert_eq!(sent["sessionId"], "first");

    let all = events(&mut port, &of_fork);
    let kinds: Vec<_> = all.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let turn = ["message.user", "message.assistant", "turn.end"];
    assert_eq!(kinds, [&["session.fork"][..], &turn, &turn].concat());
    for (at, event) in all.iter().enumerate() {
        assert_eq!(event["sequence"], at, "{event}");
    }
    // A fork of the fork knows what both said.
    let id = port.ask("fork_session", &json!({"session_id": "second"}));
    puppet.serve("session/new", &json!({"sessionId": "third"}));
    port.answer(id).unwrap();
    let (sent, _) = prompt(&mut port, &mut puppet, "third", "six");
    let text = sent["prompt"][0]["resource"]["text"].as_str().unwrap();
    assert!(text.contains("Answer 1.") && text.contains("\n\nfour\n"), "{text}");
    assert_eq!(text.matches("# The conversation so far").count(), 1, "{text}");
}

#[test]
fn an_agent_that_can_forks_its_own_session_at_its_head() {
    let stage = Stage::new();
    let (_team, mut port, mut puppet) = after_two_turns(&stage, FORKS);
    let id = port.ask("fork_session", &json!({"session_id": "ui/first"}));
    let params = puppet.serve("session/fork", &json!({"sessionId": "second"}));
    assert_eq!(params["sessionId"], "first");
    let forked = port.answer(id).unwrap();
    assert!(has(&forked, &json!({"session_id": "second", "how": "forked"})), "{forked}");
    let (sent, _) = prompt(&mut port, &mut puppet, "second", "three");
    assert_eq!(sent["prompt"], json!([{"type": "text", "text": "three"}]));
    let begun = events(&mut port, &json!({"session_id": "second"}));
    assert_eq!(begun[0]["payload"]["how"], "forked");

    // Not at an earlier point, and not if the agent refuses.
    let at = first_answer(&mut port);
    let id = port.ask("fork_session", &json!({"session_id": "first", "at": at["id"]}));
    puppet.serve("session/new", &json!({"sessionId": "third"}));
    assert_eq!(port.answer(id).unwrap()["how"], "primed");
    let (sent, _) = prompt(&mut port, &mut puppet, "third", "four");
    assert_knows_the_first_turn(&sent["prompt"][0]["text"]);
    let id = port.ask("fork_session", &json!({"session_id": "first"}));
    let request = puppet.expect(&json!({"method": "session/fork"}));
    let error = json!({"code": -32603, "message": "no"});
    puppet.send(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
    puppet.serve("session/new", &json!({"sessionId": "fourth"}));
    assert_eq!(port.answer(id).unwrap()["how"], "primed");
}

#[test]
fn a_fork_that_is_only_on_the_agents_disk_is_restored() {
    let stage = Stage::new();
    let capabilities = r#"{"sessionCapabilities": {"fork": {}, "resume": {}}}"#;
    let (_team, mut port, mut puppet) = after_two_turns(&stage, capabilities);
    let fork = |port: &mut Port, puppet: &mut Puppet, answer: &Value| {
        let id = port.ask("fork_session", &json!({"session_id": "first"}));
        puppet.serve("session/fork", answer);
        id
    };
    let id = fork(&mut port, &mut puppet, &json!({"sessionId": "second"}));
    assert_eq!(puppet.serve("session/resume", &json!({}))["sessionId"], "second");
    assert_eq!(port.answer(id).unwrap()["how"], "forked");
    let (sent, _) = prompt(&mut port, &mut puppet, "second", "three");
    assert_eq!(sent["sessionId"], "second");
    // One that answers with its settings is open.
    let open = json!({"sessionId": "third", "modes": {"currentModeId": "a", "availableModes": []}});
    let id = fork(&mut port, &mut puppet, &open);
    assert_eq!(port.answer(id).unwrap()["session_id"], "third");
    assert_eq!(puppet.count(&json!({"method": "session/resume"})), 1);
}

#[test]
fn a_session_that_is_set_back_goes_on_under_its_name() {
    let stage = Stage::new();
    let capabilities = r#"{"loadSession": true, "promptCapabilities": {"embeddedContext": true}}"#;
    let (team, mut port, mut puppet) = after_two_turns(&stage, capabilities);
    let to = first_answer(&mut port);
    let before = events(&mut port, &json!({"session_id": "first"}));
    let id = port.ask("rewind_session", &json!({"session_id": "first", "to": to["id"]}));
    puppet.serve("session/new", &json!({"sessionId": "second"}));
    let rewound = port.answer(id).unwrap();
    assert!(has(
        &rewound,
        &json!({"session_id": "first", "head_event_id": to["id"], "how": "primed"})
    ));
    let rewind = events(&mut port, &json!({"types": ["session.rewind"]})).swap_remove(0);
    assert!(has(
        &rewind,
        &json!({"type": "session.rewind", "session_id": to["session_id"],
        "payload": {"to_event_id": to["id"], "files": false}})
    ));
    assert_eq!(rewind["sequence"], before.len());

    let params = json!({"agent_id": "ui", "text": "three"});
    let id = port.ask("prompt", &params);
    let request = puppet.expect(&json!({"method": "session/prompt"}));
    assert_eq!(request["params"]["sessionId"], "second");
    assert_knows_the_first_turn(&request["params"]["prompt"][0]["resource"]["text"]);
    puppet.say("second", "Other 2.");
    puppet.end_turn(&request["id"]);
    let answer = port.answer(id).unwrap();
    assert!(has(&answer, &json!({"session_id": "first", "text": "Other 2."})), "{answer}");
    port.expect(&json!({"type": "turn", "session_id": "first", "turn": 2}));
    assert_eq!(port.count(&json!({"type": "snapshot", "session_id": "second"})), 0);
    let all = events(&mut port, &json!({"session_id": "first"}));
    let behind = all.iter().find(|event| event["turn"] == 2 && event["type"] == "message.user");
    assert_eq!(behind.unwrap()["parent_id"], to["id"]);

    // The agent's next run gets the session back that stands behind it.
    port.call("stop_agent", &json!({"agent_id": "ui"})).unwrap();
    puppet.until_end();
    port.call("start_agent", &json!({"agent_id": "ui"})).unwrap();
    let mut puppet = Puppet::again(&stage, "ui");
    puppet.serve(
        "initialize",
        &json!({"protocolVersion": 1,
        "agentCapabilities": {"loadSession": true}}),
    );
    assert_eq!(puppet.serve("session/load", &json!({}))["sessionId"], "second");
    port.agent_is("ui", "ready");
    let (sent, answer) = prompt(&mut port, &mut puppet, "first", "four");
    assert_eq!((&sent["sessionId"], &answer["session_id"]), (&json!("second"), &json!("first")));
    assert_eq!(sent["prompt"].as_array().unwrap().len(), 1);
    drop(port);
    team.stop();
}

#[test]
fn a_rewind_that_cannot_be_changes_nothing() {
    let stage = Stage::new();
    let (_team, mut port, mut puppet) = after_two_turns(&stage, EMBEDS);
    let to = first_answer(&mut port);
    let mut refused = |session: &str, to: &Value, code: u64| {
        let params = json!({"session_id": session, "to": to});
        let error = port.call("rewind_session", &params).unwrap_err();
        assert_eq!(error["code"], code, "{error}");
    };
    refused("nobody", &to["id"], 404);
    refused("first", &json!("ffff"), 404);
    refused("first", &json!(""), 404);
    let outside = json!({"types": ["agent.state"], "limit": 1});
    let outside = port.call("list_events", &outside).unwrap()["events"][0]["id"].clone();
    let params = json!({"session_id": "first", "to": outside});
    assert_eq!(port.call("rewind_session", &params).unwrap_err()["code"], 400);

    let running = port.begin("ui", "three");
    let (prompt_id, _) = puppet.prompted();
    let params = json!({"session_id": "first", "to": to["id"]});
    let error = port.call("rewind_session", &params).unwrap_err();
    assert_eq!(error["code"], 409);
    puppet.end_turn(&prompt_id);
    port.answer(running).unwrap();

    let id = port.ask("rewind_session", &params);
    let request = puppet.expect(&json!({"method": "session/new"}));
    let error = json!({"code": -32603, "message": "no more sessions"});
    puppet.send(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
    assert_eq!(port.answer(id).unwrap_err()["code"], 500);
    let (sent, _) = prompt(&mut port, &mut puppet, "first", "four");
    assert_eq!(sent["sessionId"], "first");
    assert_eq!(sent["prompt"].as_array().unwrap().len(), 1);
    assert!(events(&mut port, &json!({"types": ["session.rewind"]})).is_empty());
}

#[test]
fn the_commands_fork_and_set_back_a_running_team_and_one_that_is_gone() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").forks()]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "write src/ui/a.ts 1");
    port.prompt("ui", "write src/ui/b.ts 2");
    let json = |args: &[&str]| -> Value {
        let ended = stage.run(args);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        serde_json::from_str(&ended.stdout).unwrap()
    };
    let forked = json(&["fork", "ui/ui-s1", "--json"]);
    assert!(has(&forked, &json!({"session_id": "ui-s2", "how": "forked"})), "{forked}");
    let point = events(&mut port, &json!({"session_id": "ui-s1", "types": ["turn.end"]}));
    let point = point[0]["id"].as_str().unwrap().to_owned();
    let set_back = stage.run(&["rewind", "ui/ui-s1", "--to", &point]);
    assert_eq!(set_back.stdout, format!("ui/ui-s1  set back to {point}\n"), "{}", set_back.stderr);
    drop(port);
    team.stop();

    let rewound = json(&["rewind", "ui/ui-s2", "--to", &point[..35], "--json"]);
    assert_eq!(rewound["head_event_id"], json!(point));
    let again = json(&["fork", "ui/ui-s2", "--json"]);
    assert!(has(&again, &json!({"session_id": null, "at": point})), "{again}");
    let id = again["journal_session_id"].as_str().unwrap();
    let begun: Value = json(&["history", id, "--json"]);
    assert!(has(&begun, &json!({"type": "session.fork", "parent_id": point, "sequence": 0})));
    let tree = stage.run(&["history"]).stdout;
    assert!(tree.contains('~') && tree.contains(&format!("fork {id}")), "{tree}");
    for (args, why) in [
        (["fork", "ui/nobody"].as_slice(), "there is no session `ui/nobody`; the last ones are"),
        (&["fork", "0"], "`0` may mean several sessions"),
        (&["rewind", "ui/ui-s1", "--to", "ffff"], "there is no event `ffff`"),
    ] {
        let ended = stage.run(args);
        assert_eq!(ended.code, 1);
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
    }
}
