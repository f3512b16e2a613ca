//! The prompts that wait: listed, changed and taken back.

use serde_json::{Value, json};

use crate::harness::{Port, Stage, agent, eventually};

/// The prompts that wait, once there are so many.
fn waiting(port: &mut Port, count: usize) -> Vec<Value> {
    let mut prompts = Vec::new();
    eventually("the prompts wait", || {
        let listed = port.call("list_prompts", &json!({"agent_id": "ui"})).unwrap();
        prompts.clone_from(listed["prompts"].as_array().unwrap());
        prompts.len() == count
    });
    prompts
}

fn edit(port: &mut Port, prompt: &Value, text: &str) -> Result<Value, Value> {
    port.call("edit_prompt", &json!({"agent_id": "ui", "id": prompt["id"], "text": text}))
}

fn withdraw(port: &mut Port, prompt: &Value) -> Result<Value, Value> {
    port.call("withdraw_prompt", &json!({"agent_id": "ui", "id": prompt["id"]}))
}

#[test]
fn prompts_that_wait_are_changed_and_taken_back_by_any_client() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let mut other = team.steer();
    assert_eq!(waiting(&mut port, 0), Vec::<Value>::new());
    let running = port.begin_waiting("ui");
    let first = port.begin("ui", "first");
    let second = port.begin("ui", "second");
    let listed = waiting(&mut other, 2);
    let texts: Vec<_> = listed.iter().map(|it| &it["text"]).collect();
    assert_eq!(texts, ["first", "second"]);
    assert_eq!((&listed[0]["session_id"], &listed[0]["by"]), (&json!("ui-s1"), &json!("person")));

    assert_eq!(edit(&mut other, &listed[0], "changed").unwrap()["text"], "changed");
    assert_eq!(edit(&mut other, &listed[0], " ").unwrap_err()["code"], 400);
    assert_eq!(withdraw(&mut other, &listed[1]).unwrap()["text"], "second");
    let refused = port.answer(second).unwrap_err();
    assert_eq!(refused["code"], 409, "{refused}");
    assert_eq!(waiting(&mut other, 1)[0]["text"], "changed");

    port.call("cancel", &json!({"agent_id": "ui", "queued": false})).unwrap();
    port.answer(running).unwrap();
    assert_eq!(port.said(first), "changed");
    for late in [edit(&mut other, &listed[0], "too late"), withdraw(&mut other, &listed[1])] {
        let refused = late.unwrap_err();
        assert_eq!(refused["code"], 409);
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("its turn has begun, or it was withdrawn"), "{message}");
    }
}

#[test]
fn a_long_prompt_is_cut_in_the_list_and_whole_by_its_id() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.begin_waiting("ui");
    let long = "x".repeat(10_000);
    let image = json!({"type": "image", "mimeType": "image/png", "data": ""});
    let blocks = json!([{"type": "text", "text": long}, image]);
    port.ask("prompt", &json!({"agent_id": "ui", "blocks": blocks}));
    let listed = waiting(&mut port, 1).remove(0);
    assert_eq!((listed["text"].as_str().unwrap().len(), &listed["cut"]), (4096, &json!(true)));
    assert_eq!(listed["attachments"], 1);
    let params = json!({"agent_id": "ui", "id": listed["id"]});
    let whole = port.call("list_prompts", &params).unwrap();
    assert_eq!(whole["prompts"][0]["text"], long);
    assert_eq!(whole["prompts"].as_array().unwrap().len(), 1);
}

#[test]
fn a_token_changes_prompts_by_its_right_to_prompt() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui"), agent("api")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    port.begin_waiting("ui");
    port.begin("ui", "first");
    let listed = waiting(&mut port, 1);
    let holder = |args: &[&str]| {
        let made = stage.run(&[&["token", "create", "--json", "--owner", "ada"], args].concat());
        let made: Value = serde_json::from_str(&made.stdout).unwrap();
        let mut holder = team.watch();
        holder.auth(made["token"].as_str().unwrap());
        holder
    };
    let code = |outcome: Result<Value, Value>| outcome.err().map(|error| error["code"].clone());
    let mut reads = holder(&["--may", "read"]);
    assert_eq!(waiting(&mut reads, 1), listed);
    assert_eq!(code(edit(&mut reads, &listed[0], "x")), Some(json!(403)));
    assert_eq!(code(withdraw(&mut reads, &listed[0])), Some(json!(403)));
    let mut elsewhere = holder(&["--may", "read,prompt", "--agents", "api"]);
    let listing = elsewhere.call("list_prompts", &json!({"agent_id": "ui"}));
    assert_eq!(code(listing), Some(json!(403)));
    assert_eq!(code(edit(&mut elsewhere, &listed[0], "x")), Some(json!(403)));
    let mut prompts = holder(&["--may", "read,prompt", "--agents", "ui"]);
    assert_eq!(code(edit(&mut prompts, &listed[0], "by ada")), None);
    prompts.begin("ui", "own");
    let now = waiting(&mut prompts, 2);
    assert_eq!(
        (&now[0]["text"], &now[0]["by"], &now[1]["by"]),
        (&json!("by ada"), &json!("person"), &json!("token:ada"))
    );
    let listing = team.watch().call("list_prompts", &json!({"agent_id": "ui"}));
    assert_eq!(code(listing), Some(json!(401)));
}
