//! `watch`: what agents say and do, as it comes.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Running, assert_ended};
use crate::harness::{Stage, agent};

/// Waits until the lines of a command have shown all of these, in any order. A slow call ends in its time.
fn wait_for(lines: &crate::harness::Lines, wanted: &[&str]) {
    let mut missing = wanted.to_vec();
    while !missing.is_empty() {
        let Some(line) = lines.next() else { panic!("never shown: {missing:?}") };
        println!("{line}");
        missing.retain(|wanted| !line.starts_with(wanted));
    }
}

#[test]
fn what_agents_say_and_do_is_shown_as_lines() {
    let stage = Stage::new();
    let agents = vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")];
    let team = stage.team("[orchestrator]\non_block = \"hold\"", agents);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let (all, lines) = Running::read(&stage, &["watch"]);
    let (api, api_lines) = Running::read(&stage, &["watch", "api"]);
    let (json, json_lines) = Running::read(&stage, &["watch", "--json", "ui"]);
    wait_for(&lines, &["ui  | ready", "api | ready"]);
    assert_eq!(api_lines.next().unwrap(), "api | ready");

    let prompt = port.begin("ui", "read src/api/cart.rs");
    let pending = lines.next().unwrap();
    let decides = "b1: pending: read src/api/cart.rs by ui (via fs, owned by api): ";
    assert!(pending.starts_with(&format!("ui  | {decides}")), "{pending}");
    assert!(pending.ends_with("eisen-core inbox allow|deny b1"), "{pending}");
    assert_eq!(stage.run(&["resolve", "b1", "allow"]).code, 0);
    port.said(prompt);
    wait_for(
        &lines,
        &[
            "ui  | b1: allowed: read src/api/cart.rs by ui (via fs, owned by api)",
            "ui  | > Read src/api/cart.rs: done",
            "ui  | got api",
            "ui  | first turn ended: end_turn",
        ],
    );
    // A program that reads JSON sees nothing before the next event: prompt until it does.
    let begun = Instant::now();
    let mut last = loop {
        if let Some(line) = json_lines.try_next() {
            break line;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "no line of JSON");
        let prompt = port.begin("ui", "hello");
        port.said(prompt);
    };
    loop {
        let line: Value = serde_json::from_str(&last).unwrap();
        assert_eq!(line["agent_id"], "ui", "{line}");
        if line["type"] == "turn" {
            break;
        }
        last = json_lines.next().unwrap();
    }
    // What an agent says does not steer what shows it.
    let prompt = port.begin("api", "one\n\u{1b}[31mtwo\u{202e}");
    port.said(prompt);
    assert_eq!(api_lines.next().unwrap(), "api | one");
    assert_eq!(api_lines.next().unwrap(), "api | two\\u{202e}");
    assert_eq!(api_lines.next().unwrap(), "api | first turn ended: end_turn");

    team.stop();
    for command in [all, api, json] {
        assert_eq!(command.end(), (Some(0), "the team `shop` has ended".to_owned()));
    }
}

#[test]
fn it_ends_well_by_ctrl_c_and_badly_where_there_is_nothing_to_watch() {
    let stage = Stage::new();
    let none = stage.run(&["watch"]);
    assert_eq!((none.code, none.stdout.as_str()), (1, ""));
    assert!(none.stderr.contains("no team is running"), "{none:?}");

    let team = stage.team("", vec![agent("ui")]);
    team.steer_when_ready(&["ui"]);
    let unknown = stage.run(&["watch", "ui", "you"]);
    assert_ended(&unknown, 1, "", "error: there is no agent `you`; there are ui\n");
    let (watch, lines) = Running::read(&stage, &["watch"]);
    assert_eq!(lines.next().unwrap(), "ui | ready");
    watch.interrupt();
    assert_eq!(watch.end(), (Some(0), String::new()));
    team.stop();
}

#[test]
fn what_goes_on_ends_well_with_its_reader() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    team.steer_when_ready(&["ui"]);
    let follow = ["watch", "blocked -f", "logs -f", "ps --watch", "watch --json"];
    for command in follow {
        let args: Vec<_> = command.split(' ').collect();
        let (running, output) = Running::start(&stage, &args);
        drop(output);
        let (code, _) = running.end();
        assert_eq!(code, Some(0), "{command}");
    }
    team.stop();
}
