//! `ps`, `start`, `stop`, `restart` and `cancel`.

use serde_json::{Value, json};

use super::{Running, assert_ended};
use crate::harness::{Stage, agent};

/// A table without what differs from run to run: pids, memory and CPU.
fn normal(table: &str) -> String {
    let line = |line: &str| {
        let words = line.split_whitespace().enumerate().map(|(at, word)| match at {
            2 if word.parse::<u32>().is_ok() => "PID",
            6 if word.parse::<f64>().is_ok() => "MEMORY",
            7 | 9 if word == "MiB" => "",
            8 if word.parse::<f64>().is_ok() => "PEAK",
            10 if word.ends_with('s') => "CPU",
            _ => word,
        });
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    table.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_table_reports_state_zone_and_use() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui"), agent("api").with("autostart = false")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "spend dollars");
    let ps = stage.run(&["ps"]);
    assert_eq!((ps.code, ps.stderr.as_str()), (0, ""));
    assert_eq!(
        normal(&ps.stdout),
        "AGENT STATE PID ZONE SESSIONS RESTARTS MEMORY PEAK CPU TOKENS SPENT COST TOOLS\n\
         ui ready PID kernel 1 0 MEMORY PEAK CPU 100/1.0k - 0.50 USD -\n\
         api stopped - kernel 0 0 - - - - - - -"
    );
    // Columns are aligned: each row's state begins where its heading does.
    let starts: Vec<_> = ps.stdout.lines().map(|line| &line[7..9]).collect();
    assert_eq!(starts, ["ST", "re", "st"], "{}", ps.stdout);

    let json = stage.run(&["ps", "--json"]);
    let agents: Value = serde_json::from_str(&json.stdout).unwrap();
    let ui = &agents[0];
    assert!(ui["memory_bytes"].as_u64().unwrap() > 100_000, "{ui}");
    assert!(ui["cpu_ms"].is_u64(), "{ui}");
    assert!(ui["peak_memory_bytes"].as_u64() >= ui["memory_bytes"].as_u64(), "{ui}");
    assert_eq!((&ui["name"], &ui["zone"]), (&json!("ui"), &json!("kernel")));
    // How full the context is says nothing of what was spent.
    let session = json!({
        "session_id": "ui-s1", "session_mode": "single_agent", "open": true, "default": true,
        "running": false, "queued": 0, "used": 100, "size": 1000,
        "cost": {"amount": 0.5, "currency": "USD"},
        "spent": {
            "input": null, "cached_read": null, "cached_write": null, "output": null,
            "reasoning": null, "total": null, "cost": [{"amount": 0.5, "currency": "USD"}],
            "estimated": [],
            "incomplete": ["input", "cached_read", "cached_write", "output", "reasoning", "total"],
        },
    });
    assert_eq!(ui["sessions"], json!([session]));
    assert_eq!(agents[1]["sessions"], json!([]));
    assert_eq!(agents[1]["memory_bytes"], Value::Null);
}

#[test]
fn watching_prints_at_each_change_and_ends_with_the_team() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    team.steer_when_ready(&["ui"]);
    let (watching, lines) = Running::read(&stage, &["ps", "--watch", "--json"]);
    let state_in = |line: &str| {
        let agents: Value = serde_json::from_str(line).unwrap();
        agents[0]["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state_in(&lines.next().unwrap()), "ready");
    assert_eq!(stage.run(&["stop", "ui"]).code, 0);
    while state_in(&lines.next().unwrap()) != "stopped" {}
    team.stop();
    lines.rest();
    let (code, stderr) = watching.end();
    assert_eq!(code, Some(1));
    assert!(stderr.starts_with("error: the team closed the connection"), "{stderr}");
}

#[test]
fn agents_are_ordered_about_and_say_how_they_stand() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui"), agent("api")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    assert_ended(&stage.run(&["stop", "ui"]), 0, "ui: stopped\n", "");
    port.agent_is("ui", "stopped");
    let started = stage.run(&["start", "--all"]);
    assert_eq!(started.code, 0, "{started:?}");
    let lines: Vec<_> = started.stdout.lines().collect();
    assert!(lines[0].starts_with("ui: "), "{lines:?}");
    assert!(lines[1].starts_with("api: ready (pid "), "{lines:?}");
    port.agent_is("ui", "ready");
    let stopped = stage.run(&["stop", "api", "nobody", "ui", "api"]);
    assert_ended(
        &stopped,
        1,
        "api: stopped\nui: stopped\n",
        "error: there is no agent `nobody`; there are: ui, api\n",
    );
    let json = stage.run(&["restart", "ui", "--json"]);
    let status: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(status["agent_id"], "ui");
    port.agent_is("ui", "ready");
    for wrong in [&["stop"][..], &["stop", "--all", "ui"]] {
        assert_eq!(stage.run(wrong).code, 2);
    }
}

#[test]
fn cancel_says_what_it_met() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let nothing = "ui: there was nothing to cancel\n";
    assert_ended(&stage.run(&["cancel", "ui"]), 0, nothing, "");
    let running = port.begin_waiting("ui");
    let queued = [port.begin("ui", "a"), port.begin("ui", "b")];
    // Answered after those before it were queued.
    port.call("list_agents", &json!({})).unwrap();
    let cancelled = "ui: 1 turn was asked to end, 2 queued prompts were withdrawn\n";
    assert_ended(&stage.run(&["cancel", "ui"]), 0, cancelled, "");
    assert_eq!(port.answer(running).unwrap()["stop_reason"], "cancelled");
    for prompt in queued {
        assert_eq!(port.answer(prompt).unwrap_err()["code"], 409);
    }
    let unknown = stage.run(&["cancel", "ui", "--session", "x"]);
    assert_ended(&unknown, 1, "", "error: there is no session `x` (code 404)\n");
}
