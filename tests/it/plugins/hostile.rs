//! A plugin's mistakes are reported, end nothing else, and open no zone.

use serde_json::{Value, json};

use super::scene::{HOLD, failed, hostile, team};
use crate::harness::{Port, Stage};

const NEVER: &str = "[agents.restart]\npolicy = \"never\"";
const BOTH: [&str; 2] = ["in-process", "process"];

/// Waits until the agent has this to say for itself.
fn reason(port: &mut Port, state: &str, why: &str) {
    port.expect_that(why, |line| {
        line["type"] == "agent"
            && line["state"] == state
            && line["reason"].as_str().is_some_and(|reason| reason.contains(why))
    });
}

#[test]
fn what_goes_wrong_with_one_line_is_reported_and_the_next_is_read() {
    for isolation in BOTH {
        let stage = Stage::new();
        let team = team(&stage, &hostile(&stage, &[]), isolation, "");
        let mut port = team.steer_when_ready(&["ui"]);
        for (line, why) in [
            ("fail", "it does not like that"),
            ("mute", "it failed (7), and says nothing of why"),
            ("null", "it put bytes that are nowhere (null)"),
            ("huge", "it put more than 16 MiB for one line"),
        ] {
            assert_eq!(port.prompt("ui", &format!("{line};say after;done")), "after", "{line}");
            failed(&team, why);
        }
    }
}

#[test]
fn what_it_prints_is_no_answer() {
    for isolation in BOTH {
        let stage = Stage::new();
        let team = team(&stage, &hostile(&stage, &[]), isolation, "");
        let mut port = team.steer_when_ready(&["ui"]);
        assert_eq!(port.prompt("ui", "say before;print;say after;done"), "beforeafter");
        let ended = team.stop();
        let (printed, logged) = (ended.stdout, ended.stderr);
        let (is_in, said) = match isolation {
            "process" => (logged, "plugin=\"words\" said=what nobody asked for"),
            _ => (printed, "what nobody asked for"),
        };
        assert!(is_in.contains(said), "{isolation}: {is_in}");
        assert!(!is_in.contains("a plugin failed"), "{is_in}");
    }
}

#[test]
fn records_that_are_none_cost_what_is_reported_with_them() {
    for isolation in BOTH {
        let stage = Stage::new();
        let team = team(&stage, &hostile(&stage, &[]), isolation, "");
        let mut port = team.steer_when_ready(&["ui"]);
        for (line, why) in [("latin", "a text in a record is not UTF-8"), ("torn", "a record ends")]
        {
            assert_eq!(port.prompt("ui", &format!("{line};say after;done")), "after", "{line}");
            failed(&team, why);
        }
    }
}

#[test]
fn errors_in_a_row_degrade_it_and_then_end_its_agent() {
    for isolation in BOTH {
        let stage = Stage::new();
        let team = team(&stage, &hostile(&stage, &[]), isolation, NEVER);
        let mut port = team.steer_when_ready(&["ui"]);
        let fails = |times: usize| "fail;".repeat(times);
        let prompt = port.begin("ui", &fails(5));
        let degraded = "its plugin words is degraded (it failed 5 times in a row, and 10 disable \
                        it): it does not like that";
        reason(&mut port, "ready", degraded);
        let ps = stage.run(&["ps"]);
        assert!(ps.stdout.contains(degraded), "{}", ps.stdout);
        // What goes well ends the row: the end of the turn is read.
        port.call("cancel", &json!({"agent_id": "ui"})).unwrap();
        assert_eq!(port.answer(prompt).unwrap()["stop_reason"], "cancelled");
        port.expect_that("the agent without a concern", |line| {
            line["type"] == "agent" && line["state"] == "ready" && line["reason"] == Value::Null
        });
        let prompt = port.begin("ui", &fails(10));
        reason(
            &mut port,
            "error",
            "its plugin words failed 10 times in a row: it does not like that (`eisen-core agent start` tries \
             again)",
        );
        port.answer(prompt).unwrap_err();
    }
}

#[test]
fn a_plugin_that_makes_no_instance_any_more_starts_no_agent() {
    for isolation in BOTH {
        let stage = Stage::new();
        let flag = format!("-DMARKER=\"{}\"", stage.path("marker").display());
        let library = hostile(&stage, &["-DCREATE=0", &flag]);
        let team = team(&stage, &library, isolation, NEVER);
        let mut port = team.steer_when_ready(&["ui"]);
        stage.file("marker", "");
        port.ask("restart_agent", &json!({"agent_id": "ui"}));
        reason(&mut port, "error", "it does not like that");
    }
}

/// Each of these lines puts nearly as much as a call may, and all of them are read at once.
#[test]
fn lines_that_put_much_cost_no_more_memory_than_one() {
    for isolation in BOTH {
        let stage = Stage::new();
        let team = team(&stage, &hostile(&stage, &[]), isolation, "");
        let mut port = team.steer_when_ready(&["ui"]);
        assert_eq!(port.prompt("ui", &format!("{}say after;done", "much;".repeat(40))), "after");
        let status = format!("/proc/{}/status", team.program.id());
        let status = std::fs::read_to_string(status).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kilobytes < 500_000, "{isolation}: {kilobytes} kB");
    }
}

