//! What becomes of a write to a file that another agent has locked.

use serde_json::json;

use super::{FILE, pair};
use crate::harness::Stage;

const FWW: &str = "[conflicts]\nstrategy = \"fww\"\n";
const HOLD: &str = "[conflicts]\n[orchestrator]\non_block = \"hold\"\n";

#[test]
fn without_the_table_nothing_is_locked() {
    let stage = Stage::new();
    let mut pair = pair(&stage, "");
    assert_eq!(pair.ui.write("ui 1\n")["result"], json!({}));
    assert_eq!(pair.api.write("api 1\n")["result"], json!({}));
    let listed = pair.port.call("list_conflicts", &json!({})).unwrap();
    assert_eq!(listed, json!({ "strategy": null, "conflicts": [], "locks": [] }));
}

#[test]
fn the_first_writer_wins_by_protocol_and_by_shell() {
    let stage = Stage::new();
    let mut pair = pair(&stage, FWW);
    // By the protocol, and what its programs write: both lock the file.
    assert_eq!(pair.ui.write("ui 1\n")["result"], json!({}));
    assert_eq!(pair.ui.run("echo ui 2 >src/ui/own; echo ui 2 >>src/ui/app.ts"), "");
    let refused = pair.api.write("api\n")["error"].clone();
    assert_eq!((&refused["code"], &refused["data"]["holder"]), (&json!(-32001), &json!("ui")));
    assert_eq!(refused["data"]["path"], FILE);
    let said = pair
        .api
        .run("echo api >src/ui/app.ts; echo api >src/ui/own; rm src/ui/own; cat src/ui/own");
    assert_eq!(said.matches("denied").count(), 3, "{said}");
    assert!(said.ends_with("ui 2\n"), "a locked file can be read: {said}");
    assert_eq!(stage.read(&format!("shop/{FILE}")), "ui 1\nui 2\n");
    let denied = pair.listed(2);
    assert_eq!(denied, ["c1 denied denied api ui", "c2 denied denied api ui"]);
    let locks = pair.port.call("list_conflicts", &json!({})).unwrap()["locks"].clone();
    assert_eq!((&locks[0]["path"], &locks[0]["agent_id"]), (&json!(FILE), &json!("ui")));
    assert!(locks[0]["pid"].is_u64() && locks[0]["started"].as_u64().unwrap() > 0, "{locks}");
    // The end of the turn ends its locks.
    pair.ui.end_turn();
    pair.port.expect(&json!({ "type": "turn", "agent_id": "ui" }));
    assert_eq!(pair.api.write("api\n")["result"], json!({}));
    assert_eq!(pair.api.run("echo api >src/ui/own"), "");
    pair.api.end_turn();
    pair.port.begin("api", "next");
    let (_, said) = pair.api.puppet.prompted();
    assert!(said.contains("conflict c2: `ui` has `src/ui/own` locked"), "{said}");
    let shown = stage.run(&["conflicts"]);
    assert!(shown.stdout.contains("denied") && shown.stdout.contains(FILE), "{}", shown.stdout);
}

#[test]
fn a_held_write_goes_on_once_the_turn_is_over() {
    let stage = Stage::new();
    let mut pair = pair(&stage, HOLD);
    assert_eq!(pair.ui.run("echo ui >src/ui/app.ts; echo ui >src/ui/other"), "");
    let held = pair.api.begin_write("api\n");
    assert_eq!(pair.conflict("held", "pending")["agents"], json!(["api", "ui"]));
    let terminal = pair.api.start("sh -c 'echo api >src/ui/other'");
    pair.conflict("held", "pending");
    assert_eq!(stage.read("shop/src/ui/other"), "ui\n");
    // The holder can't wait for who waits for it.
    assert_eq!(pair.api.run("echo api >src/ui/third"), "");
    let refused = pair.ui.run("echo ui >src/ui/third");
    assert!(refused.contains("denied"), "{refused}");
    let denied = pair.conflict("denied", "denied")["message"].as_str().unwrap().to_owned();
    assert!(denied.contains("`ui` → `api` → `ui`"), "{denied}");
    pair.ui.end_turn();
    assert_eq!(pair.api.puppet.answer(&held)["result"], json!({}));
    assert_eq!(pair.api.ends(&terminal), 0);
    assert_eq!(stage.read(&format!("shop/{FILE}")), "api\n");
    assert_eq!(stage.read("shop/src/ui/other"), "api\n");
    // It was held, and wrote over what it had not read all the same: that is found.
    pair.conflict("lost_update", "observed");
}

