//! `logs`: of teams that run and teams that have ended.

use serde_json::{Value, json};

use super::{Running, assert_ended};
use crate::harness::{Stage, agent};

#[test]
fn logs_are_shown_and_followed_over_restarts() {
    let stage = Stage::new();
    let ui = agent("ui").start("{ stderr = \"ui begins\" }");
    let db = agent("db").start("{ stderr = \"db begins\" }");
    let team = stage.team("", vec![ui, db]);
    team.steer_when_ready(&["ui", "db"]);
    let (following, lines) = Running::read(&stage, &["logs", "-f", "-n", "1", "--raw"]);
    let mut begun = vec![lines.next().unwrap(), lines.next().unwrap()];
    begun.sort();
    assert_eq!(begun, ["db | db begins", "ui | ui begins"]);
    assert_eq!(stage.run(&["restart", "ui"]).code, 0);
    assert_eq!(lines.next().unwrap(), "ui | ui begins");
    // A rotation is no end.
    std::fs::rename(stage.path("home/logs/shop/ui.log"), stage.path("home/logs/shop/ui.log.1"))
        .unwrap();
    stage.file("home/logs/shop/ui.log", "anew\n");
    assert_eq!(lines.next().unwrap(), "ui | anew");
    // So is not that of an agent that had no log before.
    stage.file("home/logs/shop/late.log", "hello\n");
    assert_eq!(lines.next().unwrap(), "late | hello");
    following.interrupt();
    following.end();

    team.stop();
    assert_ended(&stage.run(&["logs", "ui", "--raw"]), 0, "ui begins\nui begins\nanew\n", "");
    assert_ended(&stage.run(&["logs", "-n", "2", "ui", "--raw"]), 0, "ui begins\nanew\n", "");
    let two = stage.run(&["logs", "--team", "shop", "ui", "late", "-n1"]);
    assert_ended(&two, 0, "ui   | anew\nlate | hello\n", "");
    let nobody = stage.run(&["logs", "nobody"]);
    assert_eq!((nobody.code, nobody.stdout.as_str()), (1, ""));
    assert!(nobody.stderr.contains("there are db, late, ui"), "{nobody:?}");
}

#[test]
fn before_each_line_stand_its_time_and_its_run() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").start("{ stderr = \"[ui] begins\" }")]);
    let mut port = team.steer();
    let first = port.agent_is("ui", "ready")["pid"].as_u64().unwrap();
    assert_eq!(stage.run(&["restart", "ui"]).code, 0);
    let pid = |line: &Value| line["pid"].as_u64().filter(|pid| *pid != first);
    let second =
        pid(&port
            .expect_that("a second run", |line| line["state"] == "ready" && pid(line).is_some()));
    team.stop();
    let runs = [first, second.unwrap()];
    let logs = stage.run(&["logs", "ui"]).stdout;
    for (line, run) in logs.lines().zip(runs) {
        let (stamp, text) = line.split_once(" | ").unwrap();
        let (time, process) = stamp.split_once(' ').unwrap();
        assert_eq!((text, process), ("[ui] begins", run.to_string().as_str()), "{logs}");
        assert!(time.len() == 20 && time.starts_with("20") && time.ends_with('Z'), "{logs}");
    }
    let all = stage.run(&["logs"]).stdout;
    assert!(all.lines().all(|line| line.starts_with("ui 20")), "{all}");
    let json = stage.run(&["logs", "--json"]).stdout;
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (line, run) in lines.iter().zip(runs) {
        assert_eq!(line["line"], "[ui] begins");
        assert_eq!((&line["agent"], &line["run"]), (&json!("ui"), &json!(run)));
        assert!(logs.contains(line["time"].as_str().unwrap()));
    }
    assert_eq!((logs.lines().count(), lines.len()), (2, 2));
}

#[test]
fn of_the_logs_of_several_teams_one_is_named() {
    let stage = Stage::new();
    let none = stage.run(&["logs"]);
    assert_eq!(none.code, 1);
    assert!(none.stderr.starts_with("error: there are no logs in "), "{none:?}");
    stage.file("home/logs/shop/ui.log", "of shop\n");
    assert_ended(&stage.run(&["logs"]), 0, "ui | of shop\n", "");
    stage.file("home/logs/bank/ui.log", "of bank\n");
    let several = stage.run(&["logs"]);
    assert_eq!(several.code, 1);
    assert!(several.stderr.ends_with("--team: bank, shop\n"), "{several:?}");
    assert_ended(&stage.run(&["logs", "ui", "--team", "bank"]), 0, "of bank\n", "");
    let gym = stage.run(&["logs", "--team", "gym"]);
    assert!(gym.stderr.contains("`gym` has no logs") && gym.stderr.contains("bank, shop"));
}

#[test]
fn a_team_that_has_written_nothing_yet_is_waited_for() {
    let stage = Stage::new();
    let team = stage
        .team("", vec![agent("ui").with("autostart = false").start("{ stderr = \"at last\" }")]);
    let nothing = "no agent of the team `shop` has a log yet\n";
    assert_ended(&stage.run(&["logs"]), 0, "", nothing);
    let (following, lines) = Running::read(&stage, &["logs", "-f"]);
    assert_eq!(following.stderr.next().unwrap(), nothing.trim_end());
    team.steer().call("start_agent", &serde_json::json!({"agent_id": "ui"})).unwrap();
    let line = lines.next().unwrap();
    assert!(line.starts_with("ui 20") && line.ends_with(" | at last"), "{line}");
}
