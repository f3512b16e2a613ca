//! `token`: tokens with a scope, as their holders use them.

use serde_json::{Value, json};

use super::assert_ended;
use crate::harness::{Ended, Stage, agent, run};

/// What a command comes to with a token.
fn with(stage: &Stage, token: &str, port: u16, args: &[&str]) -> Ended {
    let mut command = stage.eisen_core(args);
    command.env("EISEN_TOKEN", token).env("EISEN_PORT", port.to_string());
    run(&mut command)
}

#[test]
fn a_holder_does_what_the_token_says_until_it_is_revoked() {
    let stage = Stage::new();
    let agents = vec![agent("ui").zone("src/ui/**"), agent("api")];
    let team = stage.team("", agents);
    let mut person = team.steer_when_ready(&["ui", "api"]);
    let args = ["--owner", "ada", "--may", "read,prompt", "--agents", "ui", "--expires", "1h"];
    let made = stage.run(&[&["token", "create"], &args[..]].concat());
    assert_eq!(made.code, 0, "{made:?}");
    let token = made.stdout.trim().to_owned();
    let number = u16::try_from(team.run_file["port"].as_u64().unwrap()).unwrap();
    let prompted = with(&stage, &token, number, &["prompt", "ui", "run echo hello"]);
    assert_eq!(prompted.code, 0, "{prompted:?}");
    let other = with(&stage, &token, number, &["prompt", "api", "run echo hello"]);
    assert!(other.code != 0 && other.stderr.contains("this token is for ui"), "{other:?}");
    let stopped = with(&stage, &token, number, &["stop", "ui"]);
    assert!(stopped.stderr.contains("takes the right `control`"), "{stopped:?}");

    let list: Value =
        serde_json::from_str(&stage.run(&["token", "list", "--json"]).stdout).unwrap();
    let id = list[0]["id"].as_str().unwrap().to_owned();
    assert_eq!((&list[0]["owner"], &list[0]["agents"]), (&json!("ada"), &json!(["ui"])));
    let kept = stage.read("home/teams/shop/tokens.json");
    assert!(kept.contains(&id) && !kept.contains(&token["eisen_".len()..]), "{kept}");
    // An agent in a zone does not get at the file, nor at the token.
    let file = stage.path("home/teams/shop/tokens.json").display().to_string();
    let found = person.prompt("ui", &format!("run cat {file}"));
    assert!(!found.contains(&id), "{found}");

    let uses = stage.run(&["history", "--type", "token", "--json"]).stdout;
    for what in ["token.create", "token.use", "\"ada\"", "\"prompt\"", "\"stop_agent\""] {
        assert!(uses.contains(what), "{what} in {uses}");
    }
    assert!(!uses.contains(&token));

    let revoked = stage.run(&["token", "revoke", &id]);
    assert_ended(&revoked, 0, "revoked a token of ada\n", "");
    let late = with(&stage, &token, number, &["prompt", "ui", "run echo hello"]);
    assert!(late.code != 0 && late.stderr.contains("wrong token"), "{late:?}");
    team.stop();
}

