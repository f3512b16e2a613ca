//! A plugin that dies in its child is replaced; one that does not return is killed there and reported here.

use serde_json::json;

use super::scene::{HOLD, failed, hostile, team};
use crate::harness::{Stage, Team};

#[test]
fn one_that_dies_is_replaced_and_nothing_goes_unread() {
    let stage = Stage::new();
    let marker = stage.path("marker");
    let flag = format!("-DMARKER=\"{}\"", marker.display());
    let team = team(&stage, &hostile(&stage, &[&flag]), "process", HOLD);
    let mut port = team.steer_when_ready(&["ui"]);
    for (line, signal) in [("segfault", "SIGSEGV"), ("abort", "SIGABRT")] {
        stage.file("marker", "");
        let prompt = port.begin("ui", &format!("say before;{line};say after;done"));
        failed(&team, signal);
        std::fs::remove_file(&marker).unwrap();
        assert_eq!(port.said(prompt), "beforeafter");
    }

    stage.file("marker", "");
    let prompt = port.begin("ui", "read src/ui/app.ts;may 7 write src/api/cart.rs");
    failed(&team, "its process died");
    assert_eq!(port.count(&json!({"type": "blocked"})), 0);
    std::fs::remove_file(&marker).unwrap();
    let blocked = port.blocked("pending");
    assert_eq!(blocked["path"], "src/api/cart.rs");
    port.resolve(&blocked, &json!({"decision": "deny"})).unwrap();
    assert_eq!(port.said(prompt), "no 7");
}

/// Nothing was lost with it but what it remembered.
#[test]
#[cfg(target_os = "linux")]
fn one_that_dies_between_two_calls_costs_neither() {
    let stage = Stage::new();
    let library = hostile(&stage, &[]);
    let team = team(&stage, &library, "process", HOLD);
    let mut port = team.steer_when_ready(&["ui"]);
    super::scene::kill_host(&library);
    assert_eq!(port.prompt("ui", "say hello;done"), "hello");
    let prompt = port.begin("ui", "may 7 write src/api/cart.rs");
    let blocked = port.blocked("pending");
    super::scene::kill_host(&library);
    port.resolve(&blocked, &json!({"decision": "deny"})).unwrap();
    assert_eq!(port.said(prompt), "no 7");
}

/// Takes as long as the deadline.
#[test]
fn one_that_never_returns_is_ended() {
    let stage = Stage::new();
    let marker = stage.path("marker");
    let flag = format!("-DMARKER=\"{}\"", marker.display());
    let team = team(&stage, &hostile(&stage, &[&flag]), "process", "");
    let mut port = team.steer_when_ready(&["ui"]);
    stage.file("marker", "");
    let prompt = port.begin("ui", "say before;loop;say after;done");
    failed(&team, "it said nothing for 10 s, and was ended");
    std::fs::remove_file(&marker).unwrap();
    assert_eq!(port.said(prompt), "beforeafter");
}

/// Takes as long as the deadline.
#[test]
fn one_that_never_returns_to_the_supervisor_is_reported() {
    let stage = Stage::new();
    let marker = stage.path("marker");
    let flag = format!("-DMARKER=\"{}\"", marker.display());
    let team = team(&stage, &hostile(&stage, &[&flag]), "in-process", "");
    let mut port = team.steer_when_ready(&["ui"]);
    stage.file("marker", "");
    let prompt = port.begin("ui", "say before;loop;say after;done");
    stands_still(&team, "observe");
    std::fs::remove_file(&marker).unwrap();
    assert_eq!(port.said(prompt), "beforeafter");
}

/// Each takes as long as the deadline.
#[test]
fn one_that_never_gets_made_is_reported() {
    never_returns("-DCREATE=loops()", "create");
}

#[test]
fn one_that_never_gets_destroyed_is_reported() {
    never_returns("-DDESTROYS=loops()", "destroy");
}

/// Restarts an agent whose plugin does not return then, until it may.
fn never_returns(flag: &str, call: &str) {
    let stage = Stage::new();
    let marker = stage.path("marker");
    let marks = format!("-DMARKER=\"{}\"", marker.display());
    let team = team(&stage, &hostile(&stage, &[&marks, flag]), "in-process", "");
    let mut port = team.steer_when_ready(&["ui"]);
    stage.file("marker", "");
    let restart = port.ask("restart_agent", &json!({"agent_id": "ui"}));
    stands_still(&team, call);
    std::fs::remove_file(&marker).unwrap();
    port.answer(restart).unwrap();
    port.agent_is("ui", "ready");
}

/// Reads the log until a call in the supervisor takes too long.
fn stands_still(team: &Team, call: &str) {
    let reported = "a plugin has not returned for 10 s, and the team may stand still";
    loop {
        let line = team.program.stderr.next().expect("the log ended");
        if line.contains(reported) {
            assert!(line.contains("isolation = \"process\""), "{line}");
            return assert!(line.contains(&format!("call=\"{call}\"")), "{line}");
        }
    }
}

#[test]
fn what_it_prints_last_is_reported() {
    let stage = Stage::new();
    let marker = stage.path("marker");
    let flag = format!("-DMARKER=\"{}\"", marker.display());
    let farewell = "-DDESTROYS=puts(\"its farewell\"),fflush(stdout)";
    let team = team(&stage, &hostile(&stage, &[&flag, farewell]), "process", "");
    let mut port = team.steer_when_ready(&["ui"]);
    stage.file("marker", "");
    let prompt = port.begin("ui", "say before;last words;say after;done");
    loop {
        let line = team.program.stderr.next().expect("the log ended");
        assert!(!line.contains("a plugin failed"), "{line}");
        if line.contains("its last words") {
            break;
        }
    }
    std::fs::remove_file(&marker).unwrap();
    assert_eq!(port.said(prompt), "beforeafter");
    let logged = team.stop().stderr;
    assert!(logged.contains("its farewell"), "{logged}");
}
