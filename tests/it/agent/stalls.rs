//! Agents that stall in a turn, or whose turns fail.

use serde_json::{Value, json};

use crate::harness::{Port, Puppet, Stage, Team, agent};

/// A team whose agent `ui` is played by the test; its session is `own`.
fn team(stage: &Stage, keys: &str) -> (Team, Puppet, Port) {
    let mut ui = stage.puppet("ui");
    let team = stage.team("", vec![agent("ui").puppet().with(keys)]);
    ui.connect("own");
    let port = team.steer_when_ready(&["ui"]);
    (team, ui, port)
}

fn is_ready_because(port: &mut Port, reason: Option<&str>) -> Value {
    port.expect_that(&format!("ready because {reason:?}"), |line| {
        line["type"] == "agent"
            && line["state"] == "ready"
            && match reason {
                Some(reason) => line["reason"].as_str().is_some_and(|it| it.contains(reason)),
                None => line["reason"].is_null(),
            }
    })
}

#[test]
fn a_silent_turn_is_reported_once_and_until_it_goes_on() {
    let stage = Stage::new();
    let (team, mut ui, mut port) = team(&stage, "stall_after_s = 1");
    let turn = port.begin("ui", "think");
    let (prompt, _) = ui.prompted();
    is_ready_because(&mut port, Some("stalled: a turn runs, and for 1 s it said nothing"));
    let shown = stage.run(&["ps"]);
    assert!(shown.stdout.contains("stalled: a turn runs"), "{}", shown.stdout);
    ui.say("own", "here");
    is_ready_because(&mut port, None);
    ui.end_turn(&prompt);
    assert_eq!(port.said(turn), "here");
    let ended = team.stop();
    assert_eq!(ended.stderr.matches("stalled: a turn runs").count(), 1, "{}", ended.stderr);
}

#[test]
fn a_turn_that_failed_is_reported_with_what_mends_it_until_one_goes_well() {
    let stage = Stage::new();
    let (team, mut ui, mut port) = team(&stage, "");
    let turn = port.begin("ui", "work");
    let (prompt, _) = ui.prompted();
    let details = "Rate limit reached on tokens per min (TPM). Please try again in 20s.";
    let error = json!({"code": -32603, "message": "Internal error", "data": {"details": details}});
    ui.send(&json!({"jsonrpc": "2.0", "id": prompt, "error": error}));
    let named = "rate limited (transient, try again in 20 s): Internal error: Rate limit reached";
    let ended = port.expect(&json!({"type": "turn", "stop_reason": "error"}));
    assert!(ended["reason"].as_str().unwrap().starts_with(named), "{ended}");
    is_ready_because(&mut port, Some(named));
    assert_eq!(port.answer(turn).unwrap_err()["code"], 500);
    let shown = stage.run(&["ps"]);
    assert!(shown.stdout.contains("rate limited (transient, try again in 20 s)"), "{shown:?}");
    let turn = port.begin("ui", "work again");
    let (prompt, _) = ui.prompted();
    ui.end_turn(&prompt);
    port.said(turn);
    is_ready_because(&mut port, None);
    assert!(team.stop().stderr.contains("rate limited (transient, try again in 20 s)"));
}
