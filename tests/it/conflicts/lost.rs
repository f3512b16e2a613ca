//! Lost updates: writes over what somebody else wrote meanwhile, whoever writes in whichever way.

use serde_json::json;

use super::{FILE, pair};
use crate::harness::{Stage, eventually};

const TURNS: &str = "[conflicts]\nstrategy = \"lww\"\n";

#[test]
fn a_write_on_an_old_read_is_found_by_each_way() {
    let stage = Stage::new();
    stage.file("shop/src/ui/b", "1\n");
    stage.file("shop/src/ui/c", "1\n");
    let mut pair = pair(&stage, TURNS);
    // A shell reads, the other writes by the protocol, the shell writes.
    assert_eq!(pair.api.run("cat src/ui/app.ts"), "ui\n");
    assert_eq!(pair.ui.write("ui 2\n")["result"], json!({}));
    assert_eq!(pair.api.run("echo api >src/ui/app.ts"), "");
    assert_eq!(pair.conflict("lost_update", "observed")["agents"], json!(["api", "ui"]));
    // Somebody outside the team writes meanwhile.
    assert_eq!(pair.api.run("cat src/ui/b"), "1\n");
    stage.file("shop/src/ui/b", "of a person\n");
    let port = &mut pair.port;
    eventually("the write of the person is known", || {
        let events = port.call("list_events", &json!({ "types": ["file.write"] })).unwrap();
        events["events"].as_array().unwrap().iter().any(|it| it["payload"]["path"] == "src/ui/b")
    });
    assert_eq!(pair.api.run("echo api >src/ui/b"), "");
    let found = pair.port.expect(&json!({ "type": "conflict", "path": "src/ui/b" }));
    assert_eq!(found["agents"], json!(["api"]));
    // Reads before the write, and lines that stay, are none.
    assert_eq!(pair.ui.run("echo 2 >>src/ui/c"), "");
    pair.ui.end_turn();
    pair.port.expect(&json!({ "type": "turn", "agent_id": "ui" }));
    assert_eq!(
        pair.api.run("cat src/ui/c; sed -i s/1/one/ src/ui/c; cat src/ui/c"),
        "1\n2\none\n2\n"
    );
    let all = pair.listed(2);
    assert!(all.iter().filter(|it| it.contains("observed")).count() == 2, "{all:?}");
}

#[test]
fn conflicts_are_events_of_the_journal() {
    let stage = Stage::new();
    let mut pair = pair(&stage, TURNS);
    assert_eq!(pair.ui.read(), "ui\n");
    assert_eq!(pair.api.run("echo api >src/ui/app.ts"), "");
    assert_eq!(pair.ui.write("ui 2\n")["result"], json!({}));
    let id = pair.conflict("lost_update", "observed")["id"].clone();
    pair.team.stop();
    let exported = stage.run(&["export"]);
    let lines = exported.stdout.lines();
    let events: Vec<serde_json::Value> =
        lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_it = |line: &&serde_json::Value| {
        let event = &line["event"];
        event["type"] == "conflict" && event["payload"]["status"] == "observed"
    };
    let found = &events.iter().find(is_it).unwrap()["event"]["payload"];
    assert_eq!((&found["id"], &found["path"]), (&id, &json!(FILE)));
    assert_eq!(found["agents"], json!(["ui", "api"]));
}
