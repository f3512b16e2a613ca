//! `pin`, `purge` and `gc`: what a team's journal keeps, loses, and what goes with a team.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{Ended, Stage, agent, eventually};

/// A team that wrote and said something, and is gone.
fn gone(stage: &Stage) {
    let team = stage.team("", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "write src/ui/new.ts qzxhunter");
    drop(port);
    team.stop();
}

fn sessions(stage: &Stage) -> Vec<Value> {
    let export = stage.run(&["export", "--team", "shop"]).stdout;
    let lines = export.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line.get("session").is_some()).collect()
}

#[track_caller]
fn assert_listed(ended: &Ended, all: &[&str]) {
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.stdout.lines().count(), all.len(), "{}", ended.stdout);
    for (line, what) in ended.stdout.lines().zip(all) {
        assert!(line.contains(what), "{line}");
    }
}

#[test]
fn gc_lists_what_is_nobodys_and_then_removes_it() {
    let stage = Stage::new();
    gone(&stage);
    stage.file("home/logs/shop.console", "said\n");
    assert_listed(&stage.run(&["gc"]), &[]);
    fs::rename(stage.path("shop"), stage.path("moved")).unwrap();
    let reason = "its workspace";
    let listed = stage.run(&["gc", "--dry-run"]);
    let all = ["journal of the team `shop`", "logs of the team `shop`", "1 sessions in"];
    assert_listed(&listed, &all);
    assert!(listed.stdout.lines().take(2).all(|line| line.contains(reason)), "{}", listed.stdout);
    assert!(listed.stderr.contains("would be removed"), "{}", listed.stderr);
    assert!(stage.has("home/teams/shop/journal.db") && stage.has("home/logs/shop.console"));

    let json = |args: &[&str]| {
        let ended = stage.run(&[&["journal", "gc", "--json"], args].concat());
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
        serde_json::from_str::<Value>(&ended.stdout).unwrap()
    };
    let dry = json(&["--dry-run"]);
    let garbage = dry["garbage"].as_array().unwrap();
    assert!(garbage.iter().zip(all).all(|(it, what)| it["what"].as_str().unwrap().contains(what)));
    let sum: u64 = garbage.iter().map(|it| it["bytes"].as_u64().unwrap()).sum();
    assert_eq!((garbage.len(), &dry["bytes"], &dry["removed"]), (3, &json!(sum), &json!(false)));

    // What is pinned stays; and so does all of a team that runs.
    assert_eq!(stage.run(&["pin", "ui/ui-s1", "--team", "shop"]).code, 0);
    assert_listed(&stage.run(&["gc", "--dry-run"]), &all[1..]);
    assert_eq!(stage.run(&["pin", "ui/ui-s1", "--remove", "--team", "shop"]).code, 0);
    fs::rename(stage.path("moved"), stage.path("shop")).unwrap();
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    // Answered once the journal has the session, which it may not have at once.
    port.call("list_events", &json!({ "types": ["session.start"] })).unwrap();
    drop(port);
    fs::rename(stage.path("shop"), stage.path("moved")).unwrap();
    // Its session has the same name as the earlier one.
    assert_listed(&stage.run(&["gc", "--max-age-days", "0", "--dry-run"]), &[]);
    team.stop();

    let removed = json(&[]);
    assert_eq!(
        (removed["garbage"].as_array().unwrap().len(), &removed["removed"]),
        (3, &json!(true))
    );
    assert_eq!(json(&[]), json!({ "garbage": [], "bytes": 0, "removed": true }));
    assert!(!stage.has("home/teams/shop") && !stage.has("home/logs/shop.console"));
    assert!(stage.has("moved/src/ui/new.ts"));
    assert!(!stage.read("home/core_sessions.json").contains("ui-s1"));
    assert_listed(&stage.run(&["gc"]), &[]);
}