#[test]
fn a_held_write_expires_with_its_turn_and_ends_with_the_holder() {
    let stage = Stage::new();
    let mut pair = pair(&stage, HOLD);
    assert_eq!(pair.ui.write("ui\n")["result"], json!({}));
    let held = pair.api.begin_write("api\n");
    pair.conflict("held", "pending");
    pair.port.call("cancel", &json!({ "agent_id": "api" })).unwrap();
    pair.conflict("held", "expired");
    assert_eq!(pair.api.puppet.answer(&held)["error"]["code"], -32800);
    let turn = pair.api.turn.clone();
    let cancelled = json!({ "stopReason": "cancelled" });
    pair.api.puppet.send(&json!({ "jsonrpc": "2.0", "id": turn, "result": cancelled }));
    pair.port.begin("api", "again");
    (pair.api.turn, _) = pair.api.puppet.prompted();
    let held = pair.api.begin_write("api\n");
    pair.conflict("held", "pending");
    pair.port.call("stop_agent", &json!({ "agent_id": "ui" })).unwrap();
    assert_eq!(pair.api.puppet.answer(&held)["result"], json!({}));
}

#[test]
fn the_last_writer_wins_and_is_reported() {
    let stage = Stage::new();
    let keys = "[conflicts]\nstrategy = \"lww\"\n[orchestrator]\nagent = \"ui\"\n";
    let mut pair = pair(&stage, keys);
    assert_eq!(pair.ui.write("ui 1\n")["result"], json!({}));
    assert_eq!(pair.api.write("api\n")["result"], json!({}));
    pair.conflict("lost_update", "allowed");
    let observed = pair.conflict("lost_update", "observed");
    assert_eq!((&observed["id"], &observed["agents"]), (&json!("c1"), &json!(["api", "ui"])));
    assert_eq!(pair.ui.run("echo ui 2 >src/ui/app.ts"), "");
    let observed = pair.conflict("lost_update", "observed");
    assert_eq!((&observed["id"], &observed["agents"]), (&json!("c2"), &json!(["ui", "api"])));
    assert_eq!(stage.read(&format!("shop/{FILE}")), "ui 2\n");
    assert_eq!(pair.listed(2).len(), 2);
    // The lead is told with its next prompt.
    pair.ui.end_turn();
    pair.port.begin("ui", "next");
    let (_, said) = pair.ui.puppet.prompted();
    assert!(said.contains("conflict c1: `api` wrote `src/ui/app.ts` over"), "{said}");
}

#[test]
fn writes_of_whole_files_are_merged_where_that_is_clean() {
    let stage = Stage::new();
    stage.file(&format!("shop/{FILE}"), "a\nb\nc\nd\n");
    let mut pair = pair(&stage, "[conflicts]\nstrategy = \"merge\"\n");
    assert_eq!(pair.ui.read(), "a\nb\nc\nd\n");
    assert_eq!(pair.api.read(), "a\nb\nc\nd\n");
    assert_eq!(pair.ui.write("A\nb\nc\nd\n")["result"], json!({}));
    assert_eq!(pair.api.write("a\nb\nc\nD\n")["result"], json!({}));
    assert_eq!(stage.read(&format!("shop/{FILE}")), "A\nb\nc\nD\n");
    assert_eq!(pair.conflict("merged", "allowed")["agents"], json!(["api", "ui"]));
    // Both change the same line: held, which is denied here. What a session sent is its base, and not what
    // that was merged with.
    let refused = pair.api.write("X\nb\nc\nD\n")["error"].clone();
    assert_eq!((&refused["code"], &refused["data"]["holder"]), (&json!(-32001), &json!("ui")));
    assert_eq!(pair.api.write("a\nb\nC\nD\n")["result"], json!({}));
    assert_eq!(stage.read(&format!("shop/{FILE}")), "A\nb\nC\nD\n");
    pair.conflict("merged", "allowed");
    let refused = pair.ui.write("Y\nb\nZ\nd\n")["error"].clone();
    assert_eq!(refused["code"], -32001, "{refused}");
    // What only the kernel sees is denied.
    let said = pair.ui.run("echo ui >src/ui/app.ts");
    assert!(said.contains("denied"), "{said}");
    assert_eq!(stage.read(&format!("shop/{FILE}")), "A\nb\nC\nD\n");
    let listed = pair.listed(4);
    assert_eq!(listed[1..3], ["c2 denied denied api ui", "c3 merged allowed api ui"]);
}

