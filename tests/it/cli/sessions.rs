//! What journal, port and commands say of sessions whose agents cut texts in half, restart, repeat their
//! history, or end a cancelled turn as any other.

use serde_json::{Value, json};

use crate::harness::{Port, Stage, agent, eventually};

fn events(stage: &Stage, kind: &str) -> Vec<Value> {
    let listed = stage.run(&["history", "ui", "--team", "shop", "--type", kind, "--json"]);
    listed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What an undo of a turn would take back.
fn undone(stage: &Stage, turn: u64) -> String {
    let turn = turn.to_string();
    stage.run(&["undo", "ui", "--team", "shop", "--turn", &turn, "--dry-run"]).stdout
}

fn die(port: &mut Port) {
    let id = port.begin("ui", "die");
    port.answer(id).unwrap_err();
    port.agent_is("ui", "restarting");
    port.agent_is("ui", "ready");
}

#[test]
fn half_an_emoji_costs_no_more_than_itself() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let zone = "[agents.zone]\nallowed = [\"src/**\"]\nenforce = \"protocol\"";
    let team = stage.team("", vec![agent("ui").puppet().with(zone)]);
    ui.connect("s");
    let mut port = team.steer_when_ready(&["ui"]);
    let turn = port.begin("ui", "hi");
    let (prompt, _) = ui.prompted();
    let update = |update: &str| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s\",\"update\":{{{update}}}}}}}\n"
        )
    };
    let text = |text: &str| {
        update(&format!(
            r#""sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}"#
        ))
    };
    ui.send_raw(text(r"42 \ud83d").as_bytes());
    ui.send_raw(text(r"\ude00 it is").as_bytes());
    ui.send_raw(text("or 4").as_bytes());
    // Encoded by itself, as some runtimes write it.
    let encoded = text("@").into_bytes();
    let at = encoded.iter().position(|byte| *byte == b'@').unwrap();
    ui.send_raw(&[&encoded[..at], b"\xed\xa0\xbd", &encoded[at + 1..]].concat());
    ui.send_raw(
        update(r#""sessionUpdate":"tool_call","toolCallId":"t","title":"Run \ud83d","kind":"execute","status":"in_progress","rawInput":{"x":"\ud83d"}"#)
            .as_bytes(),
    );
    ui.send_raw(
        update(r#""sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","content":[{"type":"content","content":{"type":"text","text":"cut \ud83d"}}]"#)
            .as_bytes(),
    );
    let path = stage.in_shop("src/ui/app.ts");
    ui.send_raw(
        format!("{{\"jsonrpc\":\"2.0\",\"id\":\"w\\ud83d\",\"method\":\"fs/write_text_file\",\"params\":{{\"sessionId\":\"s\",\"path\":{path:?},\"content\":\"new \\ud83d\"}}}}\n")
            .as_bytes(),
    );
    // The id comes back as it was.
    let answer = ui.expect_raw(|line| line.contains(r#""id":"w\ud83d""#));
    assert!(answer.contains("\"result\""), "{answer}");
    ui.send_raw(
        r#"{"jsonrpc":"2.0","id":7.0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"p","title":"Half \udfff"},"options":[{"optionId":"y","name":"\ud83d","kind":"allow_once"}]}}"#
            .as_bytes(),
    );
    ui.send_raw(b"\n");
    let answer = ui.expect_raw(|line| line.contains(r#""id":7.0"#));
    assert!(answer.contains("\"result\""), "{answer}");
    let id = prompt.as_u64().unwrap();
    ui.send_raw(
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id}.0,\"result\":{{\"stopReason\":\"end_turn\"}}}}\n"
        )
        .as_bytes(),
    );
    assert_eq!(port.said(turn), "42 \u{fffd}\u{fffd} it isor 4\u{fffd}");
    assert_eq!(stage.read("shop/src/ui/app.ts"), "new \u{fffd}");
    drop(port);
    team.stop();
    let said: String = events(&stage, "message.assistant")
        .iter()
        .map(|event| event["payload"]["text"].as_str().unwrap())
        .collect();
    assert_eq!(said, "42 \u{fffd}\u{fffd} it isor 4\u{fffd}");
    let result = &events(&stage, "tool.result")[0]["payload"];
    assert_eq!(
        (&result["status"], &result["title"]),
        (&json!("completed"), &json!("Run \u{fffd}"))
    );
    assert_eq!(events(&stage, "tool.call")[0]["payload"]["input"], json!({"x": "\u{fffd}"}));
}

#[test]
fn a_turn_has_one_number_whatever_became_of_its_agent() {
    let stage = Stage::new();
    let restarts = || {
        let team = stage.team("", vec![agent("ui").loads("")]);
        let port = team.steer_when_ready(&["ui"]);
        (team, port)
    };
    let (team, mut port) = restarts();
    port.prompt("ui", "write zero.txt 0");
    port.prompt("ui", "write one.txt 1");
    die(&mut port);
    port.prompt("ui", "write three.txt 3");
    let ended = port.expect(&json!({"type": "turn", "turn": 3}));
    assert_eq!(ended["stop_reason"], "end_turn");
    port.prompt("ui", "write four.txt 4");
    for (turn, file) in [(0, "zero"), (1, "one"), (3, "three"), (4, "four")] {
        let shown = undone(&stage, turn);
        let others = ["zero", "one", "three", "four"].iter().filter(|other| **other != file);
        assert!(shown.contains(file), "{turn}: {shown}");
        assert!(others.clone().all(|other| !shown.contains(other)), "{turn}: {shown}");
    }
    drop(port);
    team.stop();
    let prompts: Vec<_> =
        events(&stage, "message.user").iter().map(|it| it["turn"].clone()).collect();
    assert_eq!(prompts, [0, 1, 2, 3, 4].map(Value::from));
}

#[test]
fn a_new_session_is_none_of_an_earlier_run_with_its_id() {
    let stage = Stage::new();
    for run in ["run1", "run2"] {
        let team = stage.team("", vec![agent("ui")]);
        let mut port = team.steer_when_ready(&["ui"]);
        port.prompt("ui", &format!("write {run} {run}"));
        drop(port);
        team.stop();
    }
    let started = events(&stage, "session.start");
    assert_eq!(started.len(), 2);
    assert_eq!(
        started[0]["payload"]["session"], started[1]["payload"]["session"],
        "ids are reused"
    );
    assert_ne!(started[0]["session_id"], started[1]["session_id"]);
    // The turn of the last run is meant.
    let shown = undone(&stage, 0);
    assert!(shown.contains("run2") && !shown.contains("run1"), "{shown}");
}

#[test]
fn a_session_that_is_loaded_costs_nothing_again() {
    let stage = Stage::new();
    let usage = |used: u64, cost: f64| {
        format!("{{ usage = {{ used = {used}, size = 200000, cost = {cost:?} }} }}")
    };
    let history = [usage(5_000, 0.25), usage(10_000, 0.5)].join(", ");
    let team = stage.team("", vec![agent("ui").loads(&history)]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "spend dollars");
    for _ in 0..2 {
        die(&mut port);
    }
    drop(port);
    team.stop();
    let spent = stage.run(&["cost", "--team", "shop", "--json"]);
    let spent: Value = serde_json::from_str(&spent.stdout).unwrap();
    assert_eq!(spent["total"]["cost"], json!([{"amount": 0.5, "currency": "USD"}]));
}

#[test]
fn a_cancelled_turn_is_cancelled_whatever_its_agent_answers() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let team = stage.team("", vec![agent("ui").puppet()]);
    ui.connect("s");
    let mut port = team.steer_when_ready(&["ui"]);
    let answers = [
        json!({"result": {"stopReason": "end_turn"}}),
        json!({"error": {"code": -32603, "message": "AbortError: The operation was aborted"}}),
        json!({"result": {"stopReason": "refusal"}}),
    ];
    for mut answer in answers {
        let turn = port.begin("ui", "slow");
        let (prompt, _) = ui.prompted();
        ui.say("s", "half of it");
        port.call("cancel", &json!({"agent_id": "ui"})).unwrap();
        ui.expect(&json!({"method": "session/cancel"}));
        (answer["jsonrpc"], answer["id"]) = (json!("2.0"), prompt);
        ui.send(&answer);
        let ended = port.answer(turn).unwrap();
        assert_eq!(
            (&ended["stop_reason"], &ended["text"]),
            (&json!("cancelled"), &json!("half of it"))
        );
        assert_eq!(port.expect(&json!({"type": "turn"}))["reason"], Value::Null);
    }
    // One that was answered before it could be cancelled is what it was.
    let turn = port.begin("ui", "fast");
    let (prompt, _) = ui.prompted();
    ui.end_turn(&prompt);
    assert_eq!(port.answer(turn).unwrap()["stop_reason"], "end_turn");
    port.call("cancel", &json!({"agent_id": "ui"})).unwrap();
    eventually("the end of the turns is kept", || {
        let ends = events(&stage, "turn");
        let ends: Vec<_> =
            ends.iter().map(|it| it["payload"]["stop_reason"].as_str().unwrap()).collect();
        ends == ["cancelled", "cancelled", "cancelled", "end_turn"]
    });
    drop(port);
    team.stop();
}