#[test]
fn gc_removes_by_age_and_by_the_quotas_of_a_team_that_is_gone() {
    let stage = Stage::new();
    gone(&stage);
    assert_listed(&stage.run(&["gc", "--max-age-days", "1"]), &[]);
    assert_eq!(sessions(&stage).len(), 1);
    // The same sessions, long ago.
    let database = rusqlite::Connection::open(stage.path("home/teams/shop/journal.db")).unwrap();
    database.execute("UPDATE sessions SET updated = 1000, wire_session_id = 'old'", []).unwrap();
    drop(database);
    assert_listed(&stage.run(&["gc"]), &[]);
    stage.configure("[journal]\nkeep_days = 30", vec![agent("ui")]);
    let report = stage.run(&["check", "-c", "eisen.toml"]);
    assert!(report.stdout.contains("1 session: older than"), "{}", report.stdout);
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    let shown = stage.run(&["ps"]).stdout;
    assert!(shown.contains("deletes in a minute: 1 session: older than"), "{shown}");
    let notice = port.call("get_journal", &json!({})).unwrap()["notice"].clone();
    assert!(notice.as_str().unwrap().contains("`keep_days` is 30"), "{notice}");
    drop(port);
    let said = team.stop().stderr;
    assert_eq!(said.matches("deletes in a minute").count(), 1, "{said}");

    let listed = stage.run(&["gc", "--dry-run"]);
    assert_listed(&listed, &["in the journal of the team `shop`: 1 session: older than"]);
    assert_eq!(sessions(&stage).len(), 2);
    assert_listed(&stage.run(&["gc"]), &["1 session"]);
    assert_eq!(sessions(&stage).len(), 1);
    let history = stage.run(&["history", "--type", "prune", "--json"]).stdout;
    assert!(history.contains("`keep_days` is 30"), "{history}");
}

#[test]
fn a_purged_text_is_in_no_byte_of_a_journal_and_in_no_export() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "write src/ui/new.ts qzxhunter");
    let files_with_it = || -> Vec<PathBuf> {
        let files = fs::read_dir(stage.path("home/teams/shop")).unwrap();
        let files = files.map(|entry| entry.unwrap().path());
        let has = |file: &PathBuf| {
            fs::read(file).unwrap().windows(9).any(|window| window == b"qzxhunter")
        };
        files.filter(has).collect()
    };
    eventually("the turn is in the journal", || {
        stage.run(&["history", "--type", "turn.end", "--json"]).stdout.contains("turn.end")
    });
    assert!(!files_with_it().is_empty());
    let listed = stage.run(&["purge", "--matching", "qzxhunter", "--dry-run"]);
    assert!(listed.code == 0 && listed.stdout.contains(": event "), "{}", listed.stdout);
    assert!(!files_with_it().is_empty());
    let purged = stage.run(&["purge", "--matching", "qzxhunter"]);
    assert_eq!((purged.code, &purged.stdout), (0, &listed.stdout), "{}", purged.stderr);
    assert_eq!(files_with_it(), Vec::<PathBuf>::new());
    assert!(stage.run(&["history", "search", "qzxhunter"]).stdout.is_empty());
    let export = stage.run(&["export"]).stdout;
    assert!(export.contains("write src/ui/new.ts [purged]") && !export.contains("qzxhunter"));
    // The team goes on, and the search with it.
    port.prompt("ui", "write src/ui/new.ts other");
    drop(port);
    assert!(!team.stop().stderr.contains("journal"));
    let found = stage.run(&["history", "search", "other"]).stdout;
    assert!(found.contains("[other]"), "{found}");
    stage.file("shop.ndjson", &stage.run(&["export"]).stdout);
    assert_eq!(stage.run(&["import", "shop.ndjson", "--team", "copy"]).code, 0);
    let copy = stage.run(&["export", "--team", "copy"]).stdout;
    assert_eq!(copy.replacen("\"copy\"", "\"shop\"", 1), stage.read("shop.ndjson"));

    let nothing = stage.run(&["purge", "--matching", "qzx[a-z]+"]);
    assert!(nothing.stderr.contains("nothing has it; for a regular expression add --regex"));
    for wrong in [vec!["--matching", ""], vec!["--regex", "--matching", "("], vec![]] {
        assert_eq!(stage.run(&[&["purge"][..], &wrong].concat()).code, 2, "{wrong:?}");
    }
}

#[test]
fn pins_are_listed_and_a_name_must_be_clear() {
    let stage = Stage::new();
    gone(&stage);
    let session = sessions(&stage)[0]["session"]["id"].as_str().unwrap().to_owned();
    let event = stage.run(&["history", "--type", "message.user", "--json"]).stdout;
    let event = serde_json::from_str::<Value>(&event).unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(stage.run(&["pin", &session]).code, 0);
    assert_eq!(stage.run(&["pin", &event]).code, 0);
    let listed = stage.run(&["pin"]).stdout;
    assert_eq!(listed, format!("session {session}\nevent {event}\n"));
    assert_eq!(stage.run(&["pin", &session, "--remove"]).code, 0);
    assert_eq!(stage.run(&["pin"]).stdout, format!("event {event}\n"));
    for (name, why) in [("nobody", "there is no session and no event"), ("0", "several begin")] {
        let refused = stage.run(&["pin", name]);
        assert!(refused.code == 1 && refused.stderr.contains(why), "{}", refused.stderr);
    }
}
