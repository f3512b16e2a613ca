//! Agents that do the same over and over.

use serde_json::json;

use crate::harness::{Port, Stage, Team, agent};

fn team(stage: &Stage, on_loop: &str) -> (Team, Port) {
    let team = stage.team("", vec![agent("ui").with(on_loop)]);
    let port = team.steer_when_ready(&["ui"]);
    (team, port)
}

#[test]
fn a_loop_is_noted_and_then_reported() {
    let stage = Stage::new();
    let (team, mut port) = team(&stage, "");
    let turn = port.begin("ui", "spin");
    let calls = json!(["Read src/ui/app.ts"]);
    for (times, action) in [(3, json!(null)), (5, json!("report"))] {
        port.expect(&json!({
            "type": "loop", "agent_id": "ui", "kind": "call", "times": times, "calls": calls,
            "action": action,
        }));
    }
    // It goes on.
    port.call("cancel", &json!({"agent_id": "ui"})).unwrap();
    let ended = port.answer(turn).unwrap();
    assert_eq!(ended["stop_reason"], "cancelled");
    assert!(ended.get("reason").is_none(), "{ended}");
    drop(port);
    team.stop();
    let events = stage.run(&["history", "--type", "loop", "--json"]).stdout;
    assert_eq!(events.lines().count(), 2, "{events}");
}

#[test]
fn a_turn_is_cancelled_for_it_and_says_so() {
    let stage = Stage::new();
    let (_team, mut port) = team(&stage, "on_loop = \"cancel\"");
    let ended = port.call("prompt", &json!({"agent_id": "ui", "text": "spin"})).unwrap();
    assert_eq!(ended["stop_reason"], "cancelled");
    let reason = ended["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("it goes in a loop: the same tool call with the same result, 5 times"),
        "{reason}"
    );
    // It is not held against the next turn.
    assert_eq!(port.prompt("ui", "hello"), "hello");
}

#[test]
fn the_next_prompt_says_what_repeats() {
    let stage = Stage::new();
    let (_team, mut port) = team(&stage, "on_loop = \"nudge\"");
    port.prompt("ui", "turn six times");
    let heard = port.prompt("ui", "hello");
    assert!(heard.contains("You went in a loop in your last turn: the same tool call"), "{heard}");
    assert_eq!(port.prompt("ui", "hello"), "hello", "once");
    // A person who looks back finds the prompt by the words that were typed.
    let prompts = port.call("list_events", &json!({ "types": ["message.user"] })).unwrap();
    let text = prompts["events"][1]["payload"]["text"].as_str().unwrap();
    assert!(text.starts_with("hello\nYou went in a loop"), "{text}");
}

#[test]
fn an_agent_is_stopped_for_it() {
    let stage = Stage::new();
    let (_team, mut port) = team(&stage, "on_loop = \"stop\"");
    let turn = port.begin("ui", "spin");
    let stopped = port.agent_is("ui", "error");
    let reason = stopped["reason"].as_str().unwrap();
    assert!(reason.starts_with("stopped, since it goes in a loop: the same tool call"), "{reason}");
    assert!(port.answer(turn).is_err());
}

#[test]
fn a_poll_is_no_loop_and_nor_is_anything_where_they_are_not_looked_for() {
    let stage = Stage::new();
    let (_team, mut port) = team(&stage, "");
    port.prompt("ui", "poll");
    assert_eq!(port.count(&json!({"type": "loop"})), 0);
    let stage = Stage::new();
    let (_team, mut port) = self::team(&stage, "on_loop = \"off\"");
    port.prompt("ui", "turn six times");
    assert_eq!(port.count(&json!({"type": "loop"})), 0);
}