#[test]
fn a_write_that_meets_anothers_line_is_denied_until_it_is_read() {
    let stage = Stage::new();
    stage.file(&format!("shop/{FILE}"), "a\nb\nc\n");
    let mut pair = pair(&stage, "[conflicts]\nstrategy = \"merge\"\n");
    assert_eq!(pair.ui.read(), "a\nb\nc\n");
    assert_eq!(pair.api.read(), "a\nb\nc\n");
    assert_eq!(pair.ui.write("a\nui\nc\n")["result"], json!({}));
    pair.ui.end_turn();
    pair.port.expect(&json!({ "type": "turn", "agent_id": "ui" }));
    // Nobody has it locked any more, and the line is not the writer's to take back all the same.
    let refused = pair.api.write("a\napi\nc\n")["error"].clone();
    let said = refused["message"].as_str().unwrap();
    assert!(said.contains("`ui` changed the same lines") && said.contains("read it"), "{said}");
    assert_eq!(stage.read(&format!("shop/{FILE}")), "a\nui\nc\n");
    assert_eq!(pair.api.read(), "a\nui\nc\n");
    assert_eq!(pair.api.write("a\nui, api\nc\n")["result"], json!({}));
    assert_eq!(stage.read(&format!("shop/{FILE}")), "a\nui, api\nc\n");
    assert_eq!(pair.listed(1), ["c1 denied denied api ui"]);
}

#[test]
fn a_write_that_was_held_is_not_put_over_the_others_line() {
    let stage = Stage::new();
    stage.file(&format!("shop/{FILE}"), "a\nb\nc\n");
    let keys = "[conflicts]\nstrategy = \"merge\"\n[orchestrator]\non_block = \"hold\"\n";
    let mut pair = pair(&stage, keys);
    for player in [&mut pair.ui, &mut pair.api] {
        assert_eq!(player.read(), "a\nb\nc\n");
    }
    assert_eq!(pair.ui.write("a\nui\nc\n")["result"], json!({}));
    let held = pair.api.begin_write("a\napi\nc\n");
    pair.conflict("held", "pending");
    pair.ui.end_turn();
    let refused = pair.api.puppet.answer(&held)["error"].clone();
    assert!(refused["message"].as_str().unwrap().contains("read it again"), "{refused}");
    assert_eq!(stage.read(&format!("shop/{FILE}")), "a\nui\nc\n");
    // A person may let it pass, and what is lost by that is said.
    pair.port.expect(&json!({ "type": "turn", "agent_id": "ui" }));
    pair.port.begin("ui", "again");
    (pair.ui.turn, _) = pair.ui.puppet.prompted();
    assert_eq!(pair.ui.write("a\nui 2\nc\n")["result"], json!({}));
    let held = pair.api.begin_write("a\napi\nc\n");
    let id = pair.conflict("held", "pending")["id"].as_str().unwrap().to_owned();
    assert_eq!(stage.run(&["conflicts", "--allow", &id]).code, 0);
    assert_eq!(pair.api.puppet.answer(&held)["result"], json!({}));
    assert_eq!(stage.read(&format!("shop/{FILE}")), "a\napi\nc\n");
    pair.conflict("lost_update", "observed");
}

#[test]
fn a_person_decides_about_a_write_that_waits() {
    let stage = Stage::new();
    let mut pair = pair(&stage, "[conflicts]\nstrategy = \"person\"\n");
    assert_eq!(pair.ui.write("ui\n")["result"], json!({}));
    let held = pair.api.begin_write("api 1\n");
    let id = pair.conflict("held", "pending")["id"].as_str().unwrap().to_owned();
    // The diff of what waits, and the lock that it meets; a decision is for that alone.
    let shown = pair.port.call("show_conflict", &json!({ "id": id })).unwrap();
    assert_eq!((&shown["path"], &shown["lock"]["agent_id"]), (&json!(FILE), &json!("ui")));
    let diff = shown["diff"].as_str().unwrap();
    assert!(diff.contains("\n-ui\n+api 1\n"), "{diff}");
    assert_eq!(pair.ui.write("ui again\n")["result"], json!({}));
    let outdated = json!({ "id": id, "decision": "allow", "version": shown["version"] });
    assert_eq!(pair.port.call("resolve_conflict", &outdated).unwrap_err()["code"], 409);
    let terminal = pair.api.start("sh -c 'echo api 2 >src/ui/app.ts'");
    let other = pair.conflict("held", "pending")["id"].as_str().unwrap().to_owned();
    let denied = stage.run(&["conflicts", "--deny", &id, "--message", "Not now."]);
    assert_eq!(denied.code, 0, "{}", denied.stderr);
    let refused = pair.api.puppet.answer(&held)["error"].clone();
    assert!(refused["message"].as_str().unwrap().contains("Not now."), "{refused}");
    let allowed = stage.run(&["conflicts", "--allow", &other, "--json"]);
    assert_eq!(allowed.code, 0, "{}", allowed.stderr);
    assert_eq!(pair.api.ends(&terminal), 0);
    assert_eq!(stage.read(&format!("shop/{FILE}")), "api 2\n");
    let again = stage.run(&["conflicts", "--allow", &other]);
    assert!(again.code == 1 && again.stderr.contains("is allowed by a person"), "{}", again.stderr);
}
