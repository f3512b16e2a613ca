//! Tokens of the team with a scope, on the web.

use serde_json::{Value, json};

use super::Site;
use crate::harness::{Stage, agent};

#[test]
fn a_token_with_a_scope_is_good_here_too_until_it_is_revoked() {
    let stage = Stage::new();
    let team = stage.team("[web]\nlisten = \"127.0.0.1:0\"", vec![agent("ui"), agent("api")]);
    let _port = team.steer_when_ready(&["ui", "api"]);
    let (site, _) = Site::of(&stage, &[]);
    let make = |args: &[&str]| -> (String, String) {
        let made = stage.run(&[&["token", "create", "--json", "--owner", "ada"], args].concat());
        let made: Value = serde_json::from_str(&made.stdout).unwrap();
        let text = |key: &str| made[key].as_str().unwrap().to_owned();
        (text("token"), text("id"))
    };
    let metrics =
        |token: &str| site.get("/metrics", &[&format!("Authorization: Bearer {token}")]).status;
    let (reads, _) = make(&["--may", "read"]);
    let (prompts, _) = make(&["--may", "prompt"]);
    let (limited, id) = make(&["--may", "read,prompt", "--agents", "ui"]);
    assert_eq!([&reads, &prompts, &limited].map(|token| metrics(token)), [200, 403, 403]);
    assert_eq!(metrics(&limited[1..]), 401);

    let bearer = format!("Bearer {limited}");
    let mut socket = site.socket(&[("authorization", &bearer)]).unwrap();
    socket.send(&json!({ "type": "auth", "token": limited }));
    let answer: Value = serde_json::from_str(&socket.next().unwrap()).unwrap();
    assert_eq!(
        (&answer["result"]["owner"], &answer["result"]["team"]),
        (&json!("ada"), &json!("shop"))
    );
    socket.call("cancel", &json!({ "agent_id": "ui" })).unwrap();
    for (method, params) in [
        ("cancel", json!({ "agent_id": "api" })),
        ("stop_agent", json!({ "agent_id": "ui" })),
        ("web_token", json!({ "scope": "control" })),
        ("token_list", json!({})),
    ] {
        assert_eq!(socket.call(method, &params), Err(json!(403)), "{method}");
    }
    assert_eq!(stage.run(&["token", "revoke", &id]).code, 0);
    while socket.next().is_some() {}
    assert_eq!(site.socket(&[("authorization", &bearer)]).err(), Some(401));
    let uses = stage.run(&["history", "--type", "token", "--json"]).stdout;
    assert!(uses.contains("/metrics") && uses.contains("/ws"), "{uses}");
}
