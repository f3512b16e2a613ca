//! Streams of a running team: what is delivered, over restarts, attached and detached, and in trouble.

use std::path::Path;

use serde_json::{Value, json};

use super::troubles::Disk;
use crate::harness::{Stage, agent, eventually};

const AUDIT: &str =
    "[[streams]]\nname = \"audit\"\nkind = \"file\"\npath = \"shop/out/audit.ndjson\"\n";

/// The lines of a file that are complete: others may be written just now.
fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn has(path: &Path, kind: &str, payload: &str) -> bool {
    let is_it =
        |line: &Value| line["type"] == kind && line["payload"].to_string().contains(payload);
    lines(path).iter().any(is_it)
}

#[test]
fn all_of_the_journal_is_delivered_also_over_a_restart_and_no_agent_reads_it() {
    let stage = Stage::new();
    let file = stage.path("shop/out/audit.ndjson");
    let team = stage.team(AUDIT, vec![agent("ui").zone("**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "write src/ui/new.ts fresh margins");
    eventually("the turn is delivered", || has(&file, "turn.end", "end_turn"));
    port.begin("ui", "read out/audit.ndjson");
    let blocked = port.blocked("denied");
    assert_eq!(blocked["path"], "out/audit.ndjson", "{blocked}");
    let listed = stage.run(&["streams"]).stdout;
    let row = listed.lines().nth(1).unwrap();
    assert!(row.starts_with("audit") && row.contains("file") && row.contains("ok"), "{listed}");
    assert!(stage.run(&["ps"]).stdout.contains("stream audit: ok"));
    drop(port);
    team.stop();
    assert!(has(&file, "session.end", "reason"), "{:#?}", lines(&file));

    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "hello again");
    eventually("the second run is delivered", || has(&file, "message.user", "hello again"));
    drop(port);
    team.stop();
    assert_eq!(ids(&lines(&file)), ids(&journal(&stage)));
}

/// All events of the journal.
fn journal(stage: &Stage) -> Vec<Value> {
    stage
        .run(&["export"])
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).unwrap().get("event").cloned())
        .collect()
}

fn ids(all: &[Value]) -> Vec<Value> {
    all.iter().map(|it| it["id"].clone()).collect()
}

#[test]
fn streams_come_and_go_while_the_team_runs_and_that_is_kept() {
    let stage = Stage::new();
    let team = stage.team(AUDIT, vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let files = stage.path("home/teams/shop/streams/files");
    let attach = ["streams", "attach", "turns", "kind=file", "path=turns.ndjson"];
    let attached = stage.run(&[&attach[..], &["scope.types=[\"turn\"]"]].concat());
    assert_eq!(attached.stdout, "stream turns: ok\n", "{}", attached.stderr);
    let turns = files.join("turns.ndjson");
    port.prompt("ui", "hello");
    eventually("the turn is delivered", || !lines(&turns).is_empty());
    assert_eq!(lines(&turns)[0]["type"], "turn.end");
    for (args, code, why) in [
        (["attach", "turns", "kind=file", "path=x"].as_slice(), 1, "there is a stream `turns`"),
        (&["attach", "out", "kind=file", "path=/tmp/x"], 1, "`path` must be a name of a file in"),
        (&["attach", "out", "kind=fil", "path=x"], 1, "did you mean \"file\"?"),
        (&["attach", "out", "kind=file", "path=x", "kep=3"], 1, "did you mean `keep`?"),
        (
            &["attach", "out", "kind=file", "path=turns.ndjson.1"],
            1,
            "stream `turns` writes this file",
        ),
        (&["attach", "other"], 1, "there is no stream `other`; there are: audit, turns"),
        (&["attach", "out", "kind"], 2, "is not KEY=VALUE"),
        (&["detach", "other"], 1, "there is no stream `other`"),
    ] {
        let ended = stage.run(&[&["streams"], args].concat());
        assert_eq!(ended.code, code, "{args:?} {}", ended.stderr);
        assert!(ended.stderr.contains(why), "{args:?} {}", ended.stderr);
    }
    assert_eq!(stage.run(&["streams", "detach", "audit"]).stdout, "stream audit: detached\n");
    let replayed = stage.run(&["replay", "ui/ui-s1", "--to", "turns"]);
    assert!(replayed.stdout.contains(" events delivered: replay_id "), "{}", replayed.stderr);
    let again = lines(&turns);
    let id = &again.last().unwrap()["origin"]["replay_id"];
    assert!(replayed.stdout.contains(id.as_str().unwrap()), "{}", replayed.stdout);
    assert!(again.iter().any(|line| line["type"] == "message.user" && line["origin"].is_object()));
    drop(port);
    team.stop();

    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    let states = |listed: &Value| {
        let of = |it: &Value| format!("{} {}", it["name"], it["state"]).replace('"', "");
        listed.as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    let listed = port.call("list_streams", &json!({})).unwrap();
    assert_eq!(states(&listed), ["audit detached", "turns ok"]);
    let before = lines(&stage.path("shop/out/audit.ndjson")).len();
    port.prompt("ui", "once more");
    assert_eq!(stage.run(&["streams", "attach", "audit"]).stdout, "stream audit: ok\n");
    let audit = stage.path("shop/out/audit.ndjson");
    eventually("it goes on where it was", || has(&audit, "message.user", "once more"));
    let numbers: Vec<_> = lines(&audit).iter().map(|it| it["number"].as_u64().unwrap()).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{before} {numbers:?}");
    assert_eq!(stage.run(&["streams", "detach", "turns"]).code, 0);
    let listed = port.call("list_streams", &json!({})).unwrap();
    assert_eq!(states(&listed), ["audit ok"]);
}

#[test]
fn one_in_trouble_is_shown_and_nobody_waits_for_it() {
    let stage = Stage::new();
    stage.file("shop/out", "in the way");
    let team = stage.team(AUDIT, vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "hello"), "hello");
    let line = port.expect(&json!({ "type": "stream", "name": "audit", "state": "degraded" }));
    assert_eq!(line["failures"], 5, "{line}");
    let shown = stage.run(&["ps"]).stdout;
    assert!(shown.contains("stream audit: degraded: cannot write "), "{shown}");
    std::fs::remove_file(stage.path("shop/out")).unwrap();
    port.expect(&json!({ "type": "stream", "name": "audit", "state": "ok" }));
    let audit = stage.path("shop/out/audit.ndjson");
    eventually("all is delivered", || has(&audit, "message.user", "hello"));
}

#[test]
fn a_full_disk_gets_no_part_of_a_line_and_all_of_them_once_there_is_room() {
    let stage = Stage::new();
    let Some(disk) = Disk::mount(&stage, "size=16k") else { return };
    let audit = AUDIT.replace("shop/out", "disk");
    let team = stage.team(&audit, vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let text = "a long text ".repeat(100);
    for _ in 0..20 {
        assert_eq!(port.prompt("ui", &format!("hello {text}")), format!("hello {text}"));
    }
    let line = port.expect(&json!({ "type": "stream", "state": "degraded" }));
    assert!(line["reason"].as_str().unwrap().contains("No space left on device"), "{line}");
    let file = stage.path("disk/audit.ndjson");
    let before = lines(&file).len();
    disk.remount("size=4m");
    port.expect(&json!({ "type": "stream", "state": "ok" }));
    drop(port);
    team.stop();
    assert!(stage.read("disk/audit.ndjson").ends_with('\n'));
    let all = lines(&file);
    assert!(before < all.len(), "{before}");
    assert_eq!(ids(&all), ids(&journal(&stage)));
}