#[test]
fn tokens_of_a_team_that_does_not_run_are_made_and_revoked() {
    let stage = Stage::new();
    let agents = || vec![agent("ui").zone("src/ui/**")];
    let unknown = stage.run(&["token", "list", "--team", "shop"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("`shop`"), "{unknown:?}");
    stage.team("", agents()).stop();
    let make = || {
        let args = ["token", "create", "--team", "shop", "--owner", "ada", "--may", "read,prompt"];
        let made = stage.run(&[&args[..], &["--json"]].concat());
        assert!(made.stderr.contains("does not run"), "{made:?}");
        serde_json::from_str::<Value>(&made.stdout).unwrap()
    };
    let [kept, gone] = [make(), make()];
    let id = gone["id"].as_str().unwrap();
    let revoked = stage.run(&["token", "revoke", "--team", "shop", id]);
    assert_eq!((revoked.code, &*revoked.stdout), (0, "revoked a token of ada\n"), "{revoked:?}");
    let listed = stage.run(&["token", "list", "--team", "shop", "--json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (1, &kept["id"]));
    let wrong =
        stage.run(&["token", "create", "--team", "shop", "--owner", "a b", "--may", "read"]);
    assert!(wrong.code == 1 && wrong.stderr.contains("`owner` is a name"), "{wrong:?}");
    let team = stage.team("", agents());
    team.steer_when_ready(&["ui"]);
    let number = u16::try_from(team.run_file["port"].as_u64().unwrap()).unwrap();
    let token = |made: &Value| made["token"].as_str().unwrap().to_owned();
    let prompted = with(&stage, &token(&kept), number, &["prompt", "ui", "run echo hello"]);
    assert_eq!(prompted.code, 0, "{prompted:?}");
    let refused = with(&stage, &token(&gone), number, &["prompt", "ui", "run echo hello"]);
    assert!(refused.stderr.contains("wrong token"), "{refused:?}");
}

#[test]
fn what_a_holder_begins_is_the_holders_and_the_rest_its_agents() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").with("owner = \"bob\""), agent("api")]);
    let mut person = team.steer_when_ready(&["ui", "api"]);
    let made = stage.run(&["token", "create", "--owner", "ada", "--may", "read,prompt"]);
    let mut holder = team.watch();
    holder.auth(made.stdout.trim());
    let opened = holder.call("new_session", &json!({"agent_id": "ui"})).unwrap();
    person.call("new_session", &json!({"agent_id": "api"})).unwrap();
    let list = holder.call("list_sessions", &json!({})).unwrap();
    let owners = |list: &Value| {
        let shown = |it: &Value| json!([it["agent_id"], it["session_id"], it["owner"]]);
        let mut all: Vec<_> = list.as_array().unwrap().iter().map(shown).collect();
        all.sort_by_key(Value::to_string);
        Value::from(all)
    };
    let expected = json!([
        ["api", "api-s1", null],
        ["api", "api-s2", null],
        ["ui", "ui-s1", "bob"],
        ["ui", opened["session_id"], "ada"],
    ]);
    assert_eq!(owners(&list), expected);

    person.send(&json!({"type": "subscribe", "topics": ["task"]}));
    let task = json!({"agent": "api", "task": "run echo hello"});
    let of_ada = holder.call("delegate_task", &task).unwrap()["id"].clone();
    let nobodys = person.call("delegate_task", &task).unwrap()["id"].clone();
    person.expect(&json!({"type": "task", "id": of_ada, "owner": "ada", "state": "done"}));
    let ended = person.expect(&json!({"type": "task", "id": nobodys, "state": "done"}));
    assert_eq!(ended.get("owner"), None, "{ended}");
    let tasks = holder.call("check_tasks", &json!({})).unwrap()["tasks"].clone();
    assert_eq!((&tasks[0]["owner"], tasks[1].get("owner")), (&json!("ada"), None), "{tasks}");

    let ps = stage.run(&["ps"]).stdout;
    let column: Vec<_> = ps.lines().map(|line| line.split_whitespace().last().unwrap()).collect();
    assert_eq!(column, ["OWNER", "bob", "-"], "{ps}");
    let of_bob = stage.run(&["ps", "--owner", "bob"]).stdout;
    assert!(of_bob.contains("bob") && !of_bob.contains("api"), "{of_bob}");
    assert_eq!(stage.run(&["ps", "--owner", "ada", "--json"]).stdout, "[]\n");

    // The agent changes hands while it runs; what it opened before stays bob's.
    let file = stage.read("eisen.toml");
    stage.file("eisen.toml", &file.replace("\"bob\"", "\"eve\""));
    let reloaded = person.call("reload", &json!({})).unwrap();
    assert_eq!(reloaded["needs_restart"], json!([]), "{reloaded}");
    let of_eve = stage.run(&["ps", "--owner", "eve", "--json"]).stdout;
    let of_eve: Value = serde_json::from_str(&of_eve).unwrap();
    assert_eq!((&of_eve[0]["agent_id"], of_eve[0]["restarts"].as_u64()), (&json!("ui"), Some(0)));
    assert_eq!(owners(&person.call("list_sessions", &json!({})).unwrap()), expected);
    team.stop();
    let kept: Value = serde_json::from_str(&stage.read("home/core_sessions.json")).unwrap();
    let owner = |it: &&Value| it["session_id"] == opened["session_id"] && it["owner"] == "ada";
    assert!(kept["sessions"].as_array().unwrap().iter().any(|it| owner(&it)), "{kept}");
}
