//! What agents delete and overwrite comes back: whatever the amount, and by all names of a file; and what
//! can't come back is told of before.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{Port, Stage, Team, agent, eventually};

const MEGA: usize = 1 << 20;

fn started(stage: &Stage, keys: &str) -> (Team, Port) {
    let team = stage.team(keys, vec![agent("ui").zone("**").with("enforce = \"kernel\"")]);
    let port = team.steer_when_ready(&["ui"]);
    (team, port)
}

fn does(port: &mut Port, line: &str) {
    let said = port.prompt("ui", &format!("run {line}"));
    assert!(!said.starts_with("failed"), "{line}: {said}");
}

/// Files of a megabyte, each with another content.
fn make(stage: &Stage, folder: &str, number: usize) -> Vec<(PathBuf, Vec<u8>)> {
    fs::create_dir_all(stage.path(folder)).unwrap();
    let make = |at: usize| {
        let path = stage.path(folder).join(format!("{at}.txt"));
        let content = format!("{at:07}\n").repeat(MEGA / 8).into_bytes();
        fs::write(&path, &content).unwrap();
        (path, content)
    };
    (0..number).map(make).collect()
}

#[test]
fn an_undo_brings_back_more_than_fits_into_memory() {
    let stage = Stage::new();
    let mut files = make(&stage, "shop/big/deep", 90);
    // More than is kept of a content that git ignores.
    let large: Vec<u8> = (0..3 * MEGA).map(|at| at.to_le_bytes()[at % 3]).collect();
    for name in ["shop/large", "shop/cut"] {
        fs::write(stage.path(name), &large).unwrap();
        files.push((stage.path(name), large.clone()));
    }
    let (team, mut port) = started(&stage, "");
    does(&mut port, "rm -rf big large; : >cut");
    assert!(files[..91].iter().all(|(path, _)| !path.exists()));
    let undone = stage.run(&["undo", "ui"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    for (path, content) in &files {
        assert!(fs::read(path).unwrap() == *content, "{}", path.display());
    }
    let gaps = stage.run(&["history", "--type", "gap", "--json"]);
    assert_eq!(gaps.stdout, "", "{gaps:?}");
    drop(port);
    team.stop();
}

#[test]
fn a_full_journal_is_told_of_before_or_holds_the_call() {
    let stage = Stage::new();
    let files = make(&stage, "shop/big", 3);
    let keys = |on_full: &str| format!("[journal]\nmax_mb = 1\non_full = \"{on_full}\"");
    let (team, mut port) = started(&stage, &keys("warn"));
    does(&mut port, "rm big/0.txt big/1.txt");
    let gap = || {
        let gaps = stage.run(&["history", "--type", "gap", "--json"]);
        let gaps: Vec<Value> =
            gaps.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        gaps.iter().find(|gap| gap["payload"]["folder"] == "big").cloned()
    };
    eventually("the loss is in the journal", || gap().is_some());
    let payload = &gap().unwrap()["payload"];
    assert_eq!((&payload["files"], &payload["bytes"]), (&json!(3), &json!(3 * MEGA)));
    let ps = stage.run(&["ps"]);
    assert!(ps.stdout.contains("can't be brought back"), "{ps:?}");
    drop(port);
    team.stop();

    let (team, mut port) = started(&stage, &keys("hold"));
    let asked = port.begin("ui", "run rm big/2.txt");
    let blocked = port.blocked("pending");
    let reason = blocked["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("1 file (1048576 bytes) at `big`"), "{reason}");
    assert!(files[2].0.exists());
    port.resolve(&blocked, &json!({ "decision": "allow" })).unwrap();
    port.answer(asked).unwrap();
    assert!(!files[2].0.exists());
    drop(port);
    team.stop();
}

#[test]
fn an_undo_knows_all_names_of_a_file() {
    let stage = Stage::new();
    stage.file("shop/src/a", "orig\n");
    stage.file("shop/src/p", "orig2\n");
    fs::hard_link(stage.path("shop/src/p"), stage.path("shop/src/q")).unwrap();
    let (team, mut port) = started(&stage, "");
    does(&mut port, "ln src/a src/b; echo agent >>src/b; echo agent >>src/q");
    let blame = stage.run(&["blame", "src/p"]);
    assert!(blame.stdout.contains("ui"), "{blame:?}");
    let undone = stage.run(&["undo", "ui"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    for (name, content) in [("a", "orig\n"), ("p", "orig2\n"), ("q", "orig2\n")] {
        assert_eq!(stage.read(&format!("shop/src/{name}")), content, "{name}");
    }
    assert!(!stage.has("shop/src/b"));
    let inode = |name: &str| fs::metadata(stage.path(name)).unwrap().ino();
    assert_eq!(inode("shop/src/p"), inode("shop/src/q"));
    drop(port);
    team.stop();
}

#[test]
fn a_workspace_that_was_replaced_is_refused_until_a_restart() {
    let stage = Stage::new();
    stage.file("shop/src/b", "one");
    let (team, mut port) = started(&stage, "");
    fs::rename(stage.path("shop"), stage.path("old")).unwrap();
    fs::create_dir_all(stage.path("shop/src")).unwrap();
    stage.file("shop/src/b", "new");
    let ps = || stage.run(&["ps"]).stdout;
    eventually("`ps` says it", || ps().contains("was replaced by another folder"));
    let said = port.prompt("ui", "write src/b two");
    assert!(said.contains("was replaced by another folder"), "{said}");
    assert_eq!((stage.read("old/src/b"), stage.read("shop/src/b")), ("one".into(), "new".into()));
    drop(port);
    assert_eq!(stage.run(&["restart", "ui"]).code, 0);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "write src/b three");
    assert_eq!((stage.read("old/src/b"), stage.read("shop/src/b")), ("one".into(), "three".into()));
    assert!(!ps().contains("was replaced"), "{}", ps());
    drop(port);
    team.stop();
}