#[test]
fn what_is_withdrawn_expires_and_is_not_answered() {
    for isolation in BOTH {
        let stage = Stage::new();
        let team = team(&stage, &hostile(&stage, &[]), isolation, HOLD);
        let mut port = team.steer_when_ready(&["ui"]);
        let prompt = port.begin("ui", "may 7 write src/api/cart.rs;forget 7;say after;done");
        let blocked = port.blocked("pending");
        port.expect(&json!({"type": "blocked", "id": blocked["id"], "status": "expired"}));
        assert_eq!(port.said(prompt), "after", "{isolation}");

        let prompt = port.begin("ui", "may 7 write src/api/cart.rs;may 8 write src/api/cart.rs");
        let (first, second) = (port.blocked("pending"), port.blocked("pending"));
        port.call("cancel", &json!({"agent_id": "ui"})).unwrap();
        port.answer(prompt).unwrap();
        for blocked in [first, second] {
            port.expect(&json!({"type": "blocked", "id": blocked["id"], "status": "expired"}));
        }
    }
}

/// An agent that waits for an answer that its plugin can't give would wait for good.
#[test]
fn one_that_can_answer_nothing_ends_its_agent() {
    for isolation in BOTH {
        let stage = Stage::new();
        let team = team(&stage, &hostile(&stage, &["-DSPEECHLESS"]), isolation, NEVER);
        let mut port = team.steer_when_ready(&["ui"]);
        for file in ["src/ui/app.ts", "src/api/cart.rs"] {
            let prompt = port.begin("ui", &format!("may 1 write {file}"));
            let why = "its plugin words can't answer what it asked: it does not like that";
            reason(&mut port, "error", why);
            port.answer(prompt).unwrap_err();
            port.call("start_agent", &json!({"agent_id": "ui"})).unwrap();
            port.agent_is("ui", "ready");
        }
    }
}

#[test]
fn one_that_answers_with_nothing_ends_its_agent() {
    for isolation in BOTH {
        let stage = Stage::new();
        let team = team(&stage, &hostile(&stage, &["-DMUTE"]), isolation, NEVER);
        let mut port = team.steer_when_ready(&["ui"]);
        let prompt = port.begin("ui", "may 1 write src/ui/app.ts");
        let why = "its plugin words can't answer what it asked: it puts no line for that";
        reason(&mut port, "error", why);
        port.answer(prompt).unwrap_err();
    }
}

/// The answer to what is inside must not be taken for that to what is not.
#[test]
fn what_is_asked_twice_under_one_id_is_refused() {
    for isolation in BOTH {
        let stage = Stage::new();
        let team = team(&stage, &hostile(&stage, &[]), isolation, HOLD);
        let mut port = team.steer_when_ready(&["ui"]);
        let asks = "may 7 write src/api/cart.rs;may 7 write src/ui/app.ts";
        let prompt = port.begin("ui", asks);
        let blocked = port.blocked("pending");
        port.expect(&json!({"type": "blocked", "id": blocked["id"], "status": "expired"}));
        failed(&team, "it asks under the id `7` for two things at once");
        assert_eq!(port.said(prompt), "no 7", "{isolation}");
    }
}

/// Some of that the kernel can only keep from it where it is new enough.
#[test]
#[cfg(target_os = "linux")]
fn in_a_process_of_its_own_it_reaches_nothing_but_libraries() {
    let stage = Stage::new();
    stage.file("secret", "none of its business");
    let team = team(&stage, &hostile(&stage, &[]), "process", "");
    let mut port = team.steer_when_ready(&["ui"]);
    let (secret, made) = (stage.path("secret"), stage.path("made"));
    for reach in [
        format!("open {}", secret.display()),
        format!("open {}", stage.path("home").display()),
        format!("open {}", stage.path("shop/src/ui/app.ts").display()),
        "open /etc/passwd".to_owned(),
        "open /proc/self/../1/environ".to_owned(),
        format!("make {}", made.display()),
        "make /dev/shm/eisen-made".to_owned(),
        "env EISEN_DIR".to_owned(),
        "env HOME".to_owned(),
        format!("connect {}", team.program.port),
    ] {
        assert_eq!(port.prompt("ui", &format!("reach {reach};done")), "refused", "{reach}");
    }
    assert!(!made.exists());
    // Nor does it start anything.
    assert_eq!(port.prompt("ui", "fork;done"), "-1");
}

#[test]
fn paths_outside_are_reported_as_any_agents() {
    for isolation in BOTH {
        let stage = Stage::new();
        stage.file("outside.txt", "outside\n");
        let team = team(&stage, &hostile(&stage, &[]), isolation, "");
        let mut port = team.steer_when_ready(&["ui"]);
        let outside = stage.path("outside.txt").display().to_string();
        for (reported, seen) in [
            ("../outside.txt", outside.as_str()),
            ("/etc/hostname", "/etc/hostname"),
            ("src/ui/../api/cart.rs", "src/api/cart.rs"),
        ] {
            port.prompt("ui", &format!("wrote {reported};done"));
            let blocked = port.blocked("observed");
            let found = (&blocked["path"], &blocked["via"], &blocked["action"]);
            assert_eq!(found, (&json!(seen), &json!("tool"), &json!("write")), "{isolation}");
        }
    }
}

#[test]
fn a_path_outside_can_end_the_turn() {
    let stage = Stage::new();
    let keys = "on_violation = \"cancel\"";
    let team = team(&stage, &hostile(&stage, &[]), "process", keys);
    let mut port = team.steer_when_ready(&["ui"]);
    let prompt = port.begin("ui", "read src/api/cart.rs");
    assert_eq!(port.blocked("observed")["path"], "src/api/cart.rs");
    assert_eq!(port.answer(prompt).unwrap()["stop_reason"], "cancelled");
}
